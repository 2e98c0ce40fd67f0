"""A plan, a model and predictions for tests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segdec.config import InputConfig, ModelConfig, NetworkConfig, SizeErrors, Thresholds
from segdec.inference.postprocessing import Prediction, find_regions
from segdec.plan.inspection_plan import Plan

HEIGHT, WIDTH = 60, 100
EXACT = SizeErrors(length=(1, 1), width=(1, 1), area=(1, 1), defects=100)
"""The sizes of the mask are the true ones, except for the error of pixels."""


def make_plan(zones: dict[str, Any], **changes: Any) -> Plan:
    photograph = {"width": WIDTH, "height": HEIGHT, "mm_per_px": 0.1}
    return Plan.model_validate({"name": "housing", "photograph": photograph, "zones": zones} | changes)


def rectangle(x: float, y: float, width: float, height: float, **zone: Any) -> dict[str, Any]:
    return {"rectangle": {"corner": (x, y), "width": width, "height": height}} | zone


def make_model(
    *defects: str, mask_classes: bool = False, errors: SizeErrors | None = EXACT, **changes: Any
) -> ModelConfig:
    classes = ("good", *(defects or ("scratch",)))
    network = NetworkConfig(num_classes=len(classes), mask_classes=mask_classes)
    thresholds = Thresholds(score=0.5, mask=0.5, review=0.2)
    given = {"network": network, "input": InputConfig(), "thresholds": thresholds, "size_errors": errors}
    return ModelConfig(classes=classes, **(given | changes))


def predict(
    scores: NDArray[np.float32],
    model: ModelConfig,
    *,
    score: float = 0.9,
    label: str | None = None,
    classes: NDArray[np.uint8] | None = None,
    mask_threshold: float = 0.5,
) -> Prediction:
    """A prediction with these mask scores [H, W], without refinement."""
    mask = np.where(scores >= mask_threshold, np.uint8(255), np.uint8(0))
    limits = model.thresholds
    if label is None:
        assert limits.review is not None
        label = model.classes[1] if score >= limits.score else "review" if score >= limits.review else "good"
    others = (1 - score, *[score / (len(model.classes) - 1)] * (len(model.classes) - 1))
    return Prediction(
        label=label,
        score=score,
        log_odds=0.0,
        threshold=limits.score,
        review_threshold=limits.review,
        probabilities=dict(zip(model.classes, others, strict=True)),
        mask=mask,
        mask_scores=scores,
        grid_scores=scores,
        mask_threshold=mask_threshold,
        regions=find_regions(mask, scores),
        class_mask=None if classes is None else np.where(mask > 0, classes, np.uint8(0)),
    )


def scores_of(*defects: tuple[int, int, int, int], score: float = 0.9) -> NDArray[np.float32]:
    """Mask scores with rectangles (x, y, width, height) of defects."""
    scores = np.full((HEIGHT, WIDTH), 0.01, np.float32)
    for x, y, width, height in defects:
        scores[y : y + height, x : x + width] = score
    return scores
