"""The methods of the clients: each builds a request, with the function that reads its reply."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from segdec.client.replies import REQUEST_ID, Reply, read_batch, read_models, read_ready, response_reader
from segdec.errors import ConfigError
from segdec.images import encode_png, read_file
from segdec.plan.inspection_plan import Plan
from segdec.runtime.identifiers import check_identifier
from segdec.schemas import (
    Answer,
    InspectAnswer,
    MaskForm,
    MaskSpace,
    ModelDetail,
    PlanSimulation,
    PlanSummary,
    Problem,
    RecordedMaskForm,
    ReloadAnswer,
)

T = TypeVar("T")

ImageSource = bytes | Path | NDArray[np.uint8]
"""A photograph: an encoded file in memory, the path of one, or pixels [H, W] or [H, W, C], grey or RGB."""

DEADLINE = "X-Deadline-Ms"
IDEMPOTENCY_KEY = "Idempotency-Key"
JSON_BODY = {"Content-Type": "application/json"}
MAX_KEY = 128
"""Longest Idempotency-Key, characters."""
RELOAD_TIMEOUT_S = 600.0
"""A reload loads, tests and warms up a model before it answers."""

FormField = tuple[str, tuple[str | None, bytes, str]]
"""Name, then file name (None: text), content and type."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request.

    Attributes:
        method: HTTP method.
        path: Below the service's address.
        read: Turns the reply into the result, or raises `ServiceError`.
        params: Query parameters.
        headers: Additional headers of this request.
        content: Body.
        files: Form instead of a body.
        retried: Whether to send it again after a transient failure.
        timeout_s: Replaces the client's own.
    """

    method: str
    path: str
    read: Callable[[Reply], T]
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    files: Sequence[FormField] | None = None
    retried: bool = True
    timeout_s: float | None = None

    def build(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Builds the request for `http`; all attempts send this request, with the same id."""
        return http.build_request(
            self.method,
            self.path,
            params=self.params,
            headers={REQUEST_ID: uuid.uuid4().hex, **self.headers},
            content=self.content,
            files=self.files,
            timeout=httpx.USE_CLIENT_DEFAULT if self.timeout_s is None else self.timeout_s,
        )


def predict(
    image: ImageSource,
    *,
    threshold: float | None = None,
    mask: MaskForm = "png",
    space: MaskSpace = "input",
    deadline_ms: float | None = None,
    model: str | None = None,
    version: str | None = None,
) -> Call[Answer]:
    """Inspects one photograph.

    Args:
        image: The photograph.
        threshold: Score from which it is defective, 0…1; no label is then `review`. Default: the model's own
            thresholds.
        mask: Form of the mask: `none`, `png`, `rle`, `polygon`, `scores`, or for models with a mask per class
            `classes` or `class_rle`.
        space: Grid of the mask: the photograph's pixels (`input`) or the network's own (`model`).
        deadline_ms: Milliseconds after which the service answers 504.
        model: Name of the model; default: the service's own default.
        version: Version of `model`, or an alias of one, for example `stable`.

    Raises:
        ServiceError: If the service rejects it or does not answer.
        ImageError: With the code `unreadable_file`, if the file cannot be read.
        ConfigError: If the model or version name is invalid, or a version is given without its model.
    """
    return Call(
        "POST",
        f"{_model_path(model, version)}/predict",
        response_reader(Answer),
        _parameters(threshold, mask, space),
        {"Content-Type": "image/*", **_deadline(deadline_ms)},
        content=_encoded(image),
    )


def inspect(
    image: ImageSource,
    *,
    station: str = "",
    part_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    threshold: float | None = None,
    mask: RecordedMaskForm = "png",
    deadline_ms: float | None = None,
    model: str | None = None,
) -> Call[InspectAnswer]:
    """Inspects and records one photograph. For the other arguments and errors see `predict`.

    Args:
        image: The photograph.
        station: Where it was taken, for example `line3-cam1`.
        part_id: Identifies the part that it shows.
        metadata: Stored in the record; JSON of at most 4096 characters.
        idempotency_key: Identifies the photograph in all requests about it, so that it is recorded once; 1 to
            128 printable ASCII characters. Default: a new key for each call, shared by its retries.
        threshold: As for `predict`.
        mask: As for `predict`, but not `scores`.
        deadline_ms: As for `predict`; the photograph may still be recorded.
        model: Name of the model, whose stable version answers.

    Raises:
        ServiceError: If the service rejects it, cannot record it or does not answer. It may still be
            recorded: to ask again later, pass the same `idempotency_key` both times.
        ConfigError: If the station, the part, the model name, the key or the metadata is invalid.
    """
    part = {"station": _name("station", station)}
    part |= {} if part_id is None else {"part_id": _name("part_id", part_id)}
    headers = {IDEMPOTENCY_KEY: _key(idempotency_key), **_deadline(deadline_ms)}
    files: list[FormField] | None = None
    if metadata is None:
        headers["Content-Type"] = "image/*"
    else:  # not in the query: proxies limit its length
        files = [("file", _form_file(image, 1)), ("metadata", (None, _json(metadata), "application/json"))]
    return Call(
        "POST",
        f"{_model_path(model, None)}/inspect",
        response_reader(InspectAnswer),
        {**_parameters(threshold, mask, "input"), **part},
        headers,
        content=_encoded(image) if files is None else None,
        files=files,
    )


