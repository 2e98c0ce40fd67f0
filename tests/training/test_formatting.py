import pytest

from training.formatting import format_duration, format_figure, format_score
from training.metrics.intervals import Interval
from training.reporting.html_page import format_interval


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.98512, "0.985"), (0.99999, "0.999"), (1.0, "1.000"), (0, "0.000")]
)
def test_figures_never_round_up_to_one(value, text):
    assert format_figure(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.250"), (0.0, "0.000"), (1.0, "1.000"), (2e-7, "2e-07"), (1 - 2e-7, "1 − 2e-07"), (None, "–")],
)
def test_scores_near_the_ends_stay_readable(value, text):
    assert format_score(value) == text


@pytest.mark.parametrize(
    ("ends", "text"), [((0.951, 0.9996), "(0.95–0.99)"), ((0.951, 1.0), "(0.95–1.00)"), (None, "")]
)
def test_intervals_end_at_one_only_where_they_do(ends, text):
    assert format_interval(ends and Interval(*ends, 2000)) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (59.96, "60.0 s"), (200, "3 min 20 s"), (3900, "1 h 05 min")]
)
def test_durations(seconds, text):
    assert format_duration(seconds) == text
