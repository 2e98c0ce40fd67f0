"""Outputs of the Open Inference Protocol v2: their values for each photograph, and their encoding."""

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from api.inspecting.inspector import InspectedPhotograph
from api.inspecting.protocol_v2.input_tensors import HEADER_LENGTH, LENGTH_BYTES
from api.inspecting.protocol_v2.schemas import InferAnswer, InferOutput, TensorMetadata
from segdec.config import ModelConfig
from segdec.images import encode_png
from segdec.schemas import ModelIdentity

BASE64 = {"content_type": "base64"}


@dataclass(frozen=True)
class PhotographOutputs:
    """One photograph's element, or row, of each output.

    Attributes:
        review_threshold: Equals the threshold if the model has no review threshold.
        mask: PNG of the photograph's size, 255 = defect; empty if not requested.
        class_mask: PNG of the photograph's size, index of each pixel's class; empty if not requested or if
            the model has one mask for all classes.
    """

    label: str
    score: float
    threshold: float
    review_threshold: float
    probabilities: tuple[float, ...]
    mask: bytes
    class_mask: bytes = b""


def make_outputs(inspected: InspectedPhotograph, *, names: Collection[str]) -> PhotographOutputs:
    """Makes the values of the outputs `names`; slow for a mask, so not for the event loop."""
    prediction = inspected.prediction
    review, classes = prediction.review_threshold, prediction.class_mask
    return PhotographOutputs(
        inspected.label,
        prediction.score,
        prediction.threshold,
        prediction.threshold if review is None else review,
        tuple(prediction.probabilities.values()),
        encode_png(prediction.mask) if "mask" in names else b"",
        encode_png(classes) if classes is not None and "class_mask" in names else b"",
    )


FP32, TEXT, FILE = "FP32", "text", "file"
OUTPUTS = {
    "label": TEXT,
    "score": FP32,
    "threshold": FP32,
    "review_threshold": FP32,
    "probabilities": FP32,
    "mask": FILE,
    "class_mask": FILE,
}
"""All outputs, fields of `PhotographOutputs`: FP32, or BYTES of text or of files (base64 in JSON)."""

OPTIONAL_OUTPUTS = frozenset({"class_mask"})
"""Outputs that only models with one mask per class have."""


def output_names(config: ModelConfig) -> tuple[str, ...]:
    """Returns the outputs of a model; a request that names none gets all of them, as the protocol demands."""
    return tuple(name for name in OUTPUTS if config.network.mask_channels > 1 or name not in OPTIONAL_OUTPUTS)


def describe_outputs(config: ModelConfig) -> list[TensorMetadata]:
    """Describes the outputs of a model."""
    return [
        TensorMetadata(
            name=name,
            datatype=_datatype(name),
            shape=[-1, len(config.classes)] if name == "probabilities" else [-1],
            parameters=BASE64 if OUTPUTS[name] == FILE else None,
        )
        for name in output_names(config)
    ]


def _datatype(name: str) -> str:
    return "FP32" if OUTPUTS[name] == FP32 else "BYTES"


def _encode_output(
    name: str, photographs: Sequence[PhotographOutputs], *, binary: bool
) -> tuple[InferOutput, bytes]:
    """Returns the entry of an output in the JSON part, and its data after it; see `input_tensors`."""
    values = [getattr(photograph, name) for photograph in photographs]
    numbers = np.array(values if OUTPUTS[name] == FP32 else [], np.float32)
    shape = list(numbers.shape) if OUTPUTS[name] == FP32 else [len(values)]
    head: dict[str, Any] = {"name": name, "datatype": _datatype(name), "shape": shape}
    if binary:
        packed = numbers.astype("<f4").tobytes() if OUTPUTS[name] == FP32 else _pack(values)
        return InferOutput(**head, parameters={"binary_data_size": len(packed)}), packed
    if OUTPUTS[name] == FILE:
        encoded = [base64.b64encode(value).decode("ascii") for value in values]
        return InferOutput(**head, parameters={**BASE64}, data=encoded), b""
    return InferOutput(**head, data=numbers.ravel().tolist() if OUTPUTS[name] == FP32 else values), b""


def _pack(values: Sequence[str | bytes]) -> bytes:
    elements = [value.encode() if isinstance(value, str) else value for value in values]
    return b"".join(len(element).to_bytes(LENGTH_BYTES, "little") + element for element in elements)


def encode_answer(
    request_id: str | None,
    model: ModelIdentity,
    outputs: Mapping[str, bool],
    photographs: Sequence[PhotographOutputs],
) -> tuple[bytes, dict[str, str]]:
    """Returns body and headers of the answer to the request with the client's id `request_id`.

    `outputs` maps a name to whether its data follows the JSON part; `photographs` are in the order of the
    request.
    """
    encoded = [_encode_output(name, photographs, binary=binary) for name, binary in outputs.items()]
    described = [output for output, _ in encoded]
    answer = InferAnswer(model_name=model.name, model_version=model.version, id=request_id, outputs=described)
    part = answer.model_dump_json(exclude_none=True).encode()
    if not any(outputs.values()):
        return part, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(part))}
    return b"".join([part, *(packed for _, packed in encoded)]), headers
