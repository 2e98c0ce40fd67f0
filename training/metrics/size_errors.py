"""Compares the sizes of defects that a model measures with those of masks."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.sample import DataSetItem, Sample
from segdec.config import ModelConfig, SizeErrors
from segdec.inference.postprocessing import Prediction
from segdec.plan.defects import find_defects
from segdec.plan.mask_parts import MaskPart, connected_parts
from segdec.plan.measuring import Sizes, measure_part
from segdec.predictor import Predictor
from training.data.reading_pool import ReadingPool
from training.metrics.evaluation import Parts, is_known
from training.metrics.mask_refinement_choice import MAX_PIXELS, choose_masked

MIN_DEFECTS = 5
"""With fewer compared defects, errors are unknown."""

RATE = 0.05
"""Share of the defects below the interval, and above it."""


@dataclass(frozen=True)
class SizePair:
    """The largest sizes of the true and of the predicted parts of one defect."""

    true: Sizes
    measured: Sizes


def measure_size_errors(
    model: ModelConfig, parts: Parts, read: Callable[[DataSetItem], Sample], pool: ReadingPool
) -> ModelConfig:
    """Returns the model with its `size_errors`, measured on the photographs of `choose_masked`."""

    def compare(masked: tuple[Predictor, DataSetItem]) -> tuple[list[SizePair], int]:
        predictor, item = masked
        sample = read(item)
        height, width = sample.image.shape[:2]
        if not is_known(sample) or sample.mask is None or sample.ignored is not None:
            return [], height * width
        [prediction] = predictor.with_config(model).predict([sample.image])
        return compare_sizes(prediction, model, sample.mask > 0), height * width

    pairs: list[SizePair] = []
    pixels = 0
    with closing(pool.map(compare, choose_masked(parts), pool.threads)) as compared:
        for found, size in compared:
            pairs += found
            pixels += size
            if pixels >= MAX_PIXELS:
                break
    return model.model_copy(update={"size_errors": summarize(pairs)})


def compare_sizes(prediction: Prediction, model: ModelConfig, truth: NDArray[np.bool_]) -> list[SizePair]:
    """Returns a pair for each defect of the true mask [H, W] that the prediction has, too.

    Parts of both masks that overlap or touch are one defect: a mask may show a scratch as several parts.
    """
    if prediction.label == model.classes[0]:
        return []
    predicted = [defect.part for defect in find_defects(prediction, model)]
    either = truth.copy()
    for part in predicted:
        either[part.window] |= part.pixels
    _, numbers = cv2.connectedComponents(either.view(np.uint8), connectivity=8)
    numbered = np.asarray(numbers, np.int32)
    of_truth, of_prediction = (_largest(each, numbered) for each in (connected_parts(truth), predicted))
    return [SizePair(true, of_prediction[key]) for key, true in of_truth.items() if key in of_prediction]


def _largest(parts: Iterable[MaskPart], numbered: NDArray[np.int32]) -> dict[int, Sizes]:
    """Returns the largest length, width and area of the parts in each connected component."""
    sizes: dict[int, Sizes] = {}
    for part in parts:
        key = int(numbered[part.window][part.pixels][0])
        measured = measure_part(part.pixels)
        former = sizes.get(key, measured)
        sizes[key] = Sizes(*map(max, astuple(former), astuple(measured)))
    return sizes


def summarize(pairs: Sequence[SizePair]) -> SizeErrors | None:
    """Returns the quantiles of the quotients; None with fewer than `MIN_DEFECTS` defects."""
    if len(pairs) < MIN_DEFECTS:
        return None
    rank = max(math.floor(RATE * (len(pairs) + 1)), 1)  # also true for one more defect (split conformal)
    quotients = np.array([astuple(pair.true) for pair in pairs]) / [astuple(pair.measured) for pair in pairs]
    ordered = np.sort(quotients, axis=0)
    length, width, area = zip(ordered[rank - 1].tolist(), ordered[-rank].tolist(), strict=True)
    return SizeErrors(length=length, width=width, area=area, defects=len(pairs))
