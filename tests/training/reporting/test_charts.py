"""What the charts show, read from their SVG."""

import re

import numpy as np
import pytest

from training.metrics.calibration import measure_reliability
from training.reporting.charts import DEFECTIVE, REVIEWED, LabelledScores, reliability_chart, score_chart

PLACED = re.compile(r'<use[^>]* x="([\d.]+)" y="([\d.]+)" style="([^"]*)"')


def dots(svg, color):
    """Where the dots of a colour lie, px, without those of axes and legend."""
    places = [(float(x), float(y)) for x, y, style in PLACED.findall(svg) if f"fill: {color}" in style]
    return np.array(places)


@pytest.fixture
def reliability():
    """One of ten at 0.1 is defective, two of five at 0.5, all five at 0.9."""
    scores = [0.1] * 10 + [0.5] * 5 + [0.9] * 5
    truth = [1] + [0] * 9 + [1] * 2 + [0] * 3 + [1] * 5
    return measure_reliability(truth, scores)


def test_dots_lie_at_score_and_share(reliability):
    svg = reliability_chart([reliability])
    circles = dots(svg, DEFECTIVE)
    assert len(circles) == 3
    # Equal steps of the score, and the shares 0.1, 0.4 and 1 upwards.
    (left, bottom), (middle, height), (right, top) = circles
    assert middle - left == pytest.approx(right - middle, abs=0.01)
    assert (bottom - height) / (bottom - top) == pytest.approx((0.4 - 0.1) / (1 - 0.1), abs=1e-3)
    assert "before calibration" not in svg


def test_review_has_a_line_in_both_histograms():
    images = LabelledScores(np.array([False, True]), np.array([0.2, 0.9]))
    assert REVIEWED not in score_chart(images, 0.5)
    assert score_chart(images, 0.5, None, 0.1).count(f"stroke: {REVIEWED}") == 2
