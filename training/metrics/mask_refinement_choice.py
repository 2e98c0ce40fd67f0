"""Chooses whether a model raises its mask threshold for each photograph and refines its masks."""

from collections.abc import Callable, Sequence
from itertools import product

from datasets.sample import DataSetItem, Sample
from segdec.config import ModelConfig
from segdec.predictor import Predictor
from training.data.reading_pool import ReadingPool
from training.metrics.evaluation import Parts, known_part
from training.metrics.masked_photographs import measure_masked
from training.metrics.pixel_counts import PixelCounts, count_pixels

SHARES = (0.0, 0.2, 0.4)
"""Values of `mask_share` that are compared."""

UNMEASURED_SHARE = 0.4
"""Value of models with a memory if no defect has a mask; then masks are refined, too."""


def choose_mask_refinement(
    model: ModelConfig, parts: Parts, read: Callable[[DataSetItem], Sample], pool: ReadingPool
) -> ModelConfig:
    """Returns the model with `mask_share` and `refine_mask` of the highest pooled IoU.

    It is measured on the photographs of `measure_masked` that the model's thresholds do not call good. A
    model with a mask for each class of defects uses neither.
    """
    if model.network.mask_channels > 1:
        return model
    candidates = [
        model.with_mask_refinement(share, refine=refine) for refine, share in product((False, True), SHARES)
    ]

    def count(predictor: Predictor, sample: Sample) -> list[PixelCounts]:
        return _count(predictor, sample, candidates)

    totals = [PixelCounts()] * len(candidates)
    for counts in measure_masked(count, parts, read, pool):
        totals = [total + one for total, one in zip(totals, counts, strict=True)]
    rated = [total.iou for total in totals]
    if not any(rated):
        return model.with_mask_refinement(UNMEASURED_SHARE, refine=True) if model.network.memory else model
    return candidates[max(range(len(candidates)), key=lambda index: rated[index] or 0.0)]


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
