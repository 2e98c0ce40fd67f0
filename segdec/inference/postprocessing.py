"""Turns logits into a prediction: label, score, mask at the photograph's size, regions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.config import Calibration, ModelConfig
from segdec.engines import check_finite
from segdec.errors import ConfigError
from segdec.imaging.polygons import Ring, trace_outlines
from segdec.inference.mask_refinement import MAX_LOG_ODDS, refine_scores, to_log_odds, to_scores
from segdec.inference.preprocessing import cell_area, prepare_area, resize, restore_mask, scaled_size
from segdec.inference.region_classes import assign_classes, max_class_scores
from segdec.runtime.identifiers import REVIEW

MIN_MASK_THRESHOLD = 0.01
"""Lowest mask threshold of a defective photograph whose mask scores do not reach the model's."""


@dataclass(frozen=True)
class Region:
    """One connected defect, in pixels of the photograph.

    Attributes:
        bbox: x and y of the upper left corner, width, height.
        area_px: Number of defect pixels.
        score_max: Highest mask score inside.
        polygon: Outline along the edges of its pixels as (x, y) corners; it encloses the holes, too.
        label: Class of the defect; None for a model with one mask for all classes.
        holes: Outlines of the holes.
    """

    bbox: tuple[int, int, int, int]
    area_px: int
    score_max: float
    polygon: Ring
    label: str | None = None
    holes: tuple[Ring, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """The result for one photograph; the service returns it as `segdec.schemas.Answer`.

    Attributes:
        label: `good` (the first class), a defect class, or `review`: between the two thresholds, or instead
            of `good` if the photograph is unlike those of the training. The class is the most probable one,
            or with a mask per class that of the region with the highest score.
        score: 1 − P(good).
        log_odds: ln(P(defect) / P(good)) before calibration.
        threshold: Score from which the photograph is defective.
        review_threshold: Score from which it needs review; None without a review range.
        probabilities: Class → probability; they sum to 1.
        mask: uint8 [H, W], 255 where a mask score is at or above `mask_threshold`.
        mask_scores: float32 [H, W], 0…1; refined by the photograph if the model's thresholds say so.
        grid_scores: float32 [h/s, w/s], 0…1: the network's own mask scores, one for each s × s px of the
            prepared photograph [h, w]; s is the network's `mask_stride`.
        mask_threshold: Mask score from which a pixel belongs to a defect: that of the model, raised by its
            `mask_share` unless the label is `good`. If a defective photograph does not reach it, half of its
            highest score, so that it has a region.
        regions: Connected parts of the mask, highest score first.
        area: uint8 [H, W], 255 = inspected; None = everywhere. Outside, scores are 0.
        class_mask: uint8 [H, W], index of each pixel's class, 0 where `mask` is 0; None for a model with one
            mask for all classes. `mask_scores` and `grid_scores` are the maximum over all classes.
        grid_classes: uint8 [h/s, w/s], class index of each grid score; None for a model with one mask.
        network_scores: float32 [H, W], 0…1: mask scores before they are refined; None for `mask_scores`.
    """

    label: str
    score: float
    log_odds: float
    threshold: float
    review_threshold: float | None
    probabilities: dict[str, float]
    mask: NDArray[np.uint8]
    mask_scores: NDArray[np.float32]
    grid_scores: NDArray[np.float32]
    mask_threshold: float
    regions: tuple[Region, ...]
    area: NDArray[np.uint8] | None = None
    class_mask: NDArray[np.uint8] | None = None
    grid_classes: NDArray[np.uint8] | None = None
    network_scores: NDArray[np.float32] | None = None


def interpret(
    mask_logits: NDArray[np.float32],
    class_logits: NDArray[np.float32],
    size: tuple[int, int],
    config: ModelConfig,
    *,
    threshold: float | None = None,
    unlike: bool = False,
    photograph: NDArray[np.uint8] | None = None,
) -> Prediction:
    """Turns the logits of one photograph into its prediction.

    Args:
        mask_logits: float32 [h/s, w/s, M]; s is the network's `mask_stride`, M its number of masks.
        class_logits: float32 [C], the good class first.
        size: Height and width of the photograph, px.
        config: The model's classes, input policy, calibration and thresholds.
        threshold: Replaces the model's image threshold, 0…1, and the range for review.
        unlike: Whether the photograph is unlike those of the training: the label is then not `good`, but
            `review`.
        photograph: [h, w, C], the network's input, by which the mask is refined if the model says so.

    Raises:
        ConfigError: If `threshold` is not in 0…1.
        SegdecError: If a logit is not a finite number.
    """
    check_finite(mask_logits)
    check_finite(class_logits)
    limit = config.thresholds.score if threshold is None else float(threshold)
    if not 0.0 <= limit <= 1.0:
        raise ConfigError(f"threshold={limit} is not a score. Expected a number from 0 to 1.")
    review = config.thresholds.review if threshold is None else None
    odds, probabilities = _calibrated(class_logits, config.calibration)
    score = min(float(probabilities[1:].sum()), 1.0)  # 1 − P(good), exact even if P(good) rounds to 1
    doubtful = score < limit and (unlike or (review is not None and review <= score))
    grid_scores, grid_classes, mask_scores, classes = _mask_scores(mask_logits, size, config)
    area = config.input.inspected_area(*size)
    if area is not None:
        mask_scores[area == 0] = 0.0
        grid_scores = np.where(_grid_area(config, size), grid_scores, np.float32(0.0))
    mask_threshold, highest = config.thresholds.mask, float(mask_scores.max())
    can_change = classes is None and (doubtful or score >= limit)  # else the label could change, too
    if score >= limit and MIN_MASK_THRESHOLD <= highest < mask_threshold:
        mask_threshold = max(highest / 2, MIN_MASK_THRESHOLD)
    elif can_change and highest > mask_threshold:
        mask_threshold = raise_threshold(mask_threshold, highest, config.thresholds.mask_share)
    network_scores = mask_scores
    if photograph is not None and config.thresholds.refine_mask and can_change and highest >= mask_threshold:
        mask_scores = _refine_scores(mask_scores, grid_scores, photograph, mask_threshold, config)
    mask = np.where(mask_scores >= mask_threshold, np.uint8(255), np.uint8(0))
    if area is not None:
        mask &= area  # even if the mask threshold is 0
    class_mask = None
    if classes is None:
        regions = find_regions(mask, mask_scores)
    else:
        min_px = cell_area(config.input, *size, config.network.mask_stride)
        class_mask = assign_classes(mask, mask_scores, classes, min_px)
        regions = _classed_regions(class_mask, mask_scores, config.classes)
    likely = config.classes[1 + int(probabilities[1:].argmax())]
    worst = (regions[0].label if regions else None) or likely
    defect_or_good = config.classes[0] if score < limit else worst
    return Prediction(
        label=REVIEW if doubtful else defect_or_good,
        score=score,
        log_odds=odds,
        threshold=limit,
        review_threshold=review,
        probabilities=dict(zip(config.classes, probabilities.tolist(), strict=True)),
        mask=mask,
        mask_scores=mask_scores,
        grid_scores=grid_scores,
        mask_threshold=mask_threshold,
        regions=regions,
        area=area,
        class_mask=class_mask,
        grid_classes=grid_classes,
        network_scores=network_scores,
    )


def _mask_scores(
    mask_logits: NDArray[np.float32], size: tuple[int, int], config: ModelConfig
) -> tuple[NDArray[np.float32], NDArray[np.uint8] | None, NDArray[np.float32], NDArray[np.uint8] | None]:
    """Returns scores, and classes if M > 1, on the logits' grid [h/s, w/s], then on the photograph [H, W]."""

    def restore(scores: NDArray[np.float32]) -> NDArray[np.float32]:
        return restore_mask(scores, config.input, *size, config.network.mask_stride)

    if mask_logits.shape[2] == 1:
        grid_scores = sigmoid(mask_logits[..., 0])
        return grid_scores, None, restore(grid_scores), None
    restored = max_class_scores(mask_logits, lambda logits: restore(sigmoid(logits)))
    return *max_class_scores(mask_logits, sigmoid), *restored


def raise_threshold(threshold: float, highest: float, share: float) -> float:
    """Returns a mask threshold, moved by a `share` of the way to the `highest` mask score, in log-odds."""
    if not share:
        return threshold
    lower, upper = to_log_odds(np.array([threshold, highest], np.float32))
    raised = to_scores(lower + share * (min(upper, MAX_LOG_ODDS) - lower))
    return float(np.clip(raised, threshold, highest))


def _refine_scores(
    mask_scores: NDArray[np.float32],
    grid_scores: NDArray[np.float32],
    photograph: NDArray[np.uint8],
    threshold: float,
    config: ModelConfig,
) -> NDArray[np.float32]:
    """Returns refined scores [H, W], at or above the threshold at some pixel as before."""
    height, width = mask_scores.shape
    rows, columns = scaled_size(config.input, height, width)
    prepared = resize(mask_scores[..., None].copy(), rows, columns)
    refine_scores(prepared[..., 0], grid_scores, photograph, threshold)
    refined = resize(prepared, height, width)[..., 0]
    if (area := config.input.inspected_area(height, width)) is not None:
        refined[area == 0] = 0.0
    return refined if refined.max() >= threshold else mask_scores


def _grid_area(config: ModelConfig, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Returns which grid cells overlap the inspected area, [h/s, w/s]."""
    prepared, stride = prepare_area(config.input, *size), config.network.mask_stride
    if prepared is None:
        return np.ones((1, 1), np.bool_)
    rows, columns = (side // stride for side in prepared.shape)
    return np.asarray(prepared.reshape(rows, stride, columns, stride).any(axis=(1, 3)))


def find_regions(mask: NDArray[np.uint8], scores: NDArray[np.float32]) -> tuple[Region, ...]:
    """Finds the 8-connected regions of a mask [H, W], above 0 = defect: highest score first, then largest."""
    count, parts, boxes, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    numbered = np.asarray(parts, dtype=np.int32)  # [H, W], 0 = no defect
    stats = np.asarray(boxes).tolist()  # x, y, width, height, area
    return _ordered(_region(numbered, scores, number, stats[number]) for number in range(1, count))


def _ordered(regions: Iterable[Region]) -> tuple[Region, ...]:
    return tuple(sorted(regions, key=lambda region: (-region.score_max, -region.area_px, region.bbox)))


def _classed_regions(
    class_mask: NDArray[np.uint8], scores: NDArray[np.float32], classes: Sequence[str]
) -> tuple[Region, ...]:
    """Returns the connected regions of all classes in one order."""
    all_regions: list[Region] = []
    for number, name in enumerate(classes[1:], start=1):
        regions = find_regions((class_mask == number).view(np.uint8), scores)
        all_regions += [replace(region, label=name) for region in regions]
    return _ordered(all_regions)


def _calibrated(logits: NDArray[np.float32], calibration: Calibration) -> tuple[float, NDArray[np.float64]]:
    """Returns ln(P(defect) / P(good)) before calibration, and calibrated class probabilities [C]."""
    defects = logits[1:].astype(np.float64)
    total = np.logaddexp.reduce(defects)
    odds = float(total - np.float64(logits[0]))  # exact even if one probability rounds to 1
    moved = calibration.slope * odds + calibration.intercept
    good, defect = (1 / (1 + np.exp(np.minimum(signed, 700.0))) for signed in (moved, -moved))
    return odds, np.concatenate([[good], defect * np.exp(defects - total)])


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns 1 / (1 + exp(−x)) of each logit, without overflow."""
    small = np.abs(logits)
    np.exp(np.negative(small, out=small), out=small)  # in place, because these arrays are large
    scores = np.where(logits >= 0, np.float32(1.0), small)
    small += 1.0
    return np.divide(scores, small, out=scores)


def _region(
    numbered: NDArray[np.int32], scores: NDArray[np.float32], number: int, stats: Sequence[int]
) -> Region:
    x, y, width, height, area_px = stats
    window = np.s_[y : y + height, x : x + width]
    inside = (numbered[window] == number).view(np.uint8)
    score_max = cv2.minMaxLoc(scores[window], inside)[1]
    [(polygon, holes)] = trace_outlines(inside, x, y)
    return Region((x, y, width, height), area_px, score_max, polygon, holes=tuple(holes))
