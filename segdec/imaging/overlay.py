"""Draws the predicted and the true mask on a photograph."""

import textwrap
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
"""Of the fill, through which the defect must remain visible, and of a mask score of 1."""

BAR: Color = (24, 24, 24)
TEXT: Color = (240, 240, 240)
FONT = cv2.FONT_HERSHEY_SIMPLEX
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
    canvas = _enlarge(_to_rgb(image), factor)
    if area is not None:
        _outline(canvas, _enlarge(area, factor), INSPECTED)
    if mask is not None:
        large = _enlarge(mask, factor)
        tinted = canvas * (1 - OPACITY) + np.array(PREDICTED) * OPACITY
        canvas = np.where(large[..., None] > 0, tinted.round(), canvas).astype(np.uint8)
        _outline(canvas, large, PREDICTED)
    if truth is not None:
        _outline(canvas, _enlarge(truth, factor), TRUTH)
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
    tinted = _to_rgb(image) * (1 - share) + np.array(color) * share
    canvas: NDArray[np.uint8] = tinted.round().astype(np.uint8)
    _outline(canvas, mask, color)
    return canvas


def _to_rgb(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image.copy()


def _check_size(image: NDArray[np.uint8], mask: NDArray[Any] | None) -> None:
    if mask is not None and mask.shape != image.shape[:2]:
        sizes = f"The mask has {mask.shape} rows and columns, its image {image.shape[:2]}"
        raise ImageError(f"{sizes}. Expected the same size.", code="mask_size")


def _enlarge(image: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    return image.repeat(factor, axis=0).repeat(factor, axis=1)


def _outline(canvas: NDArray[np.uint8], mask: NDArray[np.uint8], color: Color) -> None:
    """Draws the contours of `mask` on `canvas`, with a thickness that suits the picture's size."""
    contours, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(canvas, contours, -1, color, thickness=max(1, round(min(canvas.shape[:2]) / 250)))


# === Caption ===


def draw_caption(caption: str, width: int, legend: Sequence[tuple[str, Color]] = ()) -> NDArray[np.uint8]:
    """Draws a bar uint8 [h, `width`, 3] with the wrapped caption and a legend of the colours."""
    height = min(max(round(width / 48), 12), 40)  # of a capital letter, px
    margin = height
    lines = _wrap(caption.encode("ascii", "replace").decode(), height, width - 2 * margin)
    step = 2 * height
    rows = step * (len(lines) + bool(legend)) + margin
    bar = np.full((rows, width, 3), BAR, dtype=np.uint8)
    for number, line in enumerate(lines, start=1):
        _write(bar, line, (margin, number * step), height, TEXT)
    x = margin
    for word, color in legend:
        x = _write(bar, word, (x, rows - margin), height, color) + 2 * height
    return bar


def _write(bar: NDArray[np.uint8], text: str, origin: tuple[int, int], height: int, color: Color) -> int:
    """Writes `text` with its lower left corner at `origin`; returns the column after it."""
    scale, thickness = _pen(height)
    cv2.putText(bar, text, origin, FONT, scale, color, thickness, cv2.LINE_AA)
    return origin[0] + _width(text, height)


def _wrap(text: str, height: int, width: int) -> list[str]:
    """Wraps `text` at newlines and spaces, by the average width of its characters."""
    columns = max(1, width * len(text) // max(1, _width(text, height)))
    return [line for part in text.split("\n") for line in textwrap.wrap(part, columns) or [""]]


def _width(text: str, height: int) -> int:
    return int(cv2.getTextSize(text, FONT, *_pen(height))[0][0])


def _pen(height: int) -> tuple[float, int]:
    """Returns scale and thickness of text of this height."""
    thickness = max(1, round(height / 10))
    return cv2.getFontScaleFromHeight(FONT, height, thickness), thickness
