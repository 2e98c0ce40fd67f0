import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.images import decode_image
from tests.image_files import tiff


def noise(channels: int, dtype: Any = np.uint8) -> NDArray[Any]:
    return np.random.default_rng(2).integers(0, np.iinfo(dtype).max, (6, 7, channels)).astype(dtype)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("stored", ["together", "separate", "differences"])
@pytest.mark.parametrize(("colours", "channels"), [(1, 2), (1, 3), (1, 5), (3, 3), (3, 4), (3, 8)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_extra_channels_are_left_out(
    dtype: Any, colours: int, channels: int, stored: str, order: str
) -> None:
    values = noise(channels, dtype)
    tags = {"t262": (1 if colours == 1 else 2,), "t338": (0,) * (channels - colours)}
    if channels == colours:
        del tags["t338"]
    if stored == "together":
        data = tiff(values, order=order, **tags)
    elif stored == "separate":
        data = tiff(values, order=order, **tags, t284=(2,))
    else:
        differences = np.diff(values, axis=1, prepend=dtype(0))  # modulo 2 ** bits
        data = tiff(differences, order=order, pack=zlib.compress, **tags, t259=(8,), t317=(2,))
    photograph = decode_image(data, "part", white_level=65535)
    expected = values if dtype == np.uint8 else np.floor(values / 257 + 0.5)
    np.testing.assert_array_equal(photograph.pixels, expected[..., :colours])
    assert photograph.warnings == ()


def test_extra_channels_keep_orientation_alpha_and_inversion() -> None:
    values = noise(3)
    turned = decode_image(tiff(values, t262=(0,), t338=(0, 2), t274=(6,)), "part")
    np.testing.assert_array_equal(turned.pixels[..., 0], np.rot90(255 - values[..., 0], -1))
    assert any("alpha was dropped" in warning for warning in turned.warnings)


@pytest.mark.parametrize(
    ("dtype", "channels", "tags", "words"),
    [
        (np.uint8, 1, {"t339": (2,)}, "signed values"),
        (np.uint8, 3, {"t339": (2, 2, 2)}, "signed values"),
        (np.uint8, 1, {"t262": (3,), "t320": (0,) * 768, "t339": (2,)}, "signed values"),
        (np.uint16, 1, {"t339": (3,)}, "floating-point values"),
        (np.uint32, 2, {"t262": (1,), "t339": (6,)}, "complex floating-point values"),
        (np.uint8, 1, {"t339": (4,)}, "undefined values"),
        (np.uint8, 3, {"t258": (8, 8, 4)}, "4 and 8 bits per channel"),
        (np.uint16, 1, {"t262": (3,), "t320": (0,) * 768}, "a palette and 16 bits"),
        (np.uint16, 1, {"t258": (10,)}, "10 bits per channel"),
        (np.uint8, 4, {"t262": (5,)}, "printing inks"),
        (np.uint8, 3, {"t262": (6,)}, "luminance and chrominance"),
        (np.uint8, 1, {"t262": (32803,)}, "raw values of a colour filter"),
        (np.uint8, 9, {"t262": (1,)}, "9 channels"),
        (np.uint16, 3, {"t262": (1,), "t338": (1, 0)}, "3 channels of 16 bits"),
    ],
)
def test_other_samples_are_rejected_with_the_reason(
    dtype: Any, channels: int, tags: dict[str, tuple[int, ...]], words: str
) -> None:
    with pytest.raises(
        ImageError, match=f"part, a TIFF file, .*{words}.* Expected unsigned values"
    ) as caught:
        decode_image(tiff(noise(channels, dtype), **tags), "part")
    assert caught.value.code in {"unsupported_depth", "unsupported_channels"}


@pytest.mark.parametrize("cut", [1, 20])
@pytest.mark.parametrize("planes", [1, 2])
def test_damaged_channels_are_rejected(planes: int, cut: int) -> None:
    def shorten(packed: bytes) -> bytes:
        return packed[:-cut]

    for pack, method in ((shorten, 1), (lambda data: shorten(zlib.compress(data)), 8)):
        with pytest.raises(ImageError):
            decode_image(tiff(noise(5), pack=pack, t262=(1,), t259=(method,), t284=(planes,)), "part")
