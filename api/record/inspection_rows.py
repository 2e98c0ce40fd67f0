"""Converts a prediction to the row that the record stores, and a row back to the answer."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import cv2
import numpy as np

from api.http.mask_encoding import convert_mask, encode_empty_mask, encode_mask, scale_scores
from api.record.inspection import NewInspection, Row
from api.record.repeats import part_key, request_key
from api.record.sampling import SamplingDecision
from api.record.schemas import Refusal
from api.record.storage.retention_class import RetentionClass
from segdec.artifact import PhotographComparison
from segdec.config import ModelConfig
from segdec.images import encode_png
from segdec.inference.postprocessing import Prediction
from segdec.photograph_check import encode_measures
from segdec.runtime.identifiers import NOT_INSPECTED
from segdec.schemas import Answer, MaskAnswer, MaskForm, PlanAnswer

PREDICTION_COLUMNS = ("score", "log_odds", "threshold", "review_threshold")
PLAN_COLUMNS = ("plan", "plan_version", "plan_sha256", "plan_severity", "plan_finding")


@dataclass(frozen=True)
class PartInfo:
    """What a request says about the inspected part.

    Attributes:
        station: Where the image was taken; empty if not given.
        part_id: Identifier of the part.
        details: Metadata of the client.
        client: Name of the API key; empty without one.
        idempotency_key: Identifies repeats of one request.
    """

    station: str = ""
    part_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    client: str = ""
    idempotency_key: str | None = None


def make_inspection(
    prediction: Prediction,
    answer: Answer,
    picture: bytes,
    part: PartInfo,
    draw: SamplingDecision,
    engine: str,
    comparison: PhotographComparison,
) -> NewInspection:
    """Builds the rows of an inspection; slow for a large picture or mask, so run it in a thread."""
    mask = encode_mask(prediction, "rle" if prediction.class_mask is None else "class_rle", "input")
    assert mask is not None
    verdict = {
        "request_key": request_key(part.client, part.idempotency_key),
        "engine": engine,
        "label": answer.decision.label,
        "model_label": answer.decision.model_label,
        **{name: getattr(prediction, name) for name in PREDICTION_COLUMNS},
        **_plan_columns(answer.plan),
        "draw": draw.number,
        "draw_probability": draw.probability,
        "draw_reason": draw.reason,
        "answer": answer.model_dump_json(exclude={"mask"}),
        "mask": mask.model_dump_json(),
        "heat_map": None if draw.retention_class == RetentionClass.GOOD else encode_heat_map(prediction),
        "unlike": json.dumps(encode_measures(comparison.beyond_limits)) if comparison.beyond_limits else None,
    }
    return _make(verdict, answer, picture, part, draw.retention_class, comparison.distances)


def _plan_columns(plan: PlanAnswer | None) -> Row:
    if plan is None:
        return dict.fromkeys(PLAN_COLUMNS)
    values = plan.name, plan.version, plan.sha256, plan.severity, plan.sentence
    return dict(zip(PLAN_COLUMNS, values, strict=True))


def encode_heat_map(prediction: Prediction) -> bytes:
    """Returns the mask scores × 255 as a grey PNG, as many pixels as the network's grid [h/s, w/s].

    It covers the photograph, whose proportions may differ.
    """
    size = prediction.grid_scores.shape[::-1]
    scores = cv2.resize(prediction.mask_scores, size, interpolation=cv2.INTER_AREA)
    return encode_png(scale_scores(scores.astype(np.float32, copy=False)))


def make_uninspected(
    refusal: Refusal, config: ModelConfig, picture: bytes, part: PartInfo, distances: Mapping[str, float]
) -> NewInspection:
    """Builds the rows of a photograph without a verdict, which is kept for review; as `make_inspection`.

    It has no `request_key`: a client may send another photograph of the part with the same Idempotency-Key.
    """
    mask = encode_empty_mask(config, refusal.image.height, refusal.image.width)
    verdict = {
        "request_key": None,
        "engine": "",
        **dict.fromkeys(PREDICTION_COLUMNS, 0.0),
        "label": NOT_INSPECTED,
        "review_threshold": None,
        **dict.fromkeys(("draw", "draw_probability", "draw_reason")),
        "answer": refusal.model_dump_json(),
        "mask": mask.model_dump_json(),
        **dict.fromkeys(("heat_map", "unlike", "model_label", *PLAN_COLUMNS)),
    }
    return _make(verdict, refusal, picture, part, RetentionClass.TO_REVIEW, distances)


def _make(
    verdict: Row,
    answer: Answer | Refusal,
    picture: bytes,
    part: PartInfo,
    retention_class: RetentionClass,
    distances: Mapping[str, float],
) -> NewInspection:
    now, model = datetime.now(UTC), answer.model
    rounded = {name: round(value, 3) for name, value in distances.items()}
    sha256 = hashlib.sha256(picture).digest()
    row = {
        "token": uuid.uuid4().bytes,
        "inspected_at": now,
        "station": part.station,
        "part_id": part.part_id,
        "client": part.client,
        "picture": sha256,
        "model": model.name,
        "version": model.version,
        "manifest_sha256": model.sha256,
        **verdict,
        "details": json.dumps(part.details),
        "distances": json.dumps(rounded) if rounded else None,
        "highest_distance": max(rounded.values(), default=None),
    }
    picture_row = {
        "sha256": sha256,
        "bytes": len(picture),
        "format": answer.image.format,
        "state": "kept",
        "worth": retention_class,
        "stored_at": now,
    }
    return NewInspection({**row, "part_key": part_key(row)}, picture, picture_row)


# === Row to answer ===


def class_names(row: Row) -> list[str]:
    """Returns the classes of the model that inspected or refused a photograph, the good one first."""
    answer = json.loads(row["answer"])
    return list(answer["labels"] if row["label"] == NOT_INSPECTED else answer["decision"]["probabilities"])


def restore_answer(row: Row, form: MaskForm) -> Answer:
    """Returns the stored answer with its mask in `form`, which cannot be `scores`; slow for a large mask.

    Raises:
        RequestError: 400 if the form needs pixel classes and the model had none.
    """
    mask = convert_mask(MaskAnswer.model_validate_json(row["mask"]), form)
    return Answer.model_validate({**json.loads(row["answer"]), "mask": mask})
