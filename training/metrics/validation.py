"""Validation during training: the measure that picks the best weights, and the thresholds at the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from datasets.sample import Record, Sample, labels_of
from segdec.config import ModelConfig
from segdec.predictor import Predictor
from training.config import ThresholdConfig
from training.data.reading_pool import ReadingPool
from training.data.synthetic_validation import ValidationImages
from training.formatting import count_of
from training.metrics.calibration import apply_calibration
from training.metrics.classification import auroc, average_precision, count_errors
from training.metrics.evaluation import evaluate
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.thresholds import (
    ScoredPhotographs,
    best_pixel_f1,
    choose_mask_threshold,
    choose_score_thresholds,
    concatenate_scored,
)
from training.run.panel import draw_picture
from training.stages import Stage

Choice = TypeVar("Choice")

CERTAIN = 1e-7
"""A score nearer to 0 or 1 counts as this near in the score loss."""

PANEL_DEFECTIVE, PANEL_GOOD = 4, 2
"""Images of the panel, at most."""


@dataclass(frozen=True)
class Validation:
    """What one pass over the validation images gave.

    Attributes:
        photographs: What the network said of each [N].
        scores: Image scores [N], as the model was calibrated then.
        pixels: Mask scores of all images, apart for defect and background.
        judged_pixels: Those of other images, which the mask threshold is chosen by; None where it is these.
    """

    photographs: ScoredPhotographs
    scores: NDArray[np.float64]
    pixels: PixelHistogram
    judged_pixels: PixelHistogram | None = None

    @property
    def labels(self) -> NDArray[np.int64]:
        """Class indices [N]."""
        return self.photographs.labels

    def metrics(self) -> dict[str, float | None]:
        """Returns AP, AUROC, the cross-entropy of the image score, and the pixel F1 at its best threshold."""
        return {
            "average_precision": average_precision(self.labels, self.scores),
            "auroc": auroc(self.labels, self.scores),
            "score_loss": self.score_loss(),
            "pixel_f1": self.pixel_f1(),
        }

    def pixel_f1(self) -> float | None:
        """Returns the pooled pixel F1 at the mask threshold that is best for it."""
        return best_pixel_f1(self.pixels)

    def score_loss(self) -> float:
        """Returns the binary cross-entropy of the image score, nats."""
        scores = np.clip(self.scores, CERTAIN, 1.0 - CERTAIN)
        return float(-np.mean(np.where(self.labels != 0, np.log(scores), np.log1p(-scores))))

    def key(self, stage: Stage) -> tuple[float, float]:
        """Returns what the best weights of a stage have most of.

        A stage that trains the decision is judged by AP; the score loss decides among equals, since
        AP is soon perfect on a small validation split. Segmentation alone is judged by pixel F1.
        """
        if not stage.trains_decision:
            return self.pixel_f1() or 0.0, 0.0
        return average_precision(self.labels, self.scores) or 0.0, -self.score_loss()


class Validator:
    """Runs the model over the validation images, exactly as it would be served.

    Args:
        predictor: The network in training.
        records: The validation images.
        read: Reads a record.
        batch_size: Images a forward pass.
        pool: Reads ahead.
        judged: What the weights are chosen by in place of the validation images, if these are all good.

    Attributes:
        has_made_up: Whether the weights are chosen by made-up defects.
    """

    def __init__(
        self,
        predictor: Predictor,
        records: Sequence[Record],
        read: Callable[[Record], Sample],
        batch_size: int,
        pool: ReadingPool,
        judged: ValidationImages | None = None,
    ) -> None:
        self._predictor = predictor
        self._real = ValidationImages(records, read)
        self._judged = judged or self._real
        self.has_synthetic = judged is not None
        self._batch_size = batch_size
        self._pool = pool

    def measure(self) -> Validation:
        """Goes once over the images that the weights are chosen by."""
        return self._measure(self._judged)

    def _measure(self, photographs: ValidationImages) -> Validation:
        evaluation = evaluate(
            self._predictor,
            photographs.records,
            photographs.read,
            batch_size=self._batch_size,
            progress=False,
            resamples=0,
            pool=self._pool,
        )
        scores = np.array([result.score for result in evaluation.results], np.float64)
        return Validation(collect_scored(evaluation.results), scores, evaluation.mask_scores)

    def measure_real(self) -> Validation:
        """Goes once over the validation images themselves, and over those that the weights are chosen by."""
        real = self._measure(self._real)
        return real if self._judged is self._real else replace(real, judged_pixels=self.measure().pixels)

    def panel(self, model: ModelConfig | None = None) -> dict[str, NDArray[np.uint8]]:
        """Returns photograph, true mask and prediction of a few images, always the same, by name.

        Args:
            model: Its calibration and thresholds judge; None for those that training began with.
        """
        predictor = self._predictor if model is None else Predictor(self._predictor.engine, model)
        records = choose_panel_records(self._judged.records)
        samples = [self._judged.read(record) for record in records]
        predictions = predictor.predict([sample.image for sample in samples], batch_size=self._batch_size)
        classes = predictor.config.classes
        return {
            sample.name: draw_picture(sample, prediction, classes[sample.label])
            for sample, prediction in zip(samples, predictions, strict=True)
        }


@dataclass(frozen=True)
class ChosenThresholds:
    """What a model is given when its training has ended.

    Attributes:
        model: With its calibration and thresholds.
        validation: Metrics on the validation photographs, at these limits.
        chosen_by: The photographs that the limits stand on, in words.
        notes: What the user must know of them.
    """

    model: ModelConfig
    validation: dict[str, float | None]
    chosen_by: str
    notes: tuple[str, ...]


def choose_thresholds(
    model: ModelConfig,
    validation: Validation,
    settings: ThresholdConfig,
    others: Sequence[ScoredPhotographs] = (),
    *,
    balanced: bool = True,
) -> ChosenThresholds:
    """Chooses calibration and thresholds of a model.

    Args:
        model: The model.
        validation: What its network said of the validation photographs.
        settings: What the thresholds are chosen by.
        others: Further photographs that the network, or one trained like it, did not learn from.
        balanced: Whether the network was trained on as many defective as good images.
    """
    score = choose_score_thresholds(
        concatenate_scored([validation.photographs, *others]), settings, balanced=balanced
    )
    mask = choose_mask_threshold(validation.judged_pixels or validation.pixels, model.thresholds.mask)
    thresholds = score.thresholds(mask.value)
    scores = apply_calibration(score.calibration, validation.photographs.log_odds)
    false_positives, _ = count_errors(validation.labels, scores, thresholds.score)
    _, false_negatives = count_errors(validation.labels, scores, thresholds.lowest)
    errors = {"false_positives": float(false_positives), "false_negatives": float(false_negatives)}
    return ChosenThresholds(
        model=model.model_copy(update={"calibration": score.calibration, "thresholds": thresholds}),
        validation={**replace(validation, scores=scores).metrics(), **errors},
        chosen_by=_describe(validation.photographs, others),
        notes=(*score.notes, *([mask.note] if mask.note else [])),
    )


def _describe(own: ScoredPhotographs, others: Sequence[ScoredPhotographs]) -> str:
    text = f"{_count(own)} of validation"
    if not others:
        return text
    scored, networks = _count(concatenate_scored(others)), count_of(len(others), "other network")
    return f"{text} and {scored} of training, which {networks} scored"


def _count(photographs: ScoredPhotographs) -> str:
    return f"{len(photographs.good)} good and {len(photographs.defective)} defective photographs"


def collect_scored(results: Sequence[PhotographResult]) -> ScoredPhotographs:
    """Returns what limits are chosen on, of the results of an evaluation."""
    return ScoredPhotographs(
        np.array([result.truth for result in results], np.int64),
        np.array([result.log_odds for result in results], np.float64),
        tuple(result.group for result in results),
    )


def choose_panel_records(records: Sequence[Record]) -> list[Record]:
    """Chooses some defective and some good images, each kind taken evenly from the list."""
    labels = labels_of(records)
    defective, good = (np.flatnonzero(kind).tolist() for kind in (labels != 0, labels == 0))
    return [
        records[place] for place in pick_evenly(defective, PANEL_DEFECTIVE) + pick_evenly(good, PANEL_GOOD)
    ]


def pick_evenly(choice: Sequence[Choice], count: int) -> list[Choice]:
    """Returns at most `count` of `choice`, taken evenly."""
    places = np.linspace(0, len(choice) - 1, min(count, len(choice))).round().astype(int)
    return [choice[place] for place in places.tolist()]
