"""Comparison of inference engines with the trained network, on images."""

from collections.abc import Callable, Sequence

import numpy as np

from datasets.sample import DataSetItem, Sample
from segdec.artifact.variants import Speed, ValidationMetrics, Variant, Verification
from segdec.errors import ArtifactError
from segdec.inference.postprocessing import Prediction
from segdec.predictor import Predictor
from training.metrics.classification import average_precision, count_errors

ALLOWED_LOSS = 0.002
"""Maximum loss of average precision of an engine, 0…1."""


class Verifier:
    """Compares engines with the network in memory, and rejects worse ones; `force` accepts and marks them."""

    def __init__(
        self,
        reference: Predictor,
        items: Sequence[DataSetItem],
        read: Callable[[DataSetItem], Sample],
        *,
        force: bool = False,
    ) -> None:
        self._reference = reference
        self._items = items
        self._read = read
        self._force = force

    def __call__(self, name: str, predictor: Predictor) -> Verification:
        """Compares the predictions for all images.

        Raises:
            ArtifactError: If the engine changes a label or loses more than `ALLOWED_LOSS`, without `force`.
        """
        pairs = [self._predict(item, predictor) for item in self._items]
        labels = [item.label for item in self._items]
        masks = (float(np.abs(one.grid_scores - other.grid_scores).max()) for one, other in pairs)
        measured = Verification(
            photographs=len(pairs),
            score_difference=max(abs(one.score - other.score) for one, other in pairs),
            mask_difference=max(masks),
            decisions_changed=sum(one.label != other.label for one, other in pairs),
            before=self._figures(labels, [one.score for one, _ in pairs]),
            after=self._figures(labels, [other.score for _, other in pairs]),
        )
        if not measured.decisions_changed and _loss(measured) <= ALLOWED_LOSS:
            return measured
        if not self._force:
            raise ArtifactError(_explain(name, measured))
        return measured.model_copy(update={"forced": True})

    def _predict(self, item: DataSetItem, predictor: Predictor) -> tuple[Prediction, Prediction]:
        image = self._read(item).image
        return self._reference.predict([image])[0], predictor.predict([image])[0]

    def _figures(self, labels: Sequence[int], scores: Sequence[float]) -> ValidationMetrics:
        limits = self._reference.config.thresholds
        alarms, _ = count_errors(labels, scores, limits.score)
        _, misses = count_errors(labels, scores, limits.lowest)
        return ValidationMetrics(
            average_precision=average_precision(labels, scores), missed=misses, false_alarms=alarms
        )


def describe_variant(name: str, variant: Variant) -> str:
    """Returns a line for the terminal."""
    measured = variant.verification
    if measured is None:
        return f"{name}: {variant.precision}, not compared with the network on photographs"
    forced = ", forced" if measured.forced else ""
    return (
        f"{name}: {variant.precision}, AP {_number(measured.before)} → {_number(measured.after)}, "
        f"{measured.decisions_changed} of {measured.photographs} photographs with another label, "
        f"scores by {measured.score_difference:.2g}, masks by {measured.mask_difference:.2g} at most{forced}"
    )


def describe_speed(speed: Speed, preferred: str) -> str:
    """Returns a line for the terminal."""
    took = ", ".join(f"{name} {cpu_ms:g} ms" for name, cpu_ms in speed.cpu_ms.items())
    return (
        f"processor time of {speed.height} × {speed.width} px: {took}; '{preferred}' runs the model unless "
        "--engine chooses another one"
    )


def _number(metrics: ValidationMetrics) -> str:
    return "–" if metrics.average_precision is None else f"{metrics.average_precision:.4f}"


def _loss(measured: Verification) -> float:
    return (measured.before.average_precision or 0.0) - (measured.after.average_precision or 0.0)


def _explain(name: str, measured: Verification) -> str:
    return (
        f"The engine '{name}' gives {measured.decisions_changed} of {measured.photographs} validation "
        f"photographs another label and loses {100 * _loss(measured):.2f} points of average precision. "
        f"Expected the same labels and at most {100 * ALLOWED_LOSS:g} points; no artifact was written. "
        "Remove it from --engines, or export it anyway with --force."
    )
