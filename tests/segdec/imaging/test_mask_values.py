import io
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from segdec.errors import ImageError
from segdec.images import decode_mask_values
from tests.image_files import encode, png_16

RED, PINK, GREEN, BLUE = (255, 0, 0), (255, 128, 128), (0, 200, 0), (0, 0, 255)
BLACK, GREY, WHITE = (0, 0, 0), (128, 128, 128), (255, 255, 255)
CLEAR, CLEAR_RED = (0, 0, 0, 0), (255, 0, 0, 0)

Colour = tuple[int, ...]


def name_case(value: object) -> str:
    return "mask" if isinstance(value, bytes) else str(value)


def pixels_of(*colours: Colour) -> bytes:
    """A PNG of two equal rows with these colours: RGB, grey with alpha, or RGBA."""
    channels = max(map(len, colours))
    row = [(*colour, 255) if len(colour) == 3 < channels else colour for colour in colours]
    return encode(np.array([row, row], np.uint8), "PNG", {2: "LA", 3: "RGB", 4: "RGBA"}[channels])


def palette_of(
    palette: Sequence[Colour], *indices: int, clear: int | None = None, kind: str = "PNG"
) -> bytes:
    picture = Image.fromarray(np.array([indices], np.uint8), "P")
    picture.putpalette([level for colour in palette for level in colour])
    stream = io.BytesIO()
    picture.save(stream, kind, **({} if clear is None else {"transparency": clear}))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("mask", "values"),
    [
        (pixels_of(BLACK, (0, 0, 1), GREY, WHITE), [0, 1, 128, 255]),
        (pixels_of(BLACK, RED, GREEN), [0, 255, 200]),
        (pixels_of(WHITE, RED, PINK, GREEN), [0, 255, 127, 255]),
        (pixels_of(WHITE, BLACK, GREY), [255, 0, 128]),  # no colours: black is the background
        (pixels_of(CLEAR, BLACK, (0, 0, 0, 100)), [0, 255, 100]),
        (pixels_of(CLEAR_RED, RED, GREEN, PINK), [0, 255, 255, 255]),
        (pixels_of((0, 0), (0, 255), (90, 0)), [0, 255, 0]),
        (pixels_of((0, 128), (255, 128)), [0, 255]),  # the same alpha everywhere
        (pixels_of(CLEAR, CLEAR), [0, 0]),
        (palette_of([BLACK, (128, 0, 0), (0, 128, 0)], 0, 1, 2), [0, 128, 128]),
        (palette_of([WHITE, BLACK, GREEN], 0, 1, 2), [0, 255, 255]),
        (palette_of([WHITE, BLACK], 0, 1), [255, 0]),
        (palette_of([RED, WHITE], 0, 1), [255, 0]),
        (palette_of([GREEN, BLUE], 0, 1), [0, 255]),
        (palette_of([BLACK] * 3, 0, 1, 2), [0, 1, 2]),
        (palette_of([GREEN, RED], 0, 1, clear=0), [0, 255]),
        (palette_of([BLACK, (128, 0, 0)], 0, 1, kind="TIFF"), [0, 128]),
        (palette_of([BLACK, (128, 0, 0)], 0, 1, kind="BMP"), [0, 128]),
        (encode(np.array([[0, 255]] * 2, np.uint8), "PNG", "1"), [0, 255]),
        (encode(np.array([[0, 255]] * 2, np.uint8), "TIFF", "1"), [0, 255]),
        (png_16(np.array([[[0], [1], [255]]], np.uint16)), [0, 1, 255]),
        (png_16(np.array([[[0], [1], [32768], [65535]]], np.uint16)), [0, 1, 128, 255]),
    ],
    ids=name_case,
)
def test_good_pixels_of_a_mask_are_0(mask: bytes, values: list[int]) -> None:
    assert decode_mask_values(mask, "m")[0].tolist() == values


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (pixels_of(CLEAR, BLACK, WHITE), "transparent pixels beside black or white"),
        (pixels_of(CLEAR, WHITE, RED), "transparent pixels beside black or white"),
        (pixels_of(CLEAR, CLEAR_RED), "transparent everywhere, but has several colours"),
        (pixels_of(GREEN, RED), r"the colours \(0, 200, 0\), \(255, 0, 0\) without a black or white"),
    ],
    ids=name_case,
)
def test_ambiguous_masks_are_rejected(mask: bytes, words: str) -> None:
    with pytest.raises(ImageError, match=f"The mask m .*{words}.*Expected"):
        decode_mask_values(mask, "m")


@pytest.mark.parametrize(
    ("mask", "numbers"),
    [
        (palette_of([BLACK, (128, 0, 0), (0, 128, 0)], 0, 1, 2), [0, 1, 2]),
        (palette_of([WHITE, RED, BLACK], 0, 1, 2, kind="TIFF"), [0, 1, 2]),
        (palette_of([BLACK, WHITE, GREY], 0, 1, 2), [0, 1, 2]),  # no class has the number 128
        (palette_of([BLACK, (2, 2, 2)], 0, 1), [0, 2]),  # an optimised grey file
        (palette_of([BLACK, RED, GREEN], 0, 1, 2, clear=0), [0, 1, 2]),
        (pixels_of((0, 0), (1, 255), (2, 255)), [0, 1, 2]),
        (png_16(np.array([[[0], [1], [2]]], np.uint16)), [0, 1, 2]),
    ],
    ids=name_case,
)
def test_numbers_of_classes(mask: bytes, numbers: list[int]) -> None:
    assert decode_mask_values(mask, "m", classes=(1, 2))[0].tolist() == numbers


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (pixels_of(BLACK, RED), r"the colours \(0, 0, 0\), \(255, 0, 0\) instead of numbers"),
        (pixels_of((0, 255), (1, 0)), "transparent pixels with the number of a class"),
        (pixels_of((1, 0), (2, 0)), "transparent pixels with the number of a class"),
        (png_16(np.array([[[0], [300]]], np.uint16)), "the value 300"),
    ],
    ids=name_case,
)
def test_masks_without_numbers_are_rejected(mask: bytes, words: str) -> None:
    with pytest.raises(ImageError, match=f"The mask m .*{words}.*Expected"):
        decode_mask_values(mask, "m", classes=(1, 2))
