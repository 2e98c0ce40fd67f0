import io
from functools import partial
from itertools import product

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from segdec.config import InputConfig
from segdec.errors import ImageError
from segdec.images import decode_image
from segdec.inference.preprocessing import (
    GREY_TOLERANCE,
    prepare_image,
    prepare_mask,
    restore_mask,
    scaled_size,
)
from tests.image_files import encode, png_16

NATIVE = InputConfig()


def sized(policy: str, height: int, width: int, **more: object) -> InputConfig:
    return InputConfig.model_validate({"policy": policy, "height": height, "width": width, **more})


resize, letterbox = partial(sized, "resize"), partial(sized, "letterbox")
tile = partial(sized, "tile", overlap_px=0)


def image(height: int, width: int, channels: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)


# === Size ===


def test_native_repeats_the_last_row_and_column() -> None:
    prepared = prepare_image(image(13, 18), NATIVE, 1)
    assert prepared.shape == (16, 24, 1)
    np.testing.assert_array_equal(prepared[:13, :18], image(13, 18))
    np.testing.assert_array_equal(prepared[13:, :18], image(13, 18)[12:].repeat(3, axis=0))
    assert (prepared[12:, 17:] == image(13, 18)[12, 17]).all()


def test_shrinking_averages_areas() -> None:
    pixels = np.zeros((16, 16, 1), np.uint8)
    pixels[0, 0], pixels[0, 1] = 100, 60  # of the four pixels that become one
    prepared = prepare_image(pixels, resize(8, 8), 1)
    assert prepared[0, 0, 0] == 40
    assert prepared.sum() == 40


@pytest.mark.parametrize(
    ("photograph", "inside"),
    [
        ((100, 60), (64, 38)),  # 38.4 columns
        ((60, 101), (38, 64)),  # 38.02 rows
        ((13, 9), (64, 44)),  # enlarged; 44.3 columns
        ((64, 64), (64, 64)),
        ((1, 5000), (1, 64)),  # 0.0128 rows
        ((300, 1), (64, 1)),
    ],
)
def test_letterbox_keeps_proportions_at_the_upper_left(
    photograph: tuple[int, int], inside: tuple[int, int]
) -> None:
    config, pixels = letterbox(64, 64), image(*photograph)
    assert scaled_size(config, *photograph) == inside
    prepared = prepare_image(pixels, config, 1)
    assert prepared.shape == (64, 64, 1)
    rows, columns = inside
    mode = cv2.INTER_AREA if max(photograph) > 64 else cv2.INTER_LINEAR
    np.testing.assert_array_equal(
        prepared[:rows, :columns, 0], cv2.resize(pixels, inside[::-1], interpolation=mode)
    )
    assert (prepared[rows - 1 :, :columns] == prepared[rows - 1, :columns]).all()
    assert (prepared[:, columns - 1 :] == prepared[:, columns - 1 : columns]).all()


@pytest.mark.parametrize(
    ("photograph", "size"), [((13, 18), (32, 48)), ((40, 50), (40, 56)), ((33, 1), (40, 48))]
)
def test_tile_pads_to_multiples_of_8_and_at_least_one_tile(
    photograph: tuple[int, int], size: tuple[int, int]
) -> None:
    pixels = image(*photograph)
    prepared = prepare_image(pixels, tile(32, 48), 1)
    missing = [(0, size[0] - photograph[0]), (0, size[1] - photograph[1]), (0, 0)]
    np.testing.assert_array_equal(prepared, np.pad(pixels, missing, mode="edge"))


# === Channels ===


def levels() -> NDArray[np.uint8]:
    """Every grey level on a square of 16 × 16 px, which a JPEG of quality 100 keeps."""
    steps = np.arange(256, dtype=np.uint8).reshape(16, 16)
    return steps.repeat(16, axis=0).repeat(16, axis=1)


@pytest.mark.parametrize(("blue", "red"), [(0, 0), (1, -1), (-1, 1), (1, 1)])
def test_grey_jpeg_with_rounding_differences_is_grey(blue: int, red: int) -> None:
    channels = [levels(), np.full_like(levels(), 128 + blue), np.full_like(levels(), 128 + red)]
    stored = io.BytesIO()
    picture = Image.merge("YCbCr", [Image.fromarray(channel) for channel in channels])
    picture.save(stored, "JPEG", quality=100, subsampling="4:4:4")
    prepared = prepare_image(decode_image(stored.getvalue(), "part").pixels, NATIVE, 1)
    as_grey = decode_image(encode(levels(), "JPEG", quality=100), "part").pixels
    assert np.abs(prepared.astype(int) - as_grey).max() <= (1 if blue or red else 0)


