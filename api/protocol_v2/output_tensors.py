"""Output tensors of the Open Inference Protocol v2, in the forms that `api.protocol_v2.tensors` reads."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.protocol_v2.schemas import InferOutput
from api.protocol_v2.tensors import LENGTH_BYTES


@dataclass(frozen=True)
class Tensor:
    """An output tensor.

    Attributes:
        name: Of the output.
        values: FP32 of any shape; or BYTES [n], as text or as what is base64 in JSON.
    """

    name: str
    values: NDArray[np.float32] | list[str] | list[bytes]

    @property
    def datatype(self) -> str:
        """Its datatype in the protocol."""
        return "FP32" if isinstance(self.values, np.ndarray) else "BYTES"

    @property
    def shape(self) -> list[int]:
        """Its shape."""
        return list(self.values.shape) if isinstance(self.values, np.ndarray) else [len(self.values)]

    def pack(self) -> bytes:
        """Its data in the binary tensor extension."""
        if isinstance(self.values, np.ndarray):
            return self.values.astype("<f4").tobytes()
        elements = [value.encode() if isinstance(value, str) else value for value in self.values]
        return b"".join(len(element).to_bytes(LENGTH_BYTES, "little") + element for element in elements)

    def describe(self, packed: bytes | None) -> InferOutput:
        """Its entry in the JSON part; with the data, unless that is `packed` behind it."""
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
