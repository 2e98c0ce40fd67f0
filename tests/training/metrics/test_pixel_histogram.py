from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from training.metrics.pixel_histogram import BINS, PixelHistogram, bin_scores
from training.metrics.regions import find_true_regions

SCORE = st.floats(0, 1, width=32)


def histogram_of(*pairs):
    histogram = PixelHistogram()
    for scores, truth in pairs:
        histogram.add(np.asarray(scores, np.float32), truth)
    return histogram


def brute_aupro(pairs, limit=0.3):
    """Thresholds one by one; covered share region by region."""
    background = sum(int((truth == 0).sum()) for _, truth in pairs)
    points = [(0.0, 0.0)]
    for threshold in sorted({float(score) for scores, _ in pairs for score in scores.ravel()}, reverse=True):
        shares, alarms = [], 0
        for scores, truth in pairs:
            predicted = scores >= threshold
            alarms += int((predicted & (truth == 0)).sum())
            regions = find_true_regions(truth)
            for number in range(len(regions.areas_px)):
                shares.append(predicted.ravel()[regions.pixels[regions.numbers == number]].mean())
        points.append((alarms / background, float(np.mean(shares))))
    area = 0.0
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 < x1 and x0 < limit:
            end = min(x1, limit)
            y_end = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
            area += (end - x0) * (y0 + y_end) / 2
    return area / limit


@settings(deadline=None)
@given(SCORE, SCORE)
def test_bins_keep_the_order_of_the_scores(low, high):
    low, high = sorted((low, high))
    first, second = bin_scores(np.array([low, high], np.float32))
    assert 0 <= first <= second < BINS


@settings(deadline=None)
@given(st.integers(0, 255), SCORE)
def test_multiples_of_a_256th_begin_a_bin(edge, score):
    first, place = bin_scores(np.array([edge / 256, score], np.float32))
    assert (place >= first) == (score >= edge / 256)


# === Pixel average precision ===


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 64)), min_size=2, max_size=40))
def test_pixel_average_precision_is_that_of_scikit_learn(pixels):
    truth = np.array([[255 * defect for defect, _ in pixels]], np.uint8)
    scores = np.array([[score / 64 for _, score in pixels]], np.float32)  # of a bin each: exact
    found = histogram_of((scores, truth)).average_precision()
    if 0 < np.count_nonzero(truth) < len(pixels):
        assert found == pytest.approx(average_precision_score(truth[0] > 0, scores[0]))
    else:
        assert found is None


# === AUPRO ===


def test_aupro_by_hand():
    # One region of 1 px, one of 2 px; ten background pixels, of which one scores .85 and one .5.
    truth = np.array([[255, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0]], np.uint8)
    scores = np.array([[0.9, 0.85, 0.8, 0.2, 0.5, 0, 0, 0, 0, 0, 0, 0, 0]])
    # Overlap .5 up to a rate of .1, .75 up to .2, 1 up to .3.
    assert histogram_of((scores, truth)).aupro() == pytest.approx((0.05 + 0.075 + 0.1) / 0.3)


@pytest.mark.parametrize("seed", range(4))
def test_aupro_is_that_of_every_threshold_and_region(seed):
    generator = np.random.default_rng(seed)
    pairs = []
    for _ in range(3):
        truth = (generator.random((12, 10)) < 0.15).astype(np.uint8) * 255
        scores = (generator.integers(0, 40, truth.shape) + 24 * (truth > 0)) / 64
        pairs.append((scores.astype(np.float32), truth))
    assert histogram_of(*pairs).aupro() == pytest.approx(brute_aupro(pairs))


@pytest.mark.parametrize("value", [0, 255])
def test_figures_need_defect_and_background(value):
    histogram = histogram_of((np.full((2, 2), 0.5), np.full((2, 2), value, np.uint8)))
    assert histogram.average_precision() is histogram.aupro() is None
    assert PixelHistogram().aupro() is None


# === Pooling ===


def test_added_histograms_are_that_of_all_photographs():
    generator = np.random.default_rng(1)
    pairs = [
        (generator.random((9, 7)).astype(np.float32), (generator.random((9, 7)) < 0.3).astype(np.uint8))
        for _ in range(2)
    ]
    both, added = histogram_of(*pairs), histogram_of(pairs[0]) + histogram_of(pairs[1])
    assert added.regions == both.regions
    for figure in (PixelHistogram.average_precision, PixelHistogram.aupro):
        assert figure(added) == pytest.approx(figure(both))
    assert added.counts_at(0.5) == both.counts_at(0.5)


def test_arrays_bring_a_histogram_back():
    histogram = histogram_of((np.array([[0.9, 0.1]]), np.array([[255, 0]], np.uint8)))
    again = PixelHistogram.from_arrays(histogram.to_arrays())
    assert (again.aupro(), again.average_precision(), again.regions) == (1, 1, 1)
    with pytest.raises(ValueError, match=rf"'defect' has the shape \(256,\); expected \({BINS},\)"):
        PixelHistogram.from_arrays({**histogram.to_arrays(), "defect": np.zeros(256)})
