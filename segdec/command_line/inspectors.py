"""Inspects image files for the command line, with a model on this machine or with a service."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import (
    UNLIKE_TRAINING,
    PhotographComparison,
    UnlikeAction,
    compare_photograph,
    compare_surface,
    open_artifact,
)
from segdec.artifact.signatures import TrustedKeys
from segdec.engines import ENGINES, choose_engine
from segdec.errors import ConfigError, ImageError, ServiceError
from segdec.images import Photograph, decode_image, read_file, read_image
from segdec.imaging.integrity import Integrity
from segdec.inference.batching import Batcher, PendingPhotograph
from segdec.inference.pipeline import PipelineStage
from segdec.mask_decoding import fill_polygons, unpack_mask
from segdec.plan.findings import Judgement
from segdec.plan.inspection_plan import Plan
from segdec.plan.judgement import PlanJudge
from segdec.plan.sentences import judgement_sentence
from segdec.plan.severity import Severity
from segdec.predictor import Predictor
from segdec.runtime.cli import import_tensorflow
from segdec.runtime.identifiers import REVIEW
from segdec.schemas import Answer, MaskAnswer, MaskForm, ModelDetail

if TYPE_CHECKING:
    from segdec.client import Client

PHOTOGRAPH_ERROR_STATUSES = frozenset({408, 413, 415, 422, 500, 504})
"""Errors of one photograph. After any other error the next photograph would fail as well."""


@dataclass(frozen=True)
class MaskedPhotograph:
    """Photograph, uint8 [H, W, C], masks [H, W] as in `Prediction`, and the classes of `class_mask`."""

    pixels: NDArray[np.uint8]
    mask: NDArray[np.uint8]
    area: NDArray[np.uint8] | None = None
    class_mask: NDArray[np.uint8] | None = None
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class InspectedFile:
    """An image file with the parts of its `Prediction` or `Answer` that the command line uses.

    `region_labels` has the class of each region, None for a model with one mask for all classes. `pictures`
    are None if they were not requested. With an inspection plan `label` is its verdict, with `severity` and
    `reason`, and `model_label` is that of the model; `plan` is None if a service has it.
    """

    path: Path
    label: str
    score: float
    threshold: float
    review_threshold: float | None
    region_labels: tuple[str | None, ...]
    integrity: Integrity
    warnings: tuple[str, ...]
    pictures: MaskedPhotograph | None
    plan: Plan | None = None
    severity: Severity | None = None
    reason: str = ""
    model_label: str | None = None


class Inspector(Protocol):
    """Finds defects in image files.

    Attributes:
        labels: Possible labels.
        has_plan: Whether an inspection plan decides.
        stages: Steps from a path to an `InspectedFile`; each may run in its own thread. They raise ImageError
            if this photograph cannot be inspected, another SegdecError if no photograph can be.
        max_in_flight: How many photographs in progress at once suffice to keep the slowest step busy.
    """

    labels: tuple[str, ...]
    has_plan: bool
    stages: tuple[PipelineStage, ...]
    max_in_flight: int


@dataclass(eq=False, kw_only=True)
class PendingFile(PendingPhotograph):
    """A photograph read from `path`."""

    path: Path
    photograph: Photograph
    comparison: PhotographComparison = field(default_factory=PhotographComparison)


class LocalInspector:
    """Inspects with the artifact in the folder `model`; implements `Inspector`.

    For `threshold`, `max_pixels`, `threads`, `engine` and `accept_webp` see `Predictor` and `decode_image`.
    `trusted` is a file of public keys, one of which must have signed the artifact; None: no signature needed.
    `unlike`: whether to reject a photograph that certainly shows something else than those of the training.
    `plan`: the inspection plan that decides about the defects.

    Raises:
        SegdecError: As `Predictor.load` and `PlanJudge`.

    Attributes:
        notes: Warnings about how the engine runs on this machine.
        identity: Everything that its answers depend on.
    """

    def __init__(
        self,
        model: Path,
        threshold: float | None,
        max_pixels: int,
        *,
        threads: int | None = None,
        engine: str | None = None,
        accept_webp: bool = False,
        trusted: Path | None = None,
        unlike: UnlikeAction = "reject",
        plan: Plan | None = None,
    ) -> None:
        artifact = open_artifact(model, None if trusted is None else TrustedKeys.read(trusted))
        name = choose_engine(model, artifact.manifest.engines_by_speed, engine)  # before the slow import
        if ENGINES[name].package == "tensorflow":
            import_tensorflow()
        predictor = Predictor.from_artifact(artifact, name, threads=threads)
        self._config = predictor.config
        self.has_plan = plan is not None
        self._judge = None if plan is None else PlanJudge(plan, predictor.config)
        self.notes = predictor.notes
        self.identity = {
            "model": f"{artifact.manifest.name} {artifact.manifest.version}",
            "sha256": artifact.sha256,
            "engine": name,
            "threshold": threshold,
            **({} if unlike == "reject" else {UNLIKE_TRAINING: unlike}),
            **({} if plan is None else {"plan": plan.sha256}),
        }
        self.labels = predictor.config.labels if threshold is None else predictor.config.classes
        if plan is not None:
            self.labels = (*predictor.config.classes, REVIEW)
        self._white_level = predictor.config.input.white_level
        self._max_pixels = max_pixels
        self._accept_webp = accept_webp
        self._unlike = unlike
        self._batcher = Batcher(predictor, threshold=threshold, check=self._compare)
        batcher = self._batcher
        self.stages: tuple[PipelineStage, ...] = (self._read, batcher.prepare, batcher.infer, self._interpret)
        self.max_in_flight = self._batcher.max_in_flight + 1

    def _read(self, path: Path) -> PendingFile:
        photograph = read_image(
            path, max_pixels=self._max_pixels, white_level=self._white_level, accept_webp=self._accept_webp
        )
        return PendingFile(photograph.pixels, path=path, photograph=photograph)

    def _compare(self, pending: PendingFile, prepared: NDArray[np.uint8]) -> None:
        pending.comparison = compare_photograph(self._config, pending.photograph, prepared)
        pending.comparison.check(self._unlike)

    def _interpret(self, pending: PendingFile) -> InspectedFile:
        logits, row = pending.inferred.result()
        comparison = compare_surface(self._config, logits.surface_of(row), pending.comparison)
        differences = comparison.check(self._unlike)
        pending.unlike = comparison.reason is not None
        prediction = self._batcher.interpret(pending)
        judgement = None
        if self._judge is not None:
            judgement = self._judge.judge(prediction, unlike=pending.unlike)
        classes = tuple(prediction.probabilities)
        pictures = MaskedPhotograph(
            pending.pixels, prediction.mask, prediction.area, prediction.class_mask, classes
        )
        return InspectedFile(
            path=pending.path,
            label=prediction.label if judgement is None else judgement.label,
            score=prediction.score,
            threshold=prediction.threshold,
            review_threshold=prediction.review_threshold,
            region_labels=tuple(region.label for region in prediction.regions),
            integrity=pending.photograph.integrity,
            warnings=(*pending.photograph.warnings, *differences),
            pictures=pictures,
            model_label=prediction.label,
            **self._describe(judgement),
        )

    def _describe(self, judgement: Judgement | None) -> dict[str, Any]:
        if self._judge is None or judgement is None:
            return {}
        plan = self._judge.plan
        return {"plan": plan, "severity": judgement.severity, "reason": judgement_sentence(judgement, plan)}


class RemoteInspector:
    """Inspects with a service, one request after another; implements `Inspector`.

    The arguments are those of `Client.predict`, and whether to return `pictures`: this requests masks and
    decodes the photographs here too.

    Raises:
        ServiceError: If the service rejects the request or does not answer.
        ConfigError: If it does not serve the model.
    """

    def __init__(
        self,
        client: "Client",
        threshold: float | None,
        *,
        model: str | None = None,
        version: str | None = None,
        pictures: bool = False,
    ) -> None:
        self._client = client
        self._threshold = threshold
        self._model, self._version = model, version
        served = client.models()
        self.labels = served_labels(served, model, review=threshold is None)
        self.has_plan = any(one.plans for one in _find_served(served, model))
        self._mask: MaskForm = choose_mask(served, model) if pictures else "none"
        self._white_levels = {
            (one.name, one.version): one.manifest.get("input", {}).get("white_level") for one in served
        }
        self.stages: tuple[PipelineStage, ...] = (self._inspect,)
        self.max_in_flight = 3  # one before the request, one in it, one after it

    def _inspect(self, path: Path) -> InspectedFile:
        data = read_file(path)
        try:
            answer = self._client.predict(
                data, threshold=self._threshold, mask=self._mask, model=self._model, version=self._version
            )
        except ServiceError as error:
            if error.status not in PHOTOGRAPH_ERROR_STATUSES:
                raise
            raise ImageError(str(error), code=error.code) from error
        pictures = None
        if answer.mask is not None:
            white_level = self._white_levels.get((answer.model.name, answer.model.version))
            # The service has already decided whether to accept WebP.
            photograph = decode_image(data, str(path), white_level=white_level, accept_webp=True)
            pictures = _make_pictures(answer, answer.mask, photograph.pixels)
        return InspectedFile(
            path=path,
            label=answer.decision.label,
            score=answer.decision.score,
            threshold=answer.decision.threshold,
            review_threshold=answer.decision.review_threshold,
            region_labels=tuple(region.label for region in answer.regions),
            integrity=answer.image.integrity,
            warnings=tuple(answer.warnings),
            pictures=pictures,
            model_label=answer.decision.model_label,
            severity=None if answer.plan is None else answer.plan.severity,
            reason="" if answer.plan is None else answer.plan.sentence,
        )


def _make_pictures(answer: Answer, mask: MaskAnswer, pixels: NDArray[np.uint8]) -> MaskedPhotograph:
    pixel_classes, area = unpack_mask(mask), None
    if answer.inspected_area is not None:
        area = fill_polygons(answer.inspected_area, answer.image.height, answer.image.width)
    if mask.encoding != "classes":
        return MaskedPhotograph(pixels, pixel_classes, area)
    defects = np.where(pixel_classes > 0, np.uint8(255), np.uint8(0))
    return MaskedPhotograph(pixels, defects, area, pixel_classes, tuple(mask.labels or ()))


def served_labels(models: Iterable[ModelDetail], name: str | None, *, review: bool = True) -> tuple[str, ...]:
    """Returns the possible labels of the model `name`, or of all `models` if it is None.

    `review` is whether to include that label if a model has a threshold for it. Raises ConfigError if the
    model is not served.
    """
    chosen = _find_served(models, name)
    labels = dict.fromkeys(label for model in chosen for label in model.manifest.get("classes", ()))
    may_be_for_review = any(_review_threshold(model) is not None or model.plans for model in chosen)
    return (*labels, REVIEW) if review and may_be_for_review else tuple(labels)


def _review_threshold(model: ModelDetail) -> float | None:
    if model.thresholds is not None:
        return model.thresholds.review
    limit: float | None = model.manifest.get("thresholds", {}).get("review")
    return limit


def choose_mask(models: Iterable[ModelDetail], name: str | None) -> MaskForm:
    """Returns `classes` if all models named `name` (None: all models) have a mask per class, else `png`."""
    networks = [model.manifest.get("network", {}) for model in _find_served(models, name)]
    return "classes" if all(network.get("mask_classes") for network in networks) else "png"


def _find_served(models: Iterable[ModelDetail], name: str | None) -> list[ModelDetail]:
    served = list(models)
    chosen = [model for model in served if name in (None, model.name)]
    if not chosen:
        names = ", ".join(sorted({model.name for model in served})) or "none"
        raise ConfigError(f"The model '{name}' is not served. Expected one of: {names}.")
    return chosen
