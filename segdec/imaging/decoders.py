"""Decodes the pixels of files whose header was accepted, with the strictest decoder for each format."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError, MissingExtraError
from segdec.imaging.header import ALPHA_MODES, GREY_MODES, MODES_16_BIT, PALETTE_MODES, open_header
from segdec.imaging.integrity import incomplete
from segdec.imaging.png_chunks import check_pixels
from segdec.imaging.tiff_channels import as_grey
from segdec.imaging.tiff_directory import Tag, numbers
from segdec.imaging.tiff_parts import check_parts
from segdec.imaging.tiff_samples import Samples, find_separable

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Values = NDArray[np.uint8] | NDArray[np.uint16]

Value = TypeVar("Value", bound=np.generic)

OPAQUE = 255
UNASSOCIATED_ALPHA = 2
"""An extra channel of TIFF."""

PNG_GREY = (0, 4)
"""PNG colour types without colour: grey, and grey with alpha."""


@dataclass(frozen=True)
class Decoded:
    """The first picture of a file, as stored (TIFF: upright).

    Attributes:
        values: uint8 [H, W, C], or uint16 for more than 8 bits; C is 1 (grey) or 3 (RGB).
        alpha: uint8 [H, W], 0 = transparent; None if the file has none.
        indices: uint8 [H, W], indices of the palette; None without one.
        palette: uint8 [N, 3], its colours.
    """

    values: Values
    alpha: NDArray[np.uint8] | None
    indices: NDArray[np.uint8] | None = None
    palette: NDArray[np.uint8] | None = None

    @property
    def is_transparent(self) -> bool:
        """Whether any pixel is transparent."""
        return self.alpha is not None and bool((self.alpha < OPAQUE).any())

    @property
    def is_palette_blank(self) -> bool:
        """Whether all colours of the palette are the same, so that the picture is one area."""
        return (
            self.palette is not None
            and len(self.palette) > 1
            and bool((self.palette == self.palette[0]).all())
        )


def decode_picture(picture: "Picture", kind: str, bit_depth: int, data: bytes, name: str) -> Decoded:
    """Decodes the first picture of a file.

    `picture` is its header, read by Pillow, `kind` its format, a value of `segdec.imaging.header.FORMATS`,
    and `data` the file, of PNG the essential chunks. Messages call it `name`.

    Raises:
        ImageError: With the code `truncated_image` or `corrupt_image`.
        MissingExtraError: If simplejpeg is not installed.
    """
    samples = find_separable(data, name)
    if samples is not None:
        return _decode_channels(picture, samples, data, name)
    values = _decode_values(picture, kind, bit_depth, data, name)
    if values.shape[:2] != (picture.height, picture.width):
        raise _broken(False, name, "its header contradicts its pixels")
    alpha = _decode_alpha(picture, values, bit_depth, name)
    if picture.mode not in PALETTE_MODES:
        return Decoded(values, alpha)
    indices = _load(picture, picture.mode, name)
    palette = np.array(picture.getpalette("RGB"), np.uint8).reshape(-1, 3)
    return Decoded(values, alpha, indices if indices.ndim == 2 else indices[..., 0], palette)


def upright(pixels: NDArray[Value], orientation: int) -> NDArray[Value]:
    """Applies an EXIF orientation to `pixels` [H, W] or [H, W, C]; 5…8 swap height and width."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _decode_values(picture: "Picture", kind: str, bit_depth: int, data: bytes, name: str) -> Values:
    if kind == "jpeg":
        return _decode_jpeg(data, picture.mode, name)
    if kind == "png":
        return _decode_png(data, name)
    if kind == "tiff":
        check_parts(data, picture.tag_v2, name)  # type: ignore[attr-defined]
        if bit_depth > 8:
            return _decode_tiff_16(picture, data, name)
    return _decode_other(picture, name)


def _decode_alpha(picture: "Picture", values: Values, bit_depth: int, name: str) -> NDArray[np.uint8] | None:
    """Returns alpha, from an alpha channel, a palette or a transparent colour; None without any."""
    key = picture.info.get("transparency")
    if picture.mode in ALPHA_MODES or (picture.mode == "P" and key is not None):
        try:
            return np.asarray(picture.convert("RGBA").getchannel("A"))
        except Exception as error:  # Pillow's decoders raise whatever they meet
            raise _broken(False, name, error) from error
    if key is None:
        return None
    scale = 255 // (2**bit_depth - 1) if bit_depth < 8 else 1  # of grey values below 8 bits
    return np.where((values == np.multiply(key, scale)).all(axis=2), np.uint8(0), np.uint8(OPAQUE))


