"""Validation during training: the key that selects the best weights, and the thresholds at the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from datasets.sample import DataSetItem, Sample
from segdec.artifact import OperatingPoint
from segdec.config import ModelConfig, Thresholds
from segdec.predictor import Predictor
from segdec.runtime.counts import count_of
from training.config import ThresholdConfig
from training.data.array_cache import ArrayCache
from training.data.logits_cache import LogitsCache
from training.data.reading_pool import ReadingPool
from training.data.synthetic_validation import ValidationImages
from training.metrics.calibration import apply_calibration
from training.metrics.classification import auroc, average_precision, count_errors
from training.metrics.evaluation import Parts, evaluate
from training.metrics.operating_points import find_operating_points
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.three_outcomes import choose_outcomes
from training.metrics.thresholds import (
    ScoredPhotographs,
    choose_mask_threshold,
    concatenate_scored,
    log_odds_at,
)
from training.stages import Stage

CERTAIN = 1e-7
"""Scores are clipped to this distance from 0 and 1 in the score loss."""


@dataclass(frozen=True)
class Validation:
    """The result of one pass over the validation images: `scores` [N], with the current calibration.

    The mask threshold is chosen on the images of `selection_pixels`; None for `pixels`.
    """

    photographs: ScoredPhotographs
    scores: NDArray[np.float64]
    pixels: PixelHistogram
    selection_pixels: PixelHistogram | None = None

    @property
    def labels(self) -> NDArray[np.int64]:
        """Class indices [N]."""
        return self.photographs.labels

    def metrics(self) -> dict[str, float | None]:
        """Returns AP, AUROC, cross-entropy of the image score, and pixel F1 at the best mask threshold."""
        return {
            "average_precision": average_precision(self.labels, self.scores),
            "auroc": auroc(self.labels, self.scores),
            "score_loss": self.score_loss(),
            "pixel_f1": self.pixel_f1(),
        }

    def pixel_f1(self) -> float | None:
        """Returns the pooled pixel F1 at the best mask threshold; None without a defect pixel."""
        f1 = self.pixels.f1_at_edges()
        return None if f1 is None else float(f1.max())

    def score_loss(self) -> float:
        """Returns the binary cross-entropy of the image score, nats."""
        scores = np.clip(self.scores, CERTAIN, 1.0 - CERTAIN)
        return float(-np.mean(np.where(self.labels != 0, np.log(scores), np.log1p(-scores))))

    def key(self, stage: Stage) -> tuple[float, float]:
        """Returns the key that the best weights of a stage maximise.

        With decision training: AP, then the score loss, since AP soon reaches 1 on a small validation split.
        With segmentation alone: pixel F1.
        """
        if not stage.trains_decision:
            return self.pixel_f1() or 0.0, 0.0
        return average_precision(self.labels, self.scores) or 0.0, -self.score_loss()


class Validator:
    """Runs the model over the validation images, with the code of inference.

    `predictor` is the first one, `images` are its images: `synthetic` ones, which then select the weights, if
    all of them are good.
    """

    def __init__(
        self,
        parts: Parts,
        read: Callable[[DataSetItem], Sample],
        batch_size: int,
        pool: ReadingPool,
        synthetic: ValidationImages | None = None,
    ) -> None:
        self._parts, self.read = parts, read
        self.predictor, items = parts[0]
        self.images = synthetic or ValidationImages(items, read)
        self.has_synthetic = synthetic is not None
        self._batch_size = batch_size
        self.pool = pool

    def parts_with(self, model: ModelConfig) -> Parts:
        """Returns the real validation images with their predictors, for the thresholds of `model`."""
        return [(Predictor(predictor.engine, model), items) for predictor, items in self._parts]

    def store_logits(self, cache: ArrayCache) -> None:
        """Stores the logits of the real images from now on; the weights must not change any more."""
        self._parts = [
            (Predictor(LogitsCache(predictor.engine, cache), predictor.config), items)
            for predictor, items in self._parts
        ]

    def measure(self) -> Validation:
        """Evaluates the images that select the weights."""
        if self.has_synthetic:
            return self._measure([(self.predictor, self.images.items)], self.images.read)
        return self._measure(self._parts, self.read)

    def _measure(self, parts: Parts, read: Callable[[DataSetItem], Sample]) -> Validation:
        # The mask threshold is chosen on the network's own mask scores.
        parts = [
            (predictor.with_config(predictor.config.with_mask_refinement(0.0, refine=False)), items)
            for predictor, items in parts
        ]
        evaluation = evaluate(
            parts, read, batch_size=self._batch_size, progress=False, resamples=0, pool=self.pool
        )
        scores = np.array([result.score for result in evaluation.results], np.float64)
        return Validation(collect_scored(evaluation.results), scores, evaluation.mask_scores)

    def measure_real(self) -> Validation:
        """Evaluates the real validation images, and those that select the weights if they differ."""
        real = self._measure(self._parts, self.read)
        return replace(real, selection_pixels=self.measure().pixels) if self.has_synthetic else real


@dataclass(frozen=True)
class ChosenThresholds:
    """A trained model with its calibration and thresholds, its metrics on validation, and warnings.

    `chosen_by` describes the images that the thresholds were chosen on; `scored` are these images.
    """

    model: ModelConfig
    validation: dict[str, float | None]
    chosen_by: str
    notes: tuple[str, ...]
    points: tuple[OperatingPoint, ...]
    scored: ScoredPhotographs


def choose_thresholds(
    model: ModelConfig,
    validation: Validation,
    settings: ThresholdConfig,
    others: Sequence[ScoredPhotographs] = (),
    *,
    balanced: bool = True,
) -> ChosenThresholds:
    """Chooses calibration and thresholds of a model.

    `others` are further images that were not used to train the network that scored them; for `balanced` see
    `choose_score_thresholds`.
    """
    scored = concatenate_scored([validation.photographs, *others])
    score = choose_outcomes(scored, settings, balanced=balanced)
    default = model.thresholds.mask
    if not model.network.heads:  # the highest mask logit is the log-odds of the score
        lowest = score.threshold if score.review is None else score.review
        default = float(expit(log_odds_at(score.calibration, lowest)))
    mask, note = choose_mask_threshold(validation.selection_pixels or validation.pixels, default)
    thresholds = Thresholds(score=score.threshold, mask=mask, review=score.review)
    scores = apply_calibration(score.calibration, validation.photographs.log_odds)
    return ChosenThresholds(
        model=model.model_copy(update={"calibration": score.calibration, "thresholds": thresholds}),
        validation={
            **replace(validation, scores=scores).metrics(),
            **measure_errors(validation.labels, scores, thresholds),
        },
        chosen_by=_describe(validation.photographs, others, folds=model.network.folds > 1),
        notes=(*score.notes, *([note] if note else [])),
        points=find_operating_points(scored, score, settings),
        scored=scored,
    )


def measure_errors(
    labels: NDArray[np.int64], scores: NDArray[np.float64], thresholds: Thresholds
) -> dict[str, float]:
    """Returns the numbers of false positives and false negatives among images [N]."""
    false_positives, _ = count_errors(labels, scores, thresholds.score)
    _, false_negatives = count_errors(labels, scores, thresholds.lowest)
    return {"false_positives": float(false_positives), "false_negatives": float(false_negatives)}


def _describe(own: ScoredPhotographs, others: Sequence[ScoredPhotographs], *, folds: bool) -> str:
    if folds:
        return f"{_count(own)}, each scored by a network built without it"
    text = f"{_count(own)} of validation"
    if not others:
        return text
    scored, networks = _count(concatenate_scored(others)), count_of(len(others), "other network")
    return f"{text} and {scored} of training, scored by {networks}"


def _count(photographs: ScoredPhotographs) -> str:
    return f"{len(photographs.good)} good and {len(photographs.defective)} defective photographs"


def collect_scored(results: Sequence[PhotographResult]) -> ScoredPhotographs:
    """Returns labels, log-odds and groups of evaluated images."""
    return ScoredPhotographs(
        np.array([result.truth for result in results], np.int64),
        np.array([result.log_odds for result in results], np.float64),
        tuple(result.group for result in results),
    )
