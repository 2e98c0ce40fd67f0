"""Deflate-compressed TIFF files whose strips decompress to wrong pixels."""

import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.images import decode_image
from tests.image_files import tiff_file


def scratched() -> NDArray[np.uint8]:
    """A plain surface with scratches, as most photographs of good parts are: long runs, few other bytes."""
    rng = np.random.default_rng(1)
    surface = np.full((200, 160), 7, np.uint8)
    for row in rng.integers(0, 200, 30):
        surface[row, 40:49] = rng.integers(0, 256, 9)
    return surface


def deflated(strips: list[bytes], **tags: Any) -> bytes:
    """A grey TIFF of 160 × 200 pixels from its packed strips of 100 rows."""
    size = {256: (160,), 257: (200,), 258: (8,), 259: (8,), 262: (1,), 277: (1,), 278: (100,)}
    size |= {int(name[1:]): numbers for name, numbers in tags.items()}
    lengths = tuple(map(len, strips))
    start = len(tiff_file({**size, 273: (9, 9), 279: lengths}, b""))
    return tiff_file({**size, 273: (start, start + lengths[0]), 279: lengths}, b"".join(strips))


def packed(values: NDArray[np.uint8]) -> list[bytes]:
    return [zlib.compress(values[start : start + 100].tobytes()) for start in (0, 100)]


def refusal(data: bytes) -> ImageError:
    with pytest.raises(ImageError, match=r"part is not a complete TIFF file.*Expected") as caught:
        decode_image(data, "part")
    return caught.value


@pytest.mark.parametrize("compression", [8, 32946])
def test_each_strip_is_checked(compression: int) -> None:
    first, second = packed(scratched())
    whole = deflated([first, second], t259=(compression,))
    np.testing.assert_array_equal(decode_image(whole, "part").pixels[..., 0], scratched())
    wrong = second[:-1] + bytes([second[-1] ^ 1])
    assert refusal(deflated([first, wrong], t259=(compression,))).code == "corrupt_image"
    assert refusal(deflated([first, second[:-1]], t259=(compression,))).code == "truncated_image"


def test_strip_with_a_row_too_many_is_rejected() -> None:
    first, second = packed(scratched())
    longer = zlib.compress(bytes(160 * 101))
    assert refusal(deflated([first, longer])).code == "corrupt_image"
    assert refusal(deflated([longer, second])).code == "corrupt_image"


@pytest.mark.parametrize("channels", [1, 3])
def test_last_strip_may_be_filled_up(channels: int) -> None:
    """Some encoders write as many rows into the last strip as into the others."""
    values = np.random.default_rng(2).integers(0, 256, (200, 160, channels), dtype=np.uint8)
    strips = [zlib.compress(values[:120].tobytes()), zlib.compress(values[80:].tobytes())]
    colour = {"t258": (8,) * channels, "t262": (1 if channels == 1 else 2,), "t277": (channels,)}
    photograph = decode_image(deflated(strips, t278=(120,), **colour), "part")
    np.testing.assert_array_equal(photograph.pixels[:120], values[:120])
    np.testing.assert_array_equal(photograph.pixels[120:], values[80:160])


def test_each_tile_is_checked() -> None:
    values = np.random.default_rng(3).integers(0, 256, (16, 32, 1), dtype=np.uint8)
    tiles = b"".join(zlib.compress(values[:, start : start + 16].tobytes(), 0) for start in (0, 16))
    length = len(tiles) // 2
    grey = {256: (32,), 257: (16,), 258: (8,), 259: (8,), 262: (1,), 277: (1,), 322: (16,), 323: (16,)}
    start = len(tiff_file({**grey, 324: (9, 9), 325: (length, length)}, b""))
    tags = {**grey, 324: (start, start + length), 325: (length, length)}
    np.testing.assert_array_equal(decode_image(tiff_file(tags, tiles), "part").pixels, values)
    damaged = tiles[:-9] + bytes([tiles[-9] ^ 1]) + tiles[-8:]
    assert refusal(tiff_file(tags, damaged)).code == "corrupt_image"
