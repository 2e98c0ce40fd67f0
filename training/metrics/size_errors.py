"""Compares the sizes of defects that a model measures with those of masks."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass

import cv2
import numpy as np
import scipy.stats
from numpy.typing import NDArray

from datasets.sample import DataSetItem, Sample
from segdec.config import MAX_FACTOR, ModelConfig, SizeErrors
from segdec.inference.postprocessing import Prediction
from segdec.plan.defects import find_defects
from segdec.plan.mask_parts import MaskPart, connected_parts
from segdec.plan.measuring import Sizes
from segdec.predictor import Predictor
from training.data.reading_pool import ReadingPool
from training.metrics.evaluation import Parts
from training.metrics.masked_photographs import measure_masked

MIN_DEFECTS = 5
"""With fewer compared defects, errors are unknown."""

NOT_ABOVE, NOT_BELOW = 0.99, 0.95
"""Probabilities that the size of a further defect is not above and not below its interval.

A defect above may be accepted. Those of later parts differ more from the measured ones than these from each
other: of the test photographs of five data sets, 5 % of the lengths were above.
"""


@dataclass(frozen=True)
class ComparedSizes:
    """Sizes of one defect, each the largest of its parts.

    Attributes:
        true: Of its true mask.
        measured: Of its predicted mask.
        possible: Of the pixels that may belong to it.
    """

    true: Sizes
    measured: Sizes
    possible: Sizes


def measure_size_errors(
    model: ModelConfig, parts: Parts, read: Callable[[DataSetItem], Sample], pool: ReadingPool
) -> ModelConfig:
    """Returns the model with its `size_errors`, measured on the photographs of `measure_masked`."""

    def compare(predictor: Predictor, sample: Sample) -> list[ComparedSizes]:
        if sample.mask is None or sample.ignored is not None:
            return []
        [prediction] = predictor.with_config(model).predict([sample.image])
        return compare_sizes(prediction, model, sample.mask > 0)

    defects = [defect for found in measure_masked(compare, parts, read, pool) for defect in found]
    return model.model_copy(update={"size_errors": estimate_size_errors(defects)})


def compare_sizes(
    prediction: Prediction, model: ModelConfig, truth: NDArray[np.bool_]
) -> list[ComparedSizes]:
    """Compares the defects of a true mask [H, W] that the prediction has, too.

    Parts of both masks that overlap or touch are one defect: a mask may show a scratch as several parts.
    """
    if prediction.label == model.classes[0]:
        return []
    defects = list(find_defects(prediction, model))
    either = truth.copy()
    for defect in defects:
        either[defect.part.window] |= defect.part.pixels
    _, numbers = cv2.connectedComponents(either.view(np.uint8), connectivity=8)
    numbered = np.asarray(numbers, np.int32)

    def number_of(part: MaskPart) -> int:
        return int(numbered[part.window][part.pixels][0])

    true = _largest_sizes((number_of(part), part) for part in connected_parts(truth))
    found = [(number_of(defect.part), defect) for defect in defects]
    measured = _largest_sizes((number, defect.part) for number, defect in found if number in true)
    possible = _largest_sizes((number, defect.possible) for number, defect in found if number in true)
    return [ComparedSizes(true[number], measured[number], possible[number]) for number in measured]


def _largest_sizes(numbered: Iterable[tuple[int, MaskPart]]) -> dict[int, Sizes]:
    """Returns the largest length, width and area of the parts with each number."""
    sizes: dict[int, Sizes] = {}
    for number, part in numbered:
        former = sizes.get(number, part.sizes)
        sizes[number] = Sizes(*map(max, astuple(former), astuple(part.sizes)))
    return sizes


def estimate_size_errors(defects: Sequence[ComparedSizes]) -> SizeErrors | None:
    """Returns the limits of the true sizes of a further defect; None with fewer than `MIN_DEFECTS` defects.

    They are the prediction limits of a normal distribution of the logarithms of the quotients.
    """
    count = len(defects)
    if count < MIN_DEFECTS:
        return None
    true, measured, possible = (
        np.log([astuple(getattr(defect, name)) for defect in defects])
        for name in ("true", "measured", "possible")
    )
    low, high = -_upper_limit(measured - true, NOT_BELOW), _upper_limit(true - possible, NOT_ABOVE)
    low, high = (np.clip(np.exp(limit), 1 / MAX_FACTOR, MAX_FACTOR).tolist() for limit in (low, high))
    length, width, area = zip(low, high, strict=True)
    return SizeErrors(length=length, width=width, area=area, defects=count)


def _upper_limit(values: NDArray[np.float64], probability: float) -> NDArray[np.float64]:
    """Returns what a further row of normally distributed `values` [N, M] does not exceed, [M]."""
    factor = float(scipy.stats.t.ppf(probability, len(values) - 1)) * math.sqrt(1 + 1 / len(values))
    return np.asarray(values.mean(axis=0) + factor * values.std(axis=0, ddof=1))
