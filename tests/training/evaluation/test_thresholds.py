import numpy as np
import pytest

from training.evaluation.classification_metrics import count_errors
from training.evaluation.pixel_counts import count_pixels
from training.evaluation.pixel_histogram import PixelHistogram
from training.evaluation.thresholds import choose_mask_threshold, choose_score_threshold


def test_threshold_lies_in_the_middle_of_the_gap_in_logit_space():
    # Odds 1/99 and 99/1 around even odds; odds 1/9 and 81/1: their geometric mean is 3, so 3/4.
    assert choose_score_threshold([0, 1], [0.01, 0.99]).value == pytest.approx(0.5)
    assert choose_score_threshold([0, 0, 1], [0.001, 0.1, 81 / 82]).value == pytest.approx(0.75)


def test_threshold_tells_saturated_scores_apart():
    choice = choose_score_threshold([0, 0, 1, 1], [0.0, 1e-30, 1.0, 1.0])
    assert choice.value == pytest.approx(0.5)
    assert choice.warning is None


@pytest.mark.parametrize(
    ("low", "high"), [(1e-12, 1e-11), (1 - 1e-11, 1 - 1e-12), (0.5, np.nextafter(0.5, 1))]
)
def test_threshold_separates_even_neighbouring_numbers(low, high):
    threshold = choose_score_threshold([0, 1], [low, high]).value
    assert low < threshold <= high


def test_fewest_errors_win_over_a_wider_gap():
    labels, scores = [0, 0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.35, 0.36, 0.9]
    # One error on either side of 0.36; none misses a defect below it.
    threshold = choose_score_threshold(labels, scores).value
    assert count_errors(labels, scores, threshold) == (1, 0)
    assert 0.3 < threshold <= 0.35


def test_fewer_misses_win_among_equal_errors():
    labels, scores = [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]  # one alarm at 0.3, one miss at 0.7
    threshold = choose_score_threshold(labels, scores).value
    assert 0.2 < threshold <= 0.4


@pytest.mark.parametrize("seed", range(20))
def test_no_other_threshold_makes_fewer_errors(seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, 30)
    scores = (0.6 * generator.random(30) + 0.4 * labels * generator.random(30)).round(2)
    alarms, misses = count_errors(labels, scores, choose_score_threshold(labels, scores).value)
    every = [count_errors(labels, scores, threshold) for threshold in np.linspace(0, 1, 1001)]
    assert (alarms + misses, misses) == min((sum(errors), errors[1]) for errors in every)


@pytest.mark.parametrize(
    ("labels", "scores", "counts"),
    [([], [], "0 good and 0"), ([0, 0], [0.1, 0.9], "2 good and 0"), ([1, 3], [0.1, 0.9], "0 good and 2")],
)
def test_degenerate_validation_gives_a_half_and_says_so(labels, scores, counts):
    choice = choose_score_threshold(labels, scores)
    assert choice.value == 0.5
    assert counts in choice.warning
    assert "validation split" in choice.warning


@pytest.mark.parametrize(
    ("labels", "scores", "label", "errors"),
    [
        ([1, 1, 0], [0.4, 0.4, 0.4], "defective", (1, 0)),  # constant answers
        ([0, 0, 1], [0.4, 0.4, 0.4], "good", (0, 1)),
        ([0, 0, 1], [0.0, 0.0, 0.0], "good", (0, 1)),
        ([1, 1, 0], [0.0, 0.0, 0.0], "defective", (1, 0)),
        ([1, 1, 0], [0.2, 0.3, 0.9], "defective", (1, 0)),
        ([0, 0, 1], [0.2, 1 - 1e-12, 0.1], "good", (0, 1)),
    ],
)
def test_scores_that_do_not_separate_give_a_warning(labels, scores, label, errors):
    choice = choose_score_threshold(labels, scores)
    assert count_errors(labels, scores, choice.value) == errors
    assert f"every image {label}" in choice.warning
    assert 0 <= choice.value <= 1


