"""Refinement of mask scores; see test_postprocessing.py for the prediction that it is part of."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.inference import mask_refinement
from segdec.inference.mask_refinement import MAX_PIXELS, refine_scores
from segdec.inference.postprocessing import sigmoid

STRIDE = 8


def part(height: int, width: int, channels: int = 1) -> NDArray[np.uint8]:
    """A part with slight noise."""
    noise = np.random.default_rng(0).integers(-4, 5, (height, width, channels))
    return (120 + noise).astype(np.uint8)


def scores_of(marked: NDArray[np.bool_], high: float = 3.0, low: float = -3.0) -> NDArray[np.float32]:
    return sigmoid(np.where(marked, high, low).astype(np.float32))


def enlarge(grid: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.kron(grid, np.ones((STRIDE, STRIDE), np.float32))


def iou(scores: NDArray[np.float32], truth: NDArray[np.bool_]) -> float:
    marked = scores >= 0.5
    return float(np.count_nonzero(marked & truth) / np.count_nonzero(marked | truth))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("width", "before", "after"), [(8, 0.75, 0.9), (20, 0.88, 0.99)])
def test_a_coarse_mask_follows_the_defect(channels: int, width: int, before: float, after: float) -> None:
    photograph, truth = part(96, 128, channels), np.zeros((96, 128), np.bool_)
    truth[42 : 42 + width, 36:84] = True
    photograph[truth] -= 60
    covered = cv2.resize(truth.astype(np.float32), (16, 12), interpolation=cv2.INTER_AREA)
    logits = 6 * covered / covered.max() - 3
    scores = sigmoid(cv2.resize(logits, (128, 96)))
    assert iou(scores, truth) < before
    refine_scores(scores, sigmoid(logits), photograph, 0.5)
    assert iou(scores, truth) > after


def test_far_from_regions_nothing_changes() -> None:
    photograph, grid = part(160, 160), np.zeros((20, 20), np.bool_)
    photograph[40:48, 40:48] = 0
    grid[4:6, 4:6] = True
    before = enlarge(scores_of(grid))
    after = before.copy()
    refine_scores(after, scores_of(grid), photograph, 0.5)
    changed = np.argwhere(after != before)
    assert changed.min() >= 8 and changed.max() < 72  # three cells around the region


@pytest.mark.parametrize("size", [(8, 8), (8, 400), (1, 77), (64, 64)])
@pytest.mark.parametrize("marked", ["all", "one"])
@pytest.mark.parametrize("constant", [True, False])
def test_degenerate_photographs_keep_a_finite_region(size, marked, constant) -> None:
    rows, columns = (-(-side // STRIDE) for side in size)
    photograph = part(STRIDE * rows, STRIDE * columns)
    if constant:
        photograph[:] = 0
    grid = np.full((rows, columns), marked == "all")
    grid[0, 0] = True
    scores = enlarge(scores_of(grid, 1000, -1000))[: size[0], : size[1]].copy()
    refine_scores(scores, scores_of(grid, 1000, -1000), photograph, 0.5)
    assert np.isfinite(scores).all() and scores.min() >= 0 and 0.5 <= scores.max() <= 1


def test_a_region_in_the_padding_does_not_count() -> None:
    """The region goes around the lower right corner of the photograph, which is padded on both sides."""
    grid = np.zeros((20, 20), np.bool_)
    for cell in range(0, 10, 2):
        grid[14 - cell, 4 + cell] = True
    photograph = part(160, 160)
    before = enlarge(scores_of(grid))[:32, :56].copy()
    after = before.copy()
    refine_scores(after, scores_of(grid), photograph, 0.5)
    assert np.array_equal(after, before)


def test_compared_pixels_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A photograph of many regions, and one with a region that is larger than the limit."""
    compared = []
    describe = mask_refinement.describe_pixels
    monkeypatch.setattr(
        mask_refinement, "describe_pixels", lambda image: compared.append(image.size) or describe(image)
    )
    grid = np.zeros((128, 128), np.bool_)
    grid[4::8, 4::8] = True
    photograph, strengths = part(1024, 1024), scores_of(grid)
    strengths[100, 100] = 0.99
    scores = enlarge(strengths)
    refine_scores(scores, strengths, photograph, 0.5)
    assert len(compared) == MAX_PIXELS // 56**2
    assert not (scores[776:832, 776:832] == enlarge(strengths)[776:832, 776:832]).all()  # the highest score
    compared.clear()
    whole = scores_of(np.ones((128, 128), np.bool_))
    before = enlarge(whole)
    refine_scores(before, whole, photograph, 0.5)
    assert compared == []
    assert (before == enlarge(whole)).all()
