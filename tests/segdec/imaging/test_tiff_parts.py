"""Deflate-compressed TIFF files whose strips decompress to wrong pixels."""

import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.images import decode_image
from tests.image_files import tiff_file


def deflated(strips: list[bytes], **tags: Any) -> bytes:
    """A grey TIFF of 160 × 200 pixels from its packed strips of 100 rows."""
    size = {256: (160,), 257: (200,), 258: (8,), 259: (8,), 262: (1,), 277: (1,), 278: (100,)}
    size |= {int(name[1:]): numbers for name, numbers in tags.items()}
    places, lengths = (324, 325) if 324 in size else (273, 279), tuple(map(len, strips))
    start = len(tiff_file({**size, places[0]: (9, 9), places[1]: lengths}, b""))
    found = {places[0]: (start, start + lengths[0]), places[1]: lengths}
    return tiff_file({**size, **found}, b"".join(strips))


def noise(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


def refusal(data: bytes) -> str:
    with pytest.raises(ImageError, match=r"part is not a complete TIFF file.*Expected") as caught:
        decode_image(data, "part")
    return caught.value.code


@pytest.mark.parametrize("compression", [8, 32946])
def test_each_strip_is_checked(compression: int) -> None:
    values = noise(200, 160)
    first, second = zlib.compress(values[:100]), zlib.compress(values[100:])
    whole = deflated([first, second], t259=(compression,))
    np.testing.assert_array_equal(decode_image(whole, "part").pixels[..., 0], values)
    wrong = second[:-1] + bytes([second[-1] ^ 1])
    assert refusal(deflated([first, wrong], t259=(compression,))) == "corrupt_image"
    assert refusal(deflated([first, second[:-1]], t259=(compression,))) == "truncated_image"
    row_too_many = zlib.compress(bytes(160 * 101))
    assert refusal(deflated([row_too_many, second], t259=(compression,))) == "corrupt_image"


@pytest.mark.parametrize("channels", [1, 3])
def test_last_strip_may_be_filled_up(channels: int) -> None:
    """Some encoders write as many rows into the last strip as into the others."""
    values = noise(200, 160, channels)
    strips = [zlib.compress(values[:120].tobytes()), zlib.compress(values[80:].tobytes())]
    colour = {"t258": (8,) * channels, "t262": (1 if channels == 1 else 2,), "t277": (channels,)}
    photograph = decode_image(deflated(strips, t278=(120,), **colour), "part")
    np.testing.assert_array_equal(photograph.pixels, [*values[:120], *values[80:160]])


def test_each_tile_is_checked() -> None:
    values = noise(16, 32, 1)
    left, right = (zlib.compress(values[:, start : start + 16].tobytes()) for start in (0, 16))
    tags = {"t256": (32,), "t257": (16,), "t322": (16,), "t323": (16,), "t324": (0,)}
    np.testing.assert_array_equal(decode_image(deflated([left, right], **tags), "part").pixels, values)
    assert (
        refusal(deflated([left, right[:-9] + bytes([right[-9] ^ 1]) + right[-8:]], **tags)) == "corrupt_image"
    )
