"""Chooses whether a model raises its mask threshold for each photograph and refines its masks."""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import product

import numpy as np

from datasets.sample import DataSetItem, Sample
from segdec.config import ModelConfig
from segdec.predictor import Predictor
from training.data.reading_pool import ReadingPool
from training.metrics.evaluation import Parts, is_known, known_part
from training.metrics.pixel_counts import PixelCounts, count_pixels

SHARES = (0.0, 0.2, 0.4)
"""Values of `mask_share` that are compared."""

UNMEASURED_SHARE = 0.4
"""Value of models with a memory if no defect has a mask; then masks are refined, too."""

MAX_PHOTOGRAPHS = 100
"""Limit on the defective photographs that are compared, in random order."""

MAX_PIXELS = 100_000_000
"""After so many no further photograph is compared: one of 16 megapixels takes a second."""


def choose_mask_refinement(
    model: ModelConfig, parts: Parts, read: Callable[[DataSetItem], Sample], pool: ReadingPool
) -> ModelConfig:
    """Returns the model with `mask_share` and `refine_mask` of the highest pooled IoU.

    It is measured on defective photographs with masks that the model's thresholds do not call good, each
    predicted by the predictor of its part, in a thread of the pool. A model with a mask for each class of
    defects uses neither.
    """
    if model.network.mask_channels > 1:
        return model
    candidates = [
        model.with_mask_refinement(share, refine=refine) for refine, share in product((False, True), SHARES)
    ]

    def count(masked: tuple[Predictor, DataSetItem]) -> tuple[list[PixelCounts], int]:
        predictor, item = masked
        sample = read(item)
        height, width = sample.image.shape[:2]
        counts = _count(predictor, sample, candidates) if is_known(sample) else []
        return counts, height * width

    totals, pixels = [PixelCounts()] * len(candidates), 0
    counted = pool.map(count, choose_masked(parts), pool.threads)
    with closing(counted):
        for counts, size in counted:
            totals = [total + one for total, one in zip(totals, counts, strict=True)] if counts else totals
            pixels += size
            if pixels >= MAX_PIXELS:
                break
    rated = [total.iou for total in totals]
    if not any(rated):
        return model.with_mask_refinement(UNMEASURED_SHARE, refine=True) if model.network.memory else model
    return candidates[max(range(len(candidates)), key=lambda index: rated[index] or 0.0)]


def choose_masked(parts: Parts) -> list[tuple[Predictor, DataSetItem]]:
    """Returns at most `MAX_PHOTOGRAPHS` defective photographs with masks, in random order.

    Each has the predictor of its part.
    """
    masked = [
        (predictor, item)
        for predictor, items in parts
        for item in items
        if item.label and item.supervision == "mask"
    ]
    return [masked[index] for index in np.random.default_rng(0).permutation(len(masked))[:MAX_PHOTOGRAPHS]]


def _count(predictor: Predictor, sample: Sample, candidates: Sequence[ModelConfig]) -> list[PixelCounts]:
    """Returns the pixel counts of a photograph for each candidate, all zero if its label is good."""
    last = predictor.with_config(candidates[-1])  # it refines masks, so the logits have the photograph
    logits = last.infer(last.prepare(sample.image)[None])
    counts = []
    for candidate in candidates:
        size = sample.image.shape[0], sample.image.shape[1]
        prediction = predictor.with_config(candidate).interpret(logits, 0, size, unlike=False)
        if prediction.label == candidate.classes[0]:
            return [PixelCounts()] * len(candidates)
        counts.append(count_pixels(known_part(prediction.mask, sample), sample.mask))
    return counts
