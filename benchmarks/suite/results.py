"""Results of the suite, one JSON file each, so that an interrupted suite continues."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from segdec.errors import RunError
from segdec.runtime.files import write_text_atomic


@dataclass(frozen=True, kw_only=True)
class Result:
    """A measurement on the test photographs of a data set.

    Attributes:
        name: Name of the data set.
        settings: What was measured; results with different settings are not comparable.
        seconds: Duration of the training.
    """

    name: str
    settings: dict[str, Any]
    average_precision: float
    auroc: float
    seconds: float

    @classmethod
    def load(cls, path: Path, settings: dict[str, Any]) -> Self | None:
        """Reads a result; None if the file does not exist.

        Raises:
            RunError: If it has other settings, or the file is damaged.
        """
        if not path.exists():
            return None
        try:
            result = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} is not a result ({error}). Remove it to measure again.") from error
        if result.settings != settings:
            raise RunError(
                f"{path} was measured with {result.settings}, expected {settings}. Choose another --out."
            )
        return result

    def save(self, path: Path) -> None:
        """Writes the result, atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomic(path, json.dumps(asdict(self), indent=2) + "\n")


@dataclass(frozen=True, kw_only=True)
class FitResult(Result):
    """A measurement of the model that `fit` exported.

    Attributes:
        defects: Defective training photographs; None = all.
        missed, false_alarms, reviews: Test photographs at the thresholds of the model.
        excess_cost: Cost of the misses and false alarms beyond that of the best threshold, in false alarms.
        mask_iou: Over all pixels, at the mask threshold; None without test masks.
        steps: Training steps.
        ms_per_photograph: Median duration of the inference of one photograph, without reading the file.
    """

    defects: int | None
    seed: int
    good: int
    defective: int
    missed: int
    false_alarms: int
    excess_cost: float
    reviews: int
    mask_iou: float | None
    steps: int
    ms_per_photograph: float


def measure_scores(defective: Sequence[bool], scores: Sequence[float]) -> tuple[float, float]:
    """Returns average precision and AUROC of the scores of photographs, both good and defective ones."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    return float(average_precision_score(defective, scores)), float(roc_auc_score(defective, scores))


def lowest_cost(defective: Sequence[bool], scores: Sequence[float], miss_cost: float) -> float:
    """Returns the cost of the best threshold for these scores, in false alarms."""
    defects, values = np.asarray(defective), np.asarray(scores)
    thresholds = [*values, np.inf]
    return min(
        float(miss_cost * (defects & (values < one)).sum() + (~defects & (values >= one)).sum())
        for one in thresholds
    )