def test_a_good_image_at_one_leaves_no_threshold_above_it():
    labels, scores = [0, 0, 1], [1.0, 1.0, 0.5]
    assert 0 <= choose_score_threshold(labels, scores).value <= 1


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf])
def test_scores_outside_the_unit_interval_are_refused(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        choose_score_threshold([0, 1], [0.5, bad])


def test_scores_may_round_beyond_one():
    assert choose_score_threshold([0, 1], [0.0, 1 + 1e-12]).value == pytest.approx(0.5)


def test_labels_and_scores_of_different_length_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        choose_score_threshold([0, 1], [0.1, 0.2, 0.3])


# === Mask threshold ===


def random_masks(seed, count=3):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        truth = (generator.random((9, 7)) < 0.3).astype(np.uint8) * 255
        scores = 0.7 * generator.random((9, 7)) + 0.3 * (truth > 0)
        yield scores.round(2).astype(np.float32), truth  # rounded: many scores lie on and off the edges


@pytest.mark.parametrize("edge", [0, 1, 64, 77, 128, 255])
def test_histogram_counts_as_the_comparison_does(edge):
    histogram, threshold = PixelHistogram(), edge / 256
    at_edge = np.array([[threshold, np.nextafter(np.float32(threshold), np.float32(0))]], np.float32)
    pairs = [*random_masks(1), (at_edge, np.array([[255, 255]], np.uint8))]
    expected = [0, 0, 0]
    for scores, truth in pairs:
        histogram.add(scores, truth)
        counts = count_pixels((scores >= threshold).astype(np.uint8), truth)
        expected = [a + b for a, b in zip(expected, (counts.tp, counts.fp, counts.fn), strict=True)]
    counts = histogram.counts_at(threshold)
    assert [counts.tp, counts.fp, counts.fn] == expected
    assert histogram.f1_at(threshold) == counts.f1


def test_histogram_takes_a_missing_mask_as_background():
    histogram = PixelHistogram()
    histogram.add(np.array([[0.0, 0.5, 1.0]], np.float32), None)
    assert (histogram.counts_at(0.5).fp, histogram.has_defect()) == (2, False)


@pytest.mark.parametrize("threshold", [0.3, -1 / 256, 1.0])
def test_threshold_off_the_edges_is_refused(threshold):
    with pytest.raises(ValueError, match="multiple of 1/256"):
        PixelHistogram().counts_at(threshold)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1])
def test_mask_scores_outside_the_unit_interval_are_refused(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        PixelHistogram().add(np.array([[0.5, bad]], np.float32), None)


def test_mask_scores_may_round_beyond_one():
    histogram = PixelHistogram()
    histogram.add(np.array([[1.000001, -0.000001]], np.float32), np.array([[255, 0]], np.uint8))
    assert histogram.f1_at(0.5) == 1.0


def test_truth_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(2, 3\)"):
        PixelHistogram().add(np.zeros((2, 2), np.float32), np.zeros((2, 3), np.uint8))


@pytest.mark.parametrize("seed", range(5))
def test_mask_threshold_has_the_best_f1(seed):
    histogram, pairs = PixelHistogram(), list(random_masks(seed))
    for scores, truth in pairs:
        histogram.add(scores, truth)
    scores, truth = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    every = [count_pixels((scores >= edge / 256).astype(np.uint8), truth).f1 for edge in range(1, 256)]
    choice = choose_mask_threshold(histogram)
    assert histogram.f1_at(choice.value) == max(every)
    assert choice.warning is None


def test_mask_threshold_lies_in_the_middle_of_equally_good_ones():
    histogram = PixelHistogram()
    histogram.add(np.array([[0.25, 0.75]], np.float32), np.array([[0, 255]], np.uint8))
    assert choose_mask_threshold(histogram).value == pytest.approx(0.5, abs=1 / 256)


def test_validation_without_defect_pixels_gives_a_half_and_says_so():
    histogram = PixelHistogram()
    histogram.add(np.full((4, 4), 0.9, np.float32), None)
    choice = choose_mask_threshold(histogram)
    assert choice.value == 0.5
    assert "mask threshold" in choice.warning
