"""Draws the predicted and the true mask on a photograph."""

import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError

Color = tuple[int, int, int]

PREDICTED: Color = (255, 92, 40)
TRUTH: Color = (0, 190, 255)
INSPECTED: Color = (140, 200, 90)
"""Orange, light blue and green, RGB; the first two are distinguishable with any colour vision."""

OPACITY, HEAT_OPACITY = 0.35, 0.75
"""Opacity of the fill, through which the defect must remain visible, and of a mask score of 1."""

BAR: Color = (24, 24, 24)
TEXT: Color = (240, 240, 240)
FONT, FONT_WEIGHT = "sans", 400
"""A font of OpenCV 5. For scripts that it lacks, such as Chinese, OpenCV uses another one of its own."""

CAPITAL_HEIGHT = 0.74
"""Height of a capital letter, in font sizes."""

MIN_CAPTION_WIDTH = 320
"""Narrower pictures with a caption are enlarged, px."""


def draw_overlay(
    image: NDArray[np.uint8],
    mask: NDArray[np.uint8] | None,
    *,
    truth: NDArray[np.uint8] | None = None,
    area: NDArray[np.uint8] | None = None,
    caption: str | None = None,
) -> NDArray[np.uint8]:
    """Draws masks on a photograph.

    Args:
        image: uint8 [H, W, C], C is 1 (grey) or 3 (RGB).
        mask: Predicted mask, uint8 [H, W], above 0 = defect: filled and outlined in orange.
        truth: True mask, uint8 [H, W]: outlined in light blue.
        area: Inspected area, uint8 [H, W], above 0 inside: outlined in green; None = everywhere.
        caption: Text of a bar below the picture, wrapped to its width.

    Returns:
        uint8 [H, W, 3] RGB. A caption adds rows, and enlarges a picture narrower than 320 px by an integer
        factor, so that the text is readable.

    Raises:
        ImageError: With the code `mask_size`, if a mask has another size than the image.
    """
    for drawn in (mask, truth, area):
        _check_size(image, drawn)
    factor = 1 if caption is None else -(-MIN_CAPTION_WIDTH // image.shape[1])
    canvas = _enlarge(to_rgb(image), factor)
    if area is not None:
        draw_outline(canvas, _enlarge(area, factor), INSPECTED)
    if mask is not None:
        large = _enlarge(mask, factor)
        tinted = canvas * (1 - OPACITY) + np.array(PREDICTED) * OPACITY
        canvas = np.where(large[..., None] > 0, tinted.round(), canvas).astype(np.uint8)
        draw_outline(canvas, large, PREDICTED)
    if truth is not None:
        draw_outline(canvas, _enlarge(truth, factor), TRUTH)
    if caption is None:
        return canvas
    drawn_in = (("predicted", PREDICTED, mask), ("truth", TRUTH, truth), ("inspected", INSPECTED, area))
    legend = [(word, color) for word, color, drawn in drawn_in if drawn is not None]
    return np.vstack([canvas, draw_caption(caption, canvas.shape[1], legend)])


def draw_scores(
    image: NDArray[np.uint8],
    scores: NDArray[np.float32],
    mask: NDArray[np.uint8],
    *,
    color: Color = PREDICTED,
) -> NDArray[np.uint8]:
    """Tints a photograph in `color` by its mask scores [H, W], and outlines the mask.

    For types and errors see `draw_overlay`.
    """
    for drawn in (scores, mask):
        _check_size(image, drawn)
    share = HEAT_OPACITY * np.clip(scores, 0.0, 1.0)[..., None]  # [H, W, 1]
    tinted = to_rgb(image) * (1 - share) + np.array(color) * share
    canvas: NDArray[np.uint8] = tinted.round().astype(np.uint8)
    draw_outline(canvas, mask, color)
    return canvas


def to_rgb(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns a copy [H, W, 3] of a photograph [H, W, 1 or 3]."""
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image.copy()


def _check_size(image: NDArray[np.uint8], mask: NDArray[Any] | None) -> None:
    if mask is not None and mask.shape != image.shape[:2]:
        sizes = f"The mask has {mask.shape} rows and columns, its image {image.shape[:2]}"
        raise ImageError(f"{sizes}. Expected the same size.", code="mask_size")


def _enlarge(image: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    return image.repeat(factor, axis=0).repeat(factor, axis=1)


def draw_outline(canvas: NDArray[np.uint8], mask: NDArray[np.uint8], color: Color) -> None:
    """Draws the contours of `mask` on `canvas`, with a thickness that suits the picture's size."""
    contours, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(canvas, contours, -1, color, thickness=max(1, round(min(canvas.shape[:2]) / 250)))


# === Caption ===


def draw_caption(caption: str, width: int, legend: Sequence[tuple[str, Color]] = ()) -> NDArray[np.uint8]:
    """Draws a bar uint8 [h, `width`, 3] with the wrapped caption and a legend of the colours.

    A character that cannot be drawn becomes `?`.
    """
    height = min(max(round(width / 48), 12), 40)  # of a capital letter, px
    margin = height
    lines = _wrap(caption, height, width - 2 * margin)
    step = 2 * height
    rows = step * (len(lines) + bool(legend)) + margin
    bar = np.full((rows, width, 3), BAR, dtype=np.uint8)
    for number, line in enumerate(lines, start=1):
        write_text(bar, line, (margin, number * step), height, TEXT)
    x = margin
    for word, color in legend:
        x = write_text(bar, word, (x, rows - margin), height, color) + 2 * height
    return bar


def write_text(
    picture: NDArray[np.uint8], text: str, origin: tuple[int, int], height: int, color: Color
) -> int:
    """Writes `text` with its lower left corner at `origin`; returns the column after it.

    `height` is that of a capital letter, px.
    """
    font, size = cv2.FontFace(FONT), round(height / CAPITAL_HEIGHT)
    cv2.putText(picture, _drawable(text), origin, color, font, size, FONT_WEIGHT)
    return origin[0] + _width(text, height)


def _wrap(text: str, height: int, width: int) -> list[str]:
    """Wraps `text` at newlines and spaces."""
    return [line for part in text.split("\n") for line in _wrap_line(_drawable(part), height, width)]


def _wrap_line(text: str, height: int, width: int) -> list[str]:
    columns, lines = len(text), [text]
    while columns > 1 and max(_width(line, height) for line in lines) > width:
        columns -= 1
        lines = textwrap.wrap(text, columns) or [""]
    return lines


def _width(text: str, height: int) -> int:
    font, size = cv2.FontFace(FONT), round(height / CAPITAL_HEIGHT)
    _, _, width, _ = cv2.getTextSize((0, 0), _drawable(text), (0, 0), font, size, FONT_WEIGHT)
    return int(width)


def _drawable(text: str) -> str:
    """Replaces what OpenCV cannot draw; on a lone surrogate, of an undecodable file name, it crashes."""
    composed = unicodedata.normalize("NFC", text)
    return "".join(character if character.isprintable() else "?" for character in composed)
