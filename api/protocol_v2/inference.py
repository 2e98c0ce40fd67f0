"""An inference of the Open Inference Protocol v2: what a request asks for, and the answer to it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
from api.images import Upload
from api.protocol_v2.output_tensors import Tensor
from api.protocol_v2.schemas import InferAnswer, InferInput, InferRequest, TensorMetadata
from api.protocol_v2.tensors import (
    HEADER_LENGTH,
    check_binary_used,
    parse_request,
    read_encoded,
    read_pixels,
    split_body,
)
from api.settings import Settings
from segdec.config import ModelConfig
from segdec.images import encode_png
from segdec.postprocessing import Prediction
from segdec.schemas import ModelIdentity
from segdec.suggestions import nearest

Source = Upload | NDArray[np.uint8]

INPUTS = [
    TensorMetadata(name="image", datatype="BYTES", shape=[-1], parameters={"content_type": "base64"}),
    TensorMetadata(name="pixels", datatype="UINT8", shape=[-1, -1, -1, -1]),
]
"""Exactly one is sent: encoded photographs [n], base64 in JSON, or pixels [n, H, W, C]."""


# === Request ===


@dataclass(frozen=True)
class Inquiry:
    """What an inference request asks for.

    Attributes:
        id: To be answered with; None without one.
        input: Name of the input that the photographs came in.
        sources: The photographs, encoded or as pixels [H, W, C].
        threshold: Replaces the model's; None for the model's own.
        timeout_us: Microseconds that the photographs may wait; None or 0 for the service's own limit.
        outputs: Name → whether it is answered behind the JSON part.
    """

    id: str | None
    input: str
    sources: Sequence[Source]
    threshold: float | None
    timeout_us: int | None
    outputs: dict[str, bool]


def parse_inquiry(body: bytes, header_length: str | None, settings: Settings) -> Inquiry:
    """Reads the body of an inference request; slow for a large one, so not for the event loop.

    Raises:
        RequestError: 400 for a broken one, 413 for too many or too large photographs.
    """
    part, binary = split_body(body, header_length)
    request = parse_request(part)
    outputs = _read_outputs(request)
    tensor = _only_input(request.inputs)
    check_binary_used(request.inputs, binary)
    sources: Sequence[Source]
    if tensor.name == "image":
        encoded = read_encoded(tensor, binary, settings.max_batch_files)
        sources = [Upload(data, "The photograph") for data in encoded]
    else:
        sources = list(read_pixels(tensor, binary, settings.max_batch_files))
        _check_size(tensor, settings)
    asked = request.parameters
    return Inquiry(request.id, tensor.name, sources, asked.threshold, asked.timeout, outputs)


def _only_input(inputs: Sequence[InferInput]) -> InferInput:
    known = [tensor.name for tensor in INPUTS]
    for tensor in inputs:
        if tensor.name not in known:
            raise _unknown("input", tensor.name, known)
    if len(inputs) != 1:
        raise RequestError(
            400, "bad_tensor", f"{len(inputs)} inputs arrived; expected one of image and pixels."
        )
    return inputs[0]


def _read_outputs(request: InferRequest) -> dict[str, bool]:
    default = request.parameters.binary_data_output
    if not request.outputs:
        return dict.fromkeys(OUTPUTS, default)
    outputs = {}
    for output in request.outputs:
        if output.name not in OUTPUTS:
            raise _unknown("output", output.name, OUTPUTS)
        if output.name in outputs:
            raise RequestError(
                400, "bad_tensor", f"The output '{output.name}' is asked for twice; expected once."
            )
        if output.parameters.classification or output.parameters.shared_memory_region is not None:
            raise RequestError(
                400,
                "bad_parameter",
                f"The output '{output.name}' is asked for as a classification or in shared memory. "
                "Neither is supported. Ask for label and probabilities.",
            )
        binary = output.parameters.binary_data
        outputs[output.name] = default if binary is None else binary
    return outputs


def _check_size(tensor: InferInput, settings: Settings) -> None:
    _, height, width, _ = tensor.shape
    if height * width > settings.max_pixels or max(height, width) > settings.max_side:
        raise RequestError(
            413,
            "too_many_pixels",
            f"Photographs of {width} × {height} px arrived; expected at most {settings.max_pixels} pixels "
            f"and {settings.max_side} px a side. Send smaller ones.",
        )


def _unknown(kind: str, name: str, known: Collection[str]) -> RequestError:
    return RequestError(
        400, "unknown_tensor", f"There is no {kind} '{name}'. Did you mean '{nearest(name, known)}'?"
    )


# === Answer ===


@dataclass(frozen=True)
class Verdict:
    """What is answered about one photograph.

    Attributes:
        mask: PNG of the photograph's size, 255 = defect; empty when not asked for.
    """

    label: str
    score: float
    threshold: float
    probabilities: tuple[float, ...]
    mask: bytes


def conclude(prediction: Prediction, outputs: Collection[str]) -> Verdict:
    """Keeps of a prediction what `outputs` need; slow for a large mask, so not for the event loop."""
    return Verdict(
        prediction.label,
        prediction.score,
        prediction.threshold,
        tuple(prediction.probabilities.values()),
        encode_png(prediction.mask) if "mask" in outputs else b"",
    )


def _numbers(values: Sequence[float] | Sequence[Sequence[float]]) -> NDArray[np.float32]:
    return np.array(values, np.float32)


Values = NDArray[np.float32] | list[str] | list[bytes]

OUTPUTS: dict[str, Callable[[Sequence[Verdict]], Values]] = {
    "label": lambda verdicts: [verdict.label for verdict in verdicts],
    "score": lambda verdicts: _numbers([verdict.score for verdict in verdicts]),
    "threshold": lambda verdicts: _numbers([verdict.threshold for verdict in verdicts]),
    "probabilities": lambda verdicts: _numbers([verdict.probabilities for verdict in verdicts]),
    "mask": lambda verdicts: [verdict.mask for verdict in verdicts],
}
"""What can be asked for; a request that names no outputs gets them all, as the protocol has it."""


def describe_outputs(config: ModelConfig) -> list[TensorMetadata]:
    """The outputs of a model."""
    return [
        TensorMetadata(name="label", datatype="BYTES", shape=[-1]),
        TensorMetadata(name="score", datatype="FP32", shape=[-1]),
        TensorMetadata(name="threshold", datatype="FP32", shape=[-1]),
        TensorMetadata(name="probabilities", datatype="FP32", shape=[-1, len(config.classes)]),
        TensorMetadata(name="mask", datatype="BYTES", shape=[-1], parameters={"content_type": "base64"}),
    ]


def write_answer(
    inquiry: Inquiry, model: ModelIdentity, verdicts: Sequence[Verdict]
) -> tuple[bytes, dict[str, str]]:
    """The body of an answer, and its headers."""
    described, packed = [], []
    for name, binary in inquiry.outputs.items():
        tensor = Tensor(name, OUTPUTS[name](verdicts))
        data = tensor.pack() if binary else None
        described.append(tensor.describe(data))
        packed.append(data or b"")
    answer = InferAnswer(model_name=model.name, model_version=model.version, id=inquiry.id, outputs=described)
    part = answer.model_dump_json(exclude_none=True).encode()
    if not any(inquiry.outputs.values()):
        return part, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(part))}
    return b"".join([part, *packed]), headers
