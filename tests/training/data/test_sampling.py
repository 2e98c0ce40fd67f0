import numpy as np
import pytest

from segdec.errors import DatasetError
from training.data.sampling import (
    FEATURE_NOISE,
    SYNTHETIC,
    UNCHANGED,
    draw_order,
    frequency_log_weights,
    sample_order,
)

IN_TURN = ["alternate", "frequency"]


def test_every_image_comes_once_before_one_comes_twice():
    labels = [0, 1, 0, 0, 1, 0]
    order = draw_order("alternate", labels, 8, [3])
    assert sorted(order[1::2]) == [0, 2, 3, 5]
    assert sorted(order[0:4:2]) == [1, 4] == sorted(order[4::2])
    order = draw_order("shuffled", labels, 12, [3])
    assert sorted(order[:6]) == [0, 1, 2, 3, 4, 5] == sorted(order[6:])


@pytest.mark.parametrize("sampling", IN_TURN)
def test_defect_classes_take_turns(sampling):
    labels = np.array([0, 0, 1, 1, 1, 1, 2, 3])
    drawn = labels[draw_order(sampling, labels, 12, [0])]
    assert drawn[::2].tolist() == [1, 2, 3, 1, 2, 3]


def test_frequency_prefers_images_drawn_less_often():
    """Six rounds of 10 of 40: equally likely draws would leave 0.75⁶ of them, 7 of 40, out."""
    labels = [1] * 10 + [0] * 40
    good = draw_order("frequency", labels, 120, [0])[1::2]
    counts = np.bincount(good, minlength=50)[10:]
    assert counts.sum() == 60
    assert counts.min() >= 1
    assert counts.max() <= 3
    assert all(len(set(good[start : start + 10])) == 10 for start in range(0, 60, 10))
    first, second = (set(good[start : start + 40]) for start in (0, 20))
    assert first != second  # drawn, not gone through


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [1, 1, 0, 0], [3, 2, 2, 1, 1, 4], [5]])
def test_weights_are_the_published_ones(counts):
    """(1 − f/max − median + 1)^(4 · ln N), the median being that of 1 − f/max (Božič et al. 2021)."""
    used = np.array(counts) / max(1, *counts)
    expected = (1 - used - np.median(1 - used) + 1) ** (4 * np.log(len(counts)))
    np.testing.assert_allclose(np.exp(frequency_log_weights(np.array(counts))), expected, rtol=1e-12)


@pytest.mark.parametrize(("labels", "missing"), [([0, 0], "defective"), ([1, 2], "good"), ([], "defective")])
def test_one_sided_data_is_an_error(labels, missing):
    with pytest.raises(DatasetError, match=f"images is {missing}"):
        draw_order("alternate", labels, 4, [0])


# === Good images with a defect ===

LABELS = [0, 1, 0, 0, 2, 0, 1]
OUTLINED = [False, True, False, False, True, False, False]


def turns_of(sampling, draws=400, labels=LABELS, **chances):
    return sample_order(sampling, labels, OUTLINED[: len(labels)], draws, [0, 1], **chances)


@pytest.mark.parametrize("sampling", IN_TURN)
def test_an_added_defect_replaces_a_defective_image(sampling):
    """A transplanted one is that of the image itself, if it has a drawn mask."""
    images, defect_sources = turns_of(sampling, synthetic=0.5, transplant=1.0)
    labels, plain = np.array(LABELS)[images], draw_order(sampling, LABELS, 400, [0, 1])
    np.testing.assert_array_equal(images[1::2], plain[1::2])  # the good ones keep theirs
    assert set(defect_sources[1::2]) == {UNCHANGED}
    images, defect_sources, labels, plain = (
        values[::2] for values in (images, defect_sources, labels, plain)
    )
    made = defect_sources == SYNTHETIC
    assert 70 < made.sum() < 130  # half of 200; 4 standard deviations are 28
    moved = ~made & np.array(OUTLINED)[plain]
    assert (defect_sources[moved] == plain[moved]).all()
    assert not labels[made | moved].any()
    assert np.bincount(images[made | moved], minlength=7)[[0, 2, 3, 5]].min() >= (made | moved).sum() // 5
    np.testing.assert_array_equal(images[~made & ~moved], plain[~made & ~moved])


@pytest.mark.parametrize("sampling", IN_TURN)
def test_of_good_images_alone_every_other_one_gets_a_defect(sampling):
    images, defect_sources = sample_order(
        sampling, [0] * 5, [False] * 5, 20, [0], synthetic=0.1, transplant=1.0
    )
    assert defect_sources.tolist() == [SYNTHETIC, UNCHANGED] * 10
    assert all(np.bincount(turns, minlength=5).tolist() == [2] * 5 for turns in (images[::2], images[1::2]))


@pytest.mark.parametrize("sampling", [*IN_TURN, "shuffled"])
@pytest.mark.parametrize("labels", [LABELS, [0, 0, 0]])
def test_feature_noise_replaces_synthetic_defects(sampling, labels):
    plain = turns_of(sampling, 2000, labels, synthetic=0.5, transplant=0.5)
    images, defect_sources = turns_of(
        sampling, 2000, labels, synthetic=0.5, transplant=0.5, feature_noise=0.3
    )
    np.testing.assert_array_equal(images, plain.images)
    noise = defect_sources == FEATURE_NOISE
    assert set(plain.defect_sources[noise]) == {SYNTHETIC}
    np.testing.assert_array_equal(defect_sources[~noise], plain.defect_sources[~noise])
    assert noise.sum() / np.sum(plain.defect_sources == SYNTHETIC) == pytest.approx(0.3, abs=0.07)


def test_shuffled_gives_good_images_a_defect_in_their_own_turn():
    images, defect_sources = turns_of("shuffled", 700, synthetic=0.5, transplant=0.5)
    np.testing.assert_array_equal(images, draw_order("shuffled", LABELS, 700, [0, 1]))
    good = np.array(LABELS)[images] == 0
    assert set(defect_sources[~good]) == {UNCHANGED}
    assert np.mean(defect_sources[good] == SYNTHETIC) == pytest.approx(0.5, abs=0.1)
    assert np.mean(defect_sources[good] >= 0) == pytest.approx(0.25, abs=0.1)
    assert set(defect_sources[defect_sources >= 0]) == {1, 4}  # those with an outline


@pytest.mark.parametrize("sampling", [*IN_TURN, "shuffled"])
@pytest.mark.parametrize("labels", [LABELS, [0, 0, 0]])
def test_a_longer_order_of_turns_begins_with_the_shorter_ones(sampling, labels):
    chances = {"synthetic": 0.4, "transplant": 0.4, "feature_noise": 0.4}
    short, long = (turns_of(sampling, draws, labels, **chances) for draws in (21, 70))
    for ours, theirs in zip(short, long, strict=True):
        np.testing.assert_array_equal(ours, theirs[:21])