def _decode_channels(picture: "Picture", samples: Samples, data: bytes, name: str) -> Decoded:
    """Decodes a TIFF with extra channels: Pillow reads its planes, or all channels side by side, as grey."""
    wanted = [*range(samples.colours)]
    if UNASSOCIATED_ALPHA in samples.extra:
        wanted.append(samples.channels - len(samples.extra) + samples.extra.index(UNASSOCIATED_ALPHA))
    if samples.separate:  # also the others, because they show damage
        channels = [_load_grey(as_grey(data, samples, number), name) for number in range(samples.channels)]
    else:
        together = _load_grey(as_grey(data, samples, 0), name)
        channels = [_separate(together, samples, number) for number in range(samples.channels)]
    orientation = numbers(picture.tag_v2, Tag.ORIENTATION, name, (1,))[0]  # type: ignore[attr-defined]
    turned: NDArray[Any] = upright(np.stack([channels[number] for number in wanted], axis=2), orientation)
    values, alpha = turned[..., : samples.colours], turned[..., samples.colours :]
    if samples.white_is_zero:
        values = 255 - values  # more bits were rejected
    if alpha.dtype != np.uint8:
        alpha = (alpha >> 8).astype(np.uint8)
    return Decoded(values, alpha[..., 0] if alpha.size else None)


def _load_grey(file: bytes, name: str) -> Values:
    grey = open_header(file, name, sys.maxsize, sys.maxsize)
    check_parts(file, grey.tag_v2, name)  # type: ignore[attr-defined]
    stored = _load(grey, grey.mode, name)
    return stored.astype(np.uint8) if grey.mode == "L" else stored.astype(np.uint16)


def _separate(together: Values, samples: Samples, channel: int) -> Values:
    values: Values = together.reshape(together.shape[0], -1, samples.channels)[..., channel]
    if not samples.differences:
        return values
    parts = np.split(values, range(samples.part_width, values.shape[1], samples.part_width), axis=1)
    sums: Values = np.concatenate([np.cumsum(part, axis=1, dtype=values.dtype) for part in parts], axis=1)
    return sums


def _decode_jpeg(data: bytes, mode: str, name: str) -> NDArray[np.uint8]:
    """Decodes strictly: a JPEG that ends early is an error even if it has an end marker."""
    try:
        import simplejpeg
    except ImportError as error:
        raise MissingExtraError("simplejpeg", "images") from error
    try:
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(
            data, colorspace="GRAY" if mode == "L" else "RGB", strict=True
        )
    except ValueError as error:
        raise _broken("premature" in str(error).lower(), name, error) from error
    return pixels


def _decode_png(data: bytes, name: str) -> Values:
    """Uses OpenCV, which rejects missing rows; Pillow would fill them with black."""
    check_pixels(data, name)
    return _decode_by_opencv(data, data[25] in PNG_GREY, name)


def _decode_tiff_16(picture: "Picture", data: bytes, name: str) -> NDArray[np.uint16]:
    """Decodes grey by Pillow. For colour, Pillow keeps 8 bits and OpenCV is less strict: compares both."""
    if picture.mode in MODES_16_BIT:
        return _load(picture, picture.mode, name).astype(np.uint16)[..., None]
    upper = _load(picture, "RGB", name)
    values = _decode_by_opencv(data, False, name)
    if values.dtype != np.uint16 or values.shape != upper.shape or not np.array_equal(values >> 8, upper):
        raise _broken(False, name, "two decoders disagree on its pixels")
    return values.astype(np.uint16, copy=False)


def _decode_other(picture: "Picture", name: str) -> NDArray[np.uint8]:
    """Decodes 8-bit BMP, TIFF and WebP with Pillow, which is stricter here than OpenCV."""
    grey = picture.mode in GREY_MODES
    pixels = _load(picture, "L" if grey else "RGB", name)
    return pixels[..., None] if grey else pixels


def _load(picture: "Picture", mode: str, name: str) -> NDArray[Any]:
    picture.info.pop("xmp", None)  # Pillow would rotate a TIFF by it
    try:
        picture.load()
        return np.asarray(picture if picture.mode == mode else picture.convert(mode))
    except Exception as error:  # Pillow's decoders raise whatever they meet
        raise _broken("truncated" in str(error).lower(), name, error) from error


def _decode_by_opencv(data: bytes, grey: bool, name: str) -> Values:
    color = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR
    flags = cv2.IMREAD_IGNORE_ORIENTATION | cv2.IMREAD_ANYDEPTH | color
    try:
        decoded: Any = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        raise _broken(False, name, error.err) from error
    if decoded is None:
        raise _broken(False, name, "its pixels cannot be decompressed completely")
    values: Values = decoded
    return values[..., None] if grey else values[..., ::-1]


def _broken(truncated: bool, name: str, reason: object) -> ImageError:
    what = "ends before its last pixel" if truncated else "is damaged"
    return incomplete(f"{name} {what} ({reason})", truncated=truncated)