def predict_batch(
    images: Sequence[ImageSource],
    *,
    threshold: float | None = None,
    mask: MaskForm = "png",
    space: MaskSpace = "input",
    deadline_ms: float | None = None,
) -> Call[list[Answer | Problem]]:
    """Inspects several photographs in one request: an answer or a problem for each, in their order.

    For the arguments and errors see `predict`.

    Raises:
        ValueError: If `images` is empty.
    """
    if not images:
        raise ValueError("No photographs. Expected one or more.")
    return Call(
        "POST",
        "/v1/predict/batch",
        partial(read_batch, count=len(images)),
        _parameters(threshold, mask, space),
        _deadline(deadline_ms),
        files=[("file", _form_file(image, number)) for number, image in enumerate(images, start=1)],
    )


def models() -> Call[list[ModelDetail]]:
    """Lists the served models; raises `ServiceError`."""
    return Call("GET", "/v1/models", read_models)


def ready() -> Call[bool]:
    """Returns whether the service can inspect photographs now; False if nothing answers. Never retried.

    Raises:
        ServiceError: If something other than the inspection service answers.
    """
    return Call("GET", "/readyz", read_ready, retried=False)


def reload(name: str) -> Call[ReloadAnswer]:
    """Reloads the model `name` from the service's disk; needs an admin key.

    It is never retried, because the first request may still be running.

    Raises:
        ServiceError: If the service rejects the request or does not answer; it then keeps the model it has.
        ConfigError: If `name` is not a model name.
    """
    path = f"/v1/admin/models/{_segment(name)}/reload"
    return Call("POST", path, response_reader(ReloadAnswer), retried=False, timeout_s=RELOAD_TIMEOUT_S)


def store_plan(model: str, plan: Plan, reason: str) -> Call[PlanSummary]:
    """Stores a version of an inspection plan for a model; needs an admin key.

    A request that is sent again gets the same version.

    Raises:
        ServiceError: If the plan does not fit the model, or the service does not answer.
        ConfigError: If `model` is not a model name.
    """
    content = {"plan": plan.to_dict(), "reason": reason}
    path = f"/v1/models/{_segment(model)}/plans"
    return Call("POST", path, response_reader(PlanSummary), headers=JSON_BODY, content=_json(content))


def activate_plan(model: str, version: int | None, station: str, reason: str) -> Call[ReloadAnswer]:
    """Activates a stored plan at a station, or at all others if `station` is empty; needs an admin key.

    Arguments and errors as `store_plan`; `version` None: no plan of its own.
    """
    content = {"version": version, "station": station, "reason": reason}
    return Call(
        "POST",
        f"/v1/admin/models/{_segment(model)}/plan",
        response_reader(ReloadAnswer),
        headers=JSON_BODY,
        content=_json(content),
        retried=False,
        timeout_s=RELOAD_TIMEOUT_S,
    )


def simulate_plan(
    model: str, plan: Plan | int, *, station: str | None = None, before: int | None = None
) -> Call[PlanSimulation]:
    """Judges recorded parts, of a station or of all, by a plan or a stored version; needs an admin key.

    One call judges up to 1,000 parts with record ids below `before`; the next one continues at the
    `next_before` of its answer. Errors as `store_plan`.
    """
    path = f"/v1/models/{_segment(model)}/plans/simulation"
    parameters = {} if station is None else {"station": _name("station", station)}
    parameters |= {} if before is None else {"before": str(before)}
    sent = {"version": plan} if isinstance(plan, int) else {"plan": plan.to_dict()}
    return Call(
        "POST",
        path,
        response_reader(PlanSimulation),
        parameters,
        headers=JSON_BODY,
        content=_json(sent),
        timeout_s=RELOAD_TIMEOUT_S,
    )


def _model_path(model: str | None, version: str | None) -> str:
    if model is None and version is not None:
        raise ConfigError(f"version={version!r} was given without a model. Add the model's name.")
    names = [("models", model), ("versions", version)]
    return "/v1" + "".join(f"/{kind}/{_segment(name)}" for kind, name in names if name is not None)


def _segment(name: str) -> str:
    """Quotes one path segment; `.` and `..` would change the path, and so the model."""
    if name in ("", ".", ".."):
        raise ConfigError(f"'{name}' is not a model or version name. Expected one that models() lists.")
    return quote(_name("the model or version", name), safe="")


def _name(kind: str, text: str) -> str:
    try:
        return check_identifier(text)
    except ValueError as error:
        raise ConfigError(f"{kind} is {ascii(text)[:80]}. {error}.") from error


def _parameters(threshold: float | None, mask: MaskForm, space: MaskSpace) -> dict[str, str]:
    asked = {} if threshold is None else {"threshold": repr(float(threshold))}
    return {**asked, "mask": mask, "space": space}


def _deadline(deadline_ms: float | None) -> dict[str, str]:
    return {} if deadline_ms is None else {DEADLINE: repr(float(deadline_ms))}


def _key(chosen: str | None) -> str:
    """Returns the key of all attempts of a call, by which the service recognises repeats."""
    if chosen is None:
        return uuid.uuid4().hex
    if not (0 < len(chosen) <= MAX_KEY and chosen.isascii() and chosen.isprintable()):
        raise ConfigError(
            f"The Idempotency-Key {chosen[:80]!r} cannot be sent. Expected 1 to {MAX_KEY} printable "
            "ASCII characters."
        )
    return chosen


def _json(metadata: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"The metadata cannot be written as JSON ({error}). Expected text, numbers, lists and objects."
        ) from error


def _encoded(image: ImageSource) -> bytes:
    if isinstance(image, Path):
        return read_file(image)
    if isinstance(image, bytes):
        return image
    if isinstance(image, np.ndarray):
        return encode_png(image)
    raise TypeError(f"A photograph cannot be a {type(image)}. Expected bytes, a Path or a uint8 array.")


def _form_file(image: ImageSource, number: int) -> tuple[str, bytes, str]:
    name = image.name if isinstance(image, Path) else f"image-{number}"
    return name, _encoded(image), "application/octet-stream"
