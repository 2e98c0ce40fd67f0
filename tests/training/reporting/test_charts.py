"""What the charts show, read from their SVG."""

import re

import numpy as np
import pytest

from training.metrics.calibration import measure_reliability
from training.reporting.charts import (
    DEFECTIVE,
    REVIEWED,
    LabelledScores,
    odds_range,
    reliability_chart,
    score_chart,
    to_odds,
)

PLACED = re.compile(r'<use[^>]* x="([\d.]+)" y="([\d.]+)" style="([^"]*)"')


def dots(svg, color):
    """Where the dots of a colour lie, px, without those of axes and legend."""
    places = [(float(x), float(y)) for x, y, style in PLACED.findall(svg) if f"fill: {color}" in style]
    return np.array(places)


@pytest.fixture
def reliability():
    """Of ten at 0.1 one is defective, of five at 0.5 two, of five at 0.9 all."""
    scores = [0.1] * 10 + [0.5] * 5 + [0.9] * 5
    truth = [1] + [0] * 9 + [1] * 2 + [0] * 3 + [1] * 5
    return measure_reliability(truth, scores)


def test_dots_lie_at_score_and_share(reliability):
    svg = reliability_chart([reliability])
    found = dots(svg, DEFECTIVE)
    assert len(found) == 3
    # Equal steps of the score, and the shares 0.1, 0.4 and 1 upwards.
    (left, bottom), (middle, height), (right, top) = found
    assert middle - left == pytest.approx(right - middle, abs=0.01)
    assert (bottom - height) / (bottom - top) == pytest.approx((0.4 - 0.1) / (1 - 0.1), abs=1e-3)
    assert "before calibration" not in svg


def test_area_of_a_dot_is_the_share_of_its_bin(reliability):
    svg = reliability_chart([reliability])
    outlines = re.findall(r'<path id="m\w+" d="M 0 ([\d.]+)\s', svg)  # radii: each begins at its lowest point
    radii = sorted({float(radius) for radius in outlines if float(radius) > 2}, reverse=True)
    assert (radii[0] / radii[1]) ** 2 == pytest.approx(10 / 5, rel=1e-3)


def test_scores_before_calibration_are_faint(reliability):
    svg = reliability_chart([reliability], measure_reliability([0, 1], [0.5, 0.5]))
    assert "before calibration</text>" in svg
    assert len(dots(svg, "currentColor")) >= 1
    assert "opacity: 0.38" in svg


def test_review_has_a_line_in_both_histograms():
    images = LabelledScores(np.array([False, True]), np.array([0.2, 0.9]))
    assert REVIEWED not in score_chart(images, 0.5)
    assert score_chart(images, 0.5, None, 0.1).count(f"stroke: {REVIEWED}") == 2


def test_axis_reaches_every_limit():
    scores = np.array([0.2, 0.9])
    assert odds_range(scores, 0.5, None) == (to_odds(0.2) - 0.5, to_odds(0.9) + 0.5)
    assert odds_range(scores, 0.5, 0.01) == (to_odds(0.01) - 0.5, to_odds(0.9) + 0.5)
