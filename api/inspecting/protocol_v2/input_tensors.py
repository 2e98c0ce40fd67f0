"""Input tensors of the Open Inference Protocol v2, in JSON or in the binary tensor extension.

A body is a JSON part (its length is in the header `Inference-Header-Content-Length`) and the data of
the binary tensors. Numbers are little-endian; each element of a BYTES tensor follows its length, 4 bytes. In
JSON, bytes are base64. Sizes are checked before memory is allocated.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from api.errors import RequestError, describe_json_errors
from api.http.json_files import decode_base64, to_utf8
from api.inspecting.protocol_v2.schemas import InferInput, InferRequest

HEADER_LENGTH = "Inference-Header-Content-Length"
MAX_JSON_VALUES = 300_000
"""Most values in a JSON part, enough for 512 × 512 pixels; parsing takes up to 100 bytes for each."""
LENGTH_BYTES = 4


# === Body ===


def split_body(body: bytes, header_length: str | None) -> tuple[bytes, memoryview]:
    """Splits `body` into its JSON part, of `header_length` bytes (None: all), and the binary part after it.

    Raises:
        RequestError: 400 if `header_length` is not a length within the body.
    """
    view = memoryview(body)
    if header_length is None:
        return body, view[len(body) :]
    plain = header_length.isascii() and header_length.isdecimal() and len(header_length) < 16
    if not plain or int(header_length) > len(body):
        detail = (
            f"{HEADER_LENGTH} is {header_length[:40]!r}; expected the length of the JSON part, at most the "
            f"{len(body)} bytes of the body."
        )
        raise RequestError(400, "bad_header_length", detail)
    return body[: int(header_length)], view[int(header_length) :]


def parse_json_part(part: bytes) -> InferRequest:
    """Parses the JSON part of a request.

    Raises:
        RequestError: 400 if it is not JSON or not an inference request, 413 if it has too many values.
    """
    part = to_utf8(part)
    # Every value but the first follows one of these bytes, so this bounds the memory that parsing takes.
    values = sum(map(part.count, (b",", b"[", b"{", b":")))
    if values > MAX_JSON_VALUES:
        detail = (
            f"The JSON part holds about {values} values; expected at most {MAX_JSON_VALUES}. Send pixels "
            "as binary data, or encoded photographs as the input 'image'."
        )
        raise RequestError(413, "too_many_values", detail)
    try:
        return InferRequest.model_validate_json(part)
    except ValidationError as error:
        raise _json_error(error) from error


def _json_error(error: ValidationError) -> RequestError:
    in_parameters = all(detail["loc"][:1] == ("parameters",) for detail in error.errors())
    code = "bad_parameter" if in_parameters else "bad_json"
    problems = describe_json_errors(error, root="The JSON part")
    return RequestError(400, code, f"{problems}. Expected an inference request of the protocol v2.")


# === Input ===


def read_encoded(tensor: InferInput, binary: memoryview, limit: int) -> list[bytes]:
    """Reads at most `limit` elements of a BYTES tensor [n], from `binary` unless they are in the tensor.

    Raises:
        RequestError: 400 if datatype, shape and data do not agree, or n is larger.
    """
    _check_tensor(tensor, "BYTES", 1)
    count = _checked_count(tensor, limit)
    if tensor.data is not None:
        if len(tensor.data) != count:
            raise _wrong_size(tensor, f"{count} elements", str(len(tensor.data)))
        return [_from_base64(tensor, index, element) for index, element in enumerate(tensor.data)]
    return _read_elements(tensor, _binary_data(tensor, binary), count)


def read_pixels(tensor: InferInput, binary: memoryview, limit: int) -> NDArray[np.uint8]:
    """Reads the values of a UINT8 tensor [n, H, W, C]; arguments and errors as `read_encoded`."""
    _check_tensor(tensor, "UINT8", 4)
    _checked_count(tensor, limit)
    if min(tensor.shape) < 1 or tensor.shape[3] not in (1, 3):
        raise _tensor_error(
            tensor, f"has the shape {tensor.shape}; expected [n, H, W, C], C is 1 (grey) or 3 (RGB)"
        )
    if tensor.data is None:
        data: bytes | memoryview = _binary_data(tensor, binary)
        if len(data) != math.prod(tensor.shape):
            raise _wrong_size(tensor, f"{math.prod(tensor.shape)} bytes", str(len(data)))
    else:
        data = _pack(tensor, tensor.data)
    return np.frombuffer(data, np.uint8).reshape(tensor.shape)


def check_binary_used(tensors: Sequence[InferInput], binary: memoryview) -> None:
    """Raises a RequestError, 400, if the binary part is longer than its tensors."""
    declared = sum(tensor.parameters.binary_data_size or 0 for tensor in tensors)
    if len(binary) > declared:
        detail = (
            f"{len(binary)} bytes follow the JSON part, {declared} of them are declared by binary_data_size. "
            "Expected no others."
        )
        raise RequestError(400, "bad_tensor", detail)


def _check_tensor(tensor: InferInput, datatype: str, axes: int) -> None:
    if tensor.parameters.shared_memory_region is not None:
        raise _tensor_error(tensor, "is in shared memory, which is not supported; send its data")
    if tensor.datatype != datatype:
        raise _tensor_error(tensor, f"has the datatype {tensor.datatype!r}; expected {datatype}")
    if len(tensor.shape) != axes:
        expected = "[n]" if axes == 1 else "[n, H, W, C]"
        raise _tensor_error(tensor, f"has the shape {_shown(tensor.shape)}; expected {expected}")
    if (tensor.data is None) == (tensor.parameters.binary_data_size is None):
        raise _tensor_error(
            tensor, "needs its data in 'data' or its size in 'binary_data_size', and not both"
        )


def _checked_count(tensor: InferInput, limit: int) -> int:
    count = tensor.shape[0]
    if count > limit:
        detail = (
            f"The input '{tensor.name}' holds {_shown(count)} photographs; expected at most {limit}. "
            "Send them in several requests."
        )
        raise RequestError(400, "too_many_images", detail)
    if count < 1:
        raise _tensor_error(tensor, f"has the shape {_shown(tensor.shape)}; expected at least one photograph")
    return count


def _binary_data(tensor: InferInput, binary: memoryview) -> memoryview:
    size = tensor.parameters.binary_data_size or 0
    if size > len(binary):
        raise _wrong_size(tensor, f"{_shown(size)} bytes after the JSON part", str(len(binary)))
    return binary[:size]


def _read_elements(tensor: InferInput, data: memoryview, count: int) -> list[bytes]:
    elements: list[bytes] = []
    start = 0
    for index in range(count):
        first = start + LENGTH_BYTES
        size = int.from_bytes(data[start:first], "little")
        if first + size > len(data):
            left = max(len(data) - first, 0)
            raise _wrong_size(tensor, f"{size} bytes of element {index} and its length", f"{left} bytes")
        elements.append(bytes(data[first : first + size]))
        start = first + size
    if start != len(data):
        raise _wrong_size(tensor, f"{start} bytes in {count} elements", str(len(data)))
    return elements


def _from_base64(tensor: InferInput, index: int, element: object) -> bytes:
    name = f"{tensor.name}[{index}]"
    if isinstance(element, str):
        return decode_base64(element, name)
    detail = f"{name} is {_shown(element)}. Expected a photograph as a base64 string, or binary data."
    raise RequestError(400, "bad_base64", detail)


def _pack(tensor: InferInput, values: list[Any]) -> bytes:
    """Packs values 0…255, flat or nested as the shape, into bytes."""
    flat = _flatten(tensor, values) if values and isinstance(values[0], list) else values
    if len(flat) != math.prod(tensor.shape):
        raise _wrong_size(tensor, f"{math.prod(tensor.shape)} values", str(len(flat)))
    try:
        if set(map(type, flat)) == {int}:  # bytes() accepts true as 1
            return bytes(flat)
    except ValueError:
        pass
    raise _tensor_error(tensor, "holds values other than whole numbers 0…255")


def _flatten(tensor: InferInput, rows: list[Any]) -> list[Any]:
    if len(rows) != tensor.shape[0]:
        raise _wrong_size(tensor, f"{tensor.shape[0]} photographs", str(len(rows)))
    for size in tensor.shape[1:]:
        if not all(isinstance(row, list) and len(row) == size for row in rows):
            raise _tensor_error(tensor, f"is not nested as its shape {tensor.shape}")
        rows = list(chain.from_iterable(rows))
    return rows


def _wrong_size(tensor: InferInput, expected: str, arrived: str) -> RequestError:
    return _tensor_error(
        tensor, f"has the shape {_shown(tensor.shape)}: expected {expected}, {arrived} arrived"
    )


def _tensor_error(tensor: InferInput, reason: str) -> RequestError:
    return RequestError(400, "bad_tensor", f"The input '{tensor.name}' {reason}.")


def _shown(value: object) -> str:
    """Shortens a value of the client for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
