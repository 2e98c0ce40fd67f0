"""The values of a mask: from grey values, colours, palette indices or alpha."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.imaging.decoders import Decoded

Mask = NDArray[np.uint8]

BLACK, WHITE = 0, 255
DARK, BRIGHT = 64, 191
"""Edges of coloured drawings are smooth: a background is black below `DARK` and white above `BRIGHT`."""

OPAQUE = 128
"""Alpha from which the colour of a pixel counts: at lower values its colour is inexact."""

NAMED_COLOURS = 4
"""Colours that a message lists."""


def defect_values(picture: Decoded, name: str) -> Mask:
    """Returns how far each pixel of a mask is from the background, uint8 [H, W]; 0 is good.

    - Transparent pixels are good, the value of others is their alpha. Those must have one colour, or several
      without black and white. The same alpha everywhere means nothing.
    - The background of a mask with colours is index 0 of its palette if that is black or white, else black,
      else white. That of other masks is black.

    16-bit values above 255 are scaled to 1…255.

    Raises:
        ImageError: With the code `unsupported_channels`, if the background is unknown.
    """
    pixels, alpha = _to_8_bits(picture.values), picture.alpha
    if alpha is not None and alpha.min() < alpha.max():
        _check_visible(pixels[alpha >= min(OPAQUE, int(alpha.max()))], name)
        return alpha
    if alpha is not None and not alpha.any():
        if (pixels != pixels[0, 0]).any():
            raise _ambiguous(name, "is transparent everywhere, but has several colours")
        return np.zeros(pixels.shape[:2], np.uint8)
    if picture.indices is not None and picture.is_palette_blank:
        return picture.indices
    background = _background(picture, pixels, name)
    return np.asarray((np.maximum(pixels, background) - np.minimum(pixels, background)).max(axis=2))


def class_values(picture: Decoded, name: str, known: Collection[int] = ()) -> Mask:
    """Returns the number of each pixel's class, uint8 [H, W]; 0 is good, and so are transparent pixels.

    The number is the grey value, or the index of a palette with colours. With a grey palette it is the index
    only if the grey values are not all `known`.

    Raises:
        ImageError: With the code `unsupported_channels` for colours without a palette and for ambiguous
            alpha, `unsupported_depth` for numbers above 255.
    """
    values, indices = picture.values, picture.indices
    greys, coloured = values[..., 0], _has_colours(values)
    if indices is not None and (coloured or not set(np.unique(greys).tolist()) <= {0, *known}):
        numbers = indices
    elif coloured:
        raise _ambiguous(name, f"has the colours {_list_colours(values)} instead of numbers of classes")
    elif greys.max() > 255:
        raise ImageError(
            f"The mask {name} holds the value {greys.max()}. Expected numbers of classes up to 255.",
            code="unsupported_depth",
        )
    else:
        numbers = greys.astype(np.uint8)
    if picture.alpha is None:
        return numbers
    hidden = picture.alpha == 0
    if numbers[hidden].any() and (hidden.all() or not numbers[~hidden].all()):
        raise _ambiguous(name, "has transparent pixels with the number of a class")
    return np.asarray(np.where(hidden, np.uint8(0), numbers), np.uint8)


def _to_8_bits(values: NDArray[np.uint8] | NDArray[np.uint16]) -> Mask:
    if values.dtype == np.uint8 or values.max() <= 255:
        return values.astype(np.uint8, copy=False)
    return np.asarray((values.astype(np.uint32) + 256) // 257, np.uint8)  # every value above 0 stays above 0


def _has_colours(pixels: NDArray[Any]) -> bool:
    return bool((pixels != pixels[..., :1]).any())


def _check_visible(colours: Mask, name: str) -> None:
    """Rejects visible pixels [N, C] that may be a drawing of their own."""
    if (colours == colours[0]).all():
        return
    if (colours == BLACK).all(axis=1).any() or (colours == WHITE).all(axis=1).any():
        raise _ambiguous(name, "has transparent pixels beside black or white and other ones")


def _background(picture: Decoded, pixels: Mask, name: str) -> Mask:
    """The colour of the background, [C]."""
    black, white = (np.full(3, level, np.uint8) for level in (BLACK, WHITE))
    if not _has_colours(pixels):
        return black[: pixels.shape[2]]
    first: Mask | None = None if picture.palette is None else picture.palette[0]
    if first is not None and ((first == BLACK).all() or (first == WHITE).all()):
        return first
    if pixels.max(axis=2).min() < DARK:
        return black
    if pixels.min(axis=2).max() > BRIGHT:
        return white
    if first is None:
        raise _ambiguous(name, f"has the colours {_list_colours(pixels)} without a black or white background")
    return first


def _list_colours(pixels: NDArray[Any]) -> str:
    colours = np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)
    named = ", ".join(f"({', '.join(map(str, colour))})" for colour in colours[:NAMED_COLOURS].tolist())
    return named + (", …" if len(colours) > NAMED_COLOURS else "")


def _ambiguous(name: str, arrived: str) -> ImageError:
    return ImageError(
        f"The mask {name} {arrived}. Expected grey values above 0 where there is a defect (or the numbers of "
        "classes), or a transparent background: save it as a grey PNG.",
        code="unsupported_channels",
    )
