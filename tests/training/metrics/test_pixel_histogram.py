import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from training.metrics.pixel_histogram import BINS, PixelHistogram, bin_scores

SCORE = st.floats(0, 1, width=32)


def histogram_of(*pairs):
    histogram = PixelHistogram()
    for scores, truth in pairs:
        histogram.add(np.asarray(scores, np.float32), truth)
    return histogram


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
    precision = histogram_of((scores, truth)).average_precision()
    if 0 < np.count_nonzero(truth) < len(pixels):
        assert precision == pytest.approx(average_precision_score(truth[0] > 0, scores[0]))
    else:
        assert precision is None


# === AUPRO ===


def test_aupro_by_hand():
    # One region of 1 px, one of 2 px; ten background pixels, of which one scores .85 and one .5.
    truth = np.array([[255, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0]], np.uint8)
    scores = np.array([[0.9, 0.85, 0.8, 0.2, 0.5, 0, 0, 0, 0, 0, 0, 0, 0]])
    # Overlap .5 up to a rate of .1, .75 up to .2, 1 up to .3.
    assert histogram_of((scores, truth)).aupro() == pytest.approx((0.05 + 0.075 + 0.1) / 0.3)


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
    for figure in (PixelHistogram.average_precision, PixelHistogram.aupro):
        assert figure(added) == pytest.approx(figure(both))
    assert added.f1_at_edges() == pytest.approx(both.f1_at_edges())


def test_arrays_bring_a_histogram_back():
    histogram = histogram_of((np.array([[0.9, 0.1]]), np.array([[255, 0]], np.uint8)))
    again = PixelHistogram.from_arrays(histogram.to_arrays())
    assert (again.aupro(), again.average_precision()) == (1, 1)
    with pytest.raises(ValueError, match=rf"'defect' has the shape \(256,\); expected \({BINS},\)"):
        PixelHistogram.from_arrays({**histogram.to_arrays(), "defect": np.zeros(256)})
