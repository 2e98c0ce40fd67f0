"""Parses and checks a request of the Open Inference Protocol v2."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from api.errors import RequestError
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.inspecting.inspector import Source
from api.inspecting.protocol_v2.input_tensors import (
    check_binary_used,
    parse_json_part,
    read_encoded,
    read_pixels,
    split_body,
)
from api.inspecting.protocol_v2.outputs import BASE64, OUTPUTS, output_names
from api.inspecting.protocol_v2.schemas import InferInput, InferRequest, TensorMetadata
from api.inspecting.settings import InspectionSettings
from segdec.config import ModelConfig
from segdec.runtime.suggestions import nearest_name

INPUTS = [
    TensorMetadata(name="image", datatype="BYTES", shape=[-1], parameters=BASE64),
    TensorMetadata(name="pixels", datatype="UINT8", shape=[-1, -1, -1, -1]),
]
"""A request has one of them: encoded photographs [n], base64 in JSON, or pixels [n, H, W, C]."""


@dataclass(frozen=True)
class InferenceRequest:
    """An inference request.

    Attributes:
        input: Name of the input with the photographs.
        sources: The photographs, encoded or as pixels [H, W, C].
        threshold: Replaces the model's; None for the model's own.
        timeout_us: Microseconds that the photographs may wait; None or 0 for the service's own limit.
        outputs: Name → whether its data follows the JSON part.
    """

    id: str | None
    input: str
    sources: Sequence[Source]
    threshold: float | None
    timeout_us: int | None
    outputs: dict[str, bool]


def parse_inference_request(
    body: bytes, header_length: str | None, settings: InspectionSettings, config: ModelConfig
) -> InferenceRequest:
    """Parses a request for the model of `config`; slow for a large one, so not for the event loop.

    Raises:
        RequestError: 400 for an invalid one, 413 for too large photographs or too many values.
    """
    part, binary = split_body(body, header_length)
    request = parse_json_part(part)
    outputs = _requested_outputs(request, config)
    tensor = _only_input(request.inputs)
    check_binary_used(request.inputs, binary)
    sources: Sequence[Source]
    if tensor.name == "image":
        encoded = read_encoded(tensor, binary, settings.max_batch_files)
        sources = [EncodedPhotograph(data, "The photograph") for data in encoded]
    else:
        sources = list(read_pixels(tensor, binary, settings.max_batch_files))
        _check_size(tensor, settings)
    asked = request.parameters
    return InferenceRequest(request.id, tensor.name, sources, asked.threshold, asked.timeout, outputs)


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


def _requested_outputs(request: InferRequest, config: ModelConfig) -> dict[str, bool]:
    default, available = request.parameters.binary_data_output, output_names(config)
    if not request.outputs:
        return dict.fromkeys(available, default)
    outputs = {}
    for output in request.outputs:
        if output.name not in OUTPUTS:
            raise _unknown("output", output.name, OUTPUTS)
        if output.name not in available:
            detail = (
                f"This model has no output '{output.name}', as it has one mask for all classes. Expected "
                f"some of {', '.join(available)}."
            )
            raise RequestError(400, "unknown_tensor", detail)
        if output.name in outputs:
            raise RequestError(
                400, "bad_tensor", f"The output '{output.name}' is requested twice; expected once."
            )
        if output.parameters.classification or output.parameters.shared_memory_region is not None:
            detail = (
                f"The output '{output.name}' is requested as a classification or in shared memory. "
                "Neither is supported. Request label and probabilities."
            )
            raise RequestError(400, "bad_parameter", detail)
        binary = output.parameters.binary_data
        outputs[output.name] = default if binary is None else binary
    return outputs


def _check_size(tensor: InferInput, settings: InspectionSettings) -> None:
    _, height, width, _ = tensor.shape
    if height * width > settings.max_pixels or max(height, width) > settings.max_side:
        detail = (
            f"Photographs of {width} × {height} px arrived; expected at most {settings.max_pixels} pixels "
            f"and {settings.max_side} px a side. Send smaller ones."
        )
        raise RequestError(413, "too_many_pixels", detail)


def _unknown(kind: str, name: str, known: Collection[str]) -> RequestError:
    return RequestError(
        400, "unknown_tensor", f"There is no {kind} '{name}'. Did you mean '{nearest_name(name, known)}'?"
    )