@pytest.mark.parametrize("bits", [8, 16])
def test_larger_colour_differences_are_rejected(bits: int) -> None:
    level = 1 if bits == 8 else 257
    for apart, channel in product((GREY_TOLERANCE, GREY_TOLERANCE + 1), range(3)):
        values = np.full((8, 8, 3), 90 * level, np.uint8 if bits == 8 else np.uint16)
        values[5, 6, channel] += apart * level
        data = encode(values, "PNG") if bits == 8 else png_16(values)
        pixels = decode_image(data, "part", white_level=65535).pixels
        if apart == GREY_TOLERANCE:
            assert prepare_image(pixels, NATIVE, 1).shape == (8, 8, 1)
            continue
        with pytest.raises(ImageError, match=rf"channels differ by up to {apart} of 255"):
            prepare_image(pixels, NATIVE, 1)


def test_true_colour_is_converted_when_allowed() -> None:
    pixels = np.full((8, 8, 3), (255, 0, 0), np.uint8)
    assert prepare_image(pixels, InputConfig(convert_color=True), 1)[0, 0, 0] == 76  # 0.299 · 255


def test_grey_is_copied_to_the_channels_of_the_network() -> None:
    np.testing.assert_array_equal(prepare_image(image(8, 8), NATIVE, 3), image(8, 8).repeat(3, axis=2))


def test_wrong_channel_count_is_rejected() -> None:
    with pytest.raises(ImageError, match=r"4 channels. Expected 1") as caught:
        prepare_image(image(8, 8, 4), NATIVE, 1)
    assert caught.value.code == "unsupported_channels"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (np.zeros((8, 8), np.uint8), "Expected [H, W, C]"),
        (np.zeros((0, 8, 1), np.uint8), "Expected [H, W, C]"),
        (np.zeros((8, 8, 1), np.float32), "Expected uint8"),
    ],
)
def test_invalid_arrays_are_rejected(wrong: NDArray[np.uint8], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        prepare_image(wrong, NATIVE, 1)
    assert text in str(caught.value)


# === Masks ===


def test_one_defect_pixel_survives_shrinking() -> None:
    mask = np.zeros((800, 800), np.uint8)
    mask[401, 3] = 255
    prepared = prepare_mask(mask, resize(8, 8))
    assert np.argwhere(prepared).tolist() == [[4, 0]]
    assert prepared.max() == 255


def test_scores_are_interpolated_between_the_centres_of_their_cells() -> None:
    scores = np.array([[0.0, 1.0]], np.float32)
    restored = restore_mask(scores, NATIVE, 8, 16)
    expected = np.clip((np.arange(16) + 0.5) / 8 - 0.5, 0, 1)
    np.testing.assert_allclose(restored, expected[None].repeat(8, axis=0), atol=1e-6)


def test_scores_of_another_photograph_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"Wrong mask scores \(2, 2\)\. Expected \(2, 3\)"):
        restore_mask(np.zeros((2, 2), np.float32), NATIVE, 13, 18)


@pytest.mark.parametrize("stride", [8, 1])
@pytest.mark.parametrize(
    "config", [NATIVE, resize(256, 128), letterbox(256, 256), letterbox(128, 64), tile(64, 256)]
)
def test_defect_comes_back_where_it_was(config: InputConfig, stride: int) -> None:
    """A rectangle's centre of mass moves by half a pixel at most, of the input or the photograph."""
    mask = np.zeros((211, 143), np.uint8)
    mask[75:123, 40:97] = 255  # centre (98.5, 68) in pixel indices
    prepared = prepare_mask(mask, config)
    rows, columns = (side // stride for side in prepared.shape)
    cells = prepared.reshape(rows, stride, columns, stride).mean(axis=(1, 3), dtype=np.float32) / 255
    restored = restore_mask(cells, config, 211, 143, stride)
    centre = [float((axis * restored).sum() / restored.sum()) for axis in np.indices(restored.shape)]
    scale = np.divide((211, 143), scaled_size(config, 211, 143))
    np.testing.assert_allclose(centre, (98.5, 68.0), rtol=0, atol=0.5 * max(1, *scale))
    assert restored[98, 68] == pytest.approx(1.0, abs=0.01)
    assert restored[:40].max() == restored[:, :15].max() == restored[:, 125:].max() == 0.0
