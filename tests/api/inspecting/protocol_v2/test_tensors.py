import tracemalloc

import numpy as np
import pytest

from api.errors import RequestError
from api.inspecting.protocol_v2.input_tensors import (
    MAX_JSON_VALUES,
    check_binary_used,
    parse_json_part,
    read_encoded,
    read_pixels,
    split_body,
)
from api.inspecting.protocol_v2.schemas import InferInput

NOTHING = memoryview(b"")
PIXELS = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)


def encoded(data=None, shape=(2,), name="image", datatype="BYTES", **members) -> InferInput:
    tensor = {"name": name, "shape": list(shape), "datatype": datatype, "data": data}
    return InferInput.model_validate({**tensor, **members})


def pixels(data=None, shape=(1, 2, 2, 3), datatype="UINT8", **members) -> InferInput:
    return encoded(data, shape, "pixels", datatype, **members)


def size(count: int) -> dict:
    return {"parameters": {"binary_data_size": count}}


def check(error, status: int, code: str, *words: str) -> None:
    assert (error.value.status, error.value.code) == (status, code), str(error.value)
    assert all(word in str(error.value) for word in words), str(error.value)


# === Body ===


@pytest.mark.parametrize(("length", "json_part", "binary"), [(None, b"{}xyz", b""), ("2", b"{}", b"xyz")])
def test_body_is_split_at_the_header_length(length, json_part, binary):
    assert tuple(map(bytes, split_body(b"{}xyz", length))) == (json_part, binary)


@pytest.mark.parametrize("length", ["6", "-1", "", "²", "9" * 5000])
def test_header_length_outside_the_body(length):
    with pytest.raises(RequestError) as error:
        split_body(b"{}xyz", length)
    check(error, 400, "bad_header_length", "5 bytes", "xpected")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (b"", "bad_json", "EOF"),
        (b"[" * 10_000, "bad_json", "recursion"),
        (b"{}", "bad_json", "inputs: Field required"),
        (b'{"inputs": [' + b"{}," * 5000 + b"{}]}", "bad_json", "at most 16"),
        (b'{"inputs": [{"name": "image", "datatype": "BYTES", "shape": [-1]}]}', "bad_json", "shape.0"),
        (b'{"inputs": [], "parameters": {"threshold": NaN}}', "bad_parameter", "threshold"),
        (b'{"inputs": [], "parameters": {"threshold": "0.5"}}', "bad_parameter", "threshold"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else value,
)
def test_invalid_json_part_is_rejected(text, code, words):
    with pytest.raises(RequestError) as error:
        parse_json_part(text)
    check(error, 400, code, words)
    assert len(str(error.value)) < 500


def test_further_members_and_nulls_are_ignored():
    text = b'{"id": null, "inputs": [], "outputs": null, "parameters": {"priority": 1}, "more": [[[1]]]}'
    request = parse_json_part(text)
    assert (request.id, request.outputs, request.parameters.threshold) == (None, None, None)


def test_too_many_values_are_rejected_before_parsing():
    text = b'{"inputs": [' + b"1," * MAX_JSON_VALUES + b"1]}"
    tracemalloc.start()
    with pytest.raises(RequestError) as error:
        parse_json_part(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    check(error, 413, "too_many_values", "binary")
    assert peak < len(text)


# === Encoded photographs ===


@pytest.mark.parametrize(
    ("binary", "words"),
    [
        (b"", "length"),
        (b"\x03\x00\x00\x00ab", "3 bytes of element 0"),
        (b"\xff\xff\xff\xffab", "4294967295 bytes of element 0"),
        (b"\x01\x00\x00\x00a\x00\x00\x00\x00x", "9 bytes in 2 elements, 10 arrived"),
    ],
)
def test_binary_elements_that_do_not_fill_their_bytes(binary, words):
    with pytest.raises(RequestError) as error:
        read_encoded(encoded(**size(len(binary))), memoryview(binary), 2)
    check(error, 400, "bad_tensor", "'image'", words)


@pytest.mark.parametrize("element", ["YQ=", "ä", "Y Q==", 5])
def test_element_that_is_not_base64(element):
    with pytest.raises(RequestError) as error:
        read_encoded(encoded(["YQ==", element]), NOTHING, 2)
    check(error, 400, "bad_base64", "image[1]")


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (encoded(["YQ=="]), "expected 2 elements, 1 arrived"),
        (encoded(["YQ=="], (1, 1)), "expected [n]"),
        (encoded([], (0,)), "at least one"),
        (encoded(["YQ=="], (1,), datatype="UINT8"), "expected BYTES"),
        (encoded(None), "not both"),
        (encoded(["YQ=="], **size(5)), "not both"),
        (encoded(None, parameters={"shared_memory_region": "a"}), "shared memory"),
    ],
)
def test_encoded_tensor_that_contradicts_itself(tensor, words):
    with pytest.raises(RequestError) as error:
        read_encoded(tensor, NOTHING, 8)
    check(error, 400, "bad_tensor", words)


@pytest.mark.parametrize("count", [3, 2**62])
def test_more_photographs_than_the_limit(count):
    for tensor, read in ((encoded([], (count,)), read_encoded), (pixels([], (count, 1, 1, 1)), read_pixels)):
        with pytest.raises(RequestError) as error:
            read(tensor, NOTHING, 2)
        check(error, 400, "too_many_images", "at most 2")


def test_binary_that_belongs_to_no_tensor():
    with pytest.raises(RequestError) as error:
        check_binary_used([encoded(**size(3))], memoryview(b"abcd"))
    check(error, 400, "bad_tensor", "4 bytes", "3 of them")


# === Pixels ===


def test_pixels_in_json_and_in_binary_which_is_not_copied():
    for data in (PIXELS.tolist(), PIXELS.ravel().tolist()):
        assert np.array_equal(read_pixels(pixels(data), NOTHING, 1), PIXELS)
    body = bytearray(PIXELS.tobytes())
    values = read_pixels(pixels(**size(12)), memoryview(body), 1)
    assert np.array_equal(values, PIXELS)
    body[0] = 99
    assert values[0, 0, 0, 0] == 99


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (pixels([0] * 11), "expected 12 values, 11 arrived"),
        (pixels([*[0] * 11, 256]), "0…255"),
        (pixels([*[0] * 11, 0.5]), "0…255"),
        (pixels([*[0] * 11, True]), "0…255"),
        (pixels([[[[0, 0, 0]]]]), "nested"),
        (pixels([[], []]), "1 photographs, 2 arrived"),
        (pixels(**size(11)), "expected 12 bytes, 11 arrived"),
        (pixels(shape=(1, 2**62, 2**62, 3), **size(12)), "bytes, 12 arrived"),
        (pixels([], (1, 0, 2, 3)), "[n, H, W, C]"),
        (pixels([0] * 8, (1, 2, 2, 2)), "1 (grey) or 3 (RGB)"),
        (pixels([0] * 12, (2, 2, 3)), "[n, H, W, C]"),
        (pixels([0] * 12, datatype="FP32"), "expected UINT8"),
    ],
)
def test_pixels_that_contradict_their_shape(tensor, words):
    with pytest.raises(RequestError) as error:
        read_pixels(tensor, memoryview(bytes(tensor.parameters.binary_data_size or 0)), 4)
    check(error, 400, "bad_tensor", "'pixels'", words)
