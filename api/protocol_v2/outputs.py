"""Outputs of the Open Inference Protocol v2: their values for each photograph, and their encoding."""

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.inspection.inspector import InspectedPhotograph
from api.protocol_v2.input_tensors import HEADER_LENGTH, LENGTH_BYTES
from api.protocol_v2.schemas import InferAnswer, InferOutput, TensorMetadata
from segdec.config import ModelConfig
from segdec.images import encode_png
from segdec.schemas import ModelIdentity

Values = NDArray[np.float32] | list[str] | list[bytes]


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
        prediction.label,
        prediction.score,
        prediction.threshold,
        prediction.threshold if review is None else review,
        tuple(prediction.probabilities.values()),
        encode_png(prediction.mask) if "mask" in names else b"",
        encode_png(classes) if classes is not None and "class_mask" in names else b"",
    )


def _numbers(values: Sequence[float] | Sequence[Sequence[float]]) -> NDArray[np.float32]:
    return np.array(values, np.float32)


OUTPUTS: dict[str, Callable[[Sequence[PhotographOutputs]], Values]] = {
    "label": lambda photographs: [photograph.label for photograph in photographs],
    "score": lambda photographs: _numbers([photograph.score for photograph in photographs]),
    "threshold": lambda photographs: _numbers([photograph.threshold for photograph in photographs]),
    "review_threshold": lambda photographs: _numbers([one.review_threshold for one in photographs]),
    "probabilities": lambda photographs: _numbers([photograph.probabilities for photograph in photographs]),
    "mask": lambda photographs: [photograph.mask for photograph in photographs],
    "class_mask": lambda photographs: [photograph.class_mask for photograph in photographs],
}
"""All outputs, with the function that collects their values."""

OPTIONAL_OUTPUTS = frozenset({"class_mask"})
"""Outputs that only models with one mask per class have."""


def output_names(config: ModelConfig) -> tuple[str, ...]:
    """Returns the outputs of a model; a request that names none gets all of them, as the protocol demands."""
    return tuple(name for name in OUTPUTS if config.network.mask_channels > 1 or name not in OPTIONAL_OUTPUTS)


def describe_outputs(config: ModelConfig) -> list[TensorMetadata]:
    """Describes the outputs of a model."""
    described = [
        TensorMetadata(name="label", datatype="BYTES", shape=[-1]),
        TensorMetadata(name="score", datatype="FP32", shape=[-1]),
        TensorMetadata(name="threshold", datatype="FP32", shape=[-1]),
        TensorMetadata(name="review_threshold", datatype="FP32", shape=[-1]),
        TensorMetadata(name="probabilities", datatype="FP32", shape=[-1, len(config.classes)]),
        TensorMetadata(name="mask", datatype="BYTES", shape=[-1], parameters={"content_type": "base64"}),
        TensorMetadata(
            name="class_mask", datatype="BYTES", shape=[-1], parameters={"content_type": "base64"}
        ),
    ]
    return [one for one in described if one.name in output_names(config)]


@dataclass(frozen=True)
class OutputTensor:
    """An output and its encodings, which `api.protocol_v2.input_tensors` describes.

    Attributes:
        name: Name of the output.
        values: FP32 of any shape; or BYTES [n], text or bytes (base64 in JSON).
    """

    name: str
    values: Values

    @property
    def datatype(self) -> str:
        """Its datatype in the protocol."""
        return "FP32" if isinstance(self.values, np.ndarray) else "BYTES"

    @property
    def shape(self) -> list[int]:
        """Its shape."""
        return list(self.values.shape) if isinstance(self.values, np.ndarray) else [len(self.values)]

    def pack(self) -> bytes:
        """Returns its data in the binary tensor extension."""
        if isinstance(self.values, np.ndarray):
            return self.values.astype("<f4").tobytes()
        elements = [value.encode() if isinstance(value, str) else value for value in self.values]
        return b"".join(len(element).to_bytes(LENGTH_BYTES, "little") + element for element in elements)

    def describe(self, packed: bytes | None) -> InferOutput:
        """Returns its entry in the JSON part; with the data, unless they are `packed` after it."""
        form: dict[str, Any] = {"name": self.name, "datatype": self.datatype, "shape": self.shape}
        if packed is not None:
            return InferOutput(**form, parameters={"binary_data_size": len(packed)})
        if isinstance(self.values, np.ndarray):
            return InferOutput(**form, data=self.values.ravel().tolist())
        if all(isinstance(value, str) for value in self.values):
            return InferOutput(**form, data=list(map(str, self.values)))
        encoded = [
            base64.b64encode(value).decode("ascii") for value in self.values if isinstance(value, bytes)
        ]
        return InferOutput(**form, parameters={"content_type": "base64"}, data=encoded)


def encode_answer(
    request_id: str | None,
    model: ModelIdentity,
    outputs: Mapping[str, bool],
    photographs: Sequence[PhotographOutputs],
) -> tuple[bytes, dict[str, str]]:
    """Encodes the answer to a request.

    Args:
        request_id: The client's id; None without one.
        model: The model that answered.
        outputs: Name → whether its data follows the JSON part.
        photographs: Values of the outputs, in the order of the request.

    Returns:
        The body and the headers.
    """
    described, packed = [], []
    for name, binary in outputs.items():
        tensor = OutputTensor(name, OUTPUTS[name](photographs))
        data = tensor.pack() if binary else None
        described.append(tensor.describe(data))
        packed.append(data or b"")
    answer = InferAnswer(model_name=model.name, model_version=model.version, id=request_id, outputs=described)
    part = answer.model_dump_json(exclude_none=True).encode()
    if not any(outputs.values()):
        return part, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(part))}
    return b"".join([part, *packed]), headers
