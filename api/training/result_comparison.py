"""Compares the predictions of two finished trainings on the photographs that both were measured on."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from api.errors import RequestError
from api.review.confidence_intervals import Sample
from api.training.schemas import ComparedResult, ResultComparison, ResultRate
from segdec.config import GOOD
from segdec.runtime.csv_cells import restore_text

POPULATION = 1_000_000
"""Parts for which the intervals are: so many that the measured ones do not count."""


class Prediction(NamedTuple):
    """True and predicted label of a photograph."""

    truth: str
    predicted: str

    @property
    def is_correct(self) -> bool:
        """Whether both labels are equal; a photograph for review is not correct."""
        return self.truth == self.predicted


Predictions = Mapping[str, Prediction]
"""By the name of the photograph."""


def read_predictions(content: bytes) -> Predictions:
    """Reads `predictions.csv` of a training; raises a RequestError, 409, if it is not such a file."""
    try:
        lines = list(csv.DictReader(io.StringIO(content.decode("utf-8")), strict=True))
        names = ("name", "true_label", "predicted_label")
        cells = [[restore_text(line[name]) for name in names] for line in lines]
    except (UnicodeDecodeError, csv.Error, KeyError, TypeError, AttributeError) as error:
        detail = "The predictions of a training cannot be read: a worker uploaded a damaged file."
        raise RequestError(409, "bad_predictions", detail) from error
    return {name: Prediction(truth, predicted) for name, truth, predicted in cells}


def compare_results(first: Predictions, second: Predictions) -> ResultComparison:
    """Compares two trainings on their common photographs, with McNemar's exact test on the labels.

    Raises:
        RequestError: 409 if they have no photograph with the same label in common.
    """
    common = [name for name in first if name in second and first[name].truth == second[name].truth]
    if not common:
        detail = (
            "The two trainings were measured on no common photograph. Expected trainings on versions of one "
            "data set."
        )
        raise RequestError(409, "nothing_in_common", detail)
    one, other = [first[name] for name in common], [second[name] for name in common]
    pairs = list(zip(one, other, strict=True))
    only_first = sum(a.is_correct and not b.is_correct for a, b in pairs)
    only_second = sum(b.is_correct and not a.is_correct for a, b in pairs)
    return ResultComparison(
        photographs=len(common),
        left_out=len(first) + len(second) - 2 * len(common),
        first=_measure(one),
        second=_measure(other),
        only_first_correct=only_first,
        only_second_correct=only_second,
        both_wrong=sum(not a.is_correct and not b.is_correct for a, b in pairs),
        p_value=mcnemar_p_value(only_first, only_second),
    )


def mcnemar_p_value(first: int, second: int) -> float:
    """Returns the p-value of equal probabilities for both kinds of disagreement."""
    total = first + second
    logarithm = math.lgamma(total + 1) - total * math.log(2)
    counts = range(min(first, second) + 1)
    tail = math.fsum(
        math.exp(logarithm - math.lgamma(count + 1) - math.lgamma(total - count + 1)) for count in counts
    )
    return min(1.0, 2 * tail)


def _measure(predictions: Sequence[Prediction]) -> ComparedResult:
    good = [each.predicted for each in predictions if each.truth == GOOD]
    defective = [each.predicted for each in predictions if each.truth != GOOD]
    return ComparedResult(
        missed=_rate(sum(label == GOOD for label in defective), len(defective)),
        false_alarms=_rate(sum(label != GOOD for label in good), len(good)),
        correct=_rate(sum(each.is_correct for each in predictions), len(predictions)),
    )


def _rate(count: int, total: int) -> ResultRate:
    bounds = Sample(POPULATION, total, count).estimate()
    return ResultRate(count=count, total=total, low=bounds.low / POPULATION, high=bounds.high / POPULATION)
