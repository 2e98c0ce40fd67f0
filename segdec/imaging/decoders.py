"""Decodes the pixels of files whose header was accepted, with the strictest decoder for each format."""

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError, MissingExtraError
from segdec.imaging.header import ALPHA_MODES, GREY_MODES, MODES_16_BIT
from segdec.imaging.integrity import incomplete
from segdec.imaging.png_chunks import check_pixels
from segdec.imaging.tiff_parts import check_parts

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Values = NDArray[np.uint8] | NDArray[np.uint16]

PNG_GREY = (0, 4)
"""PNG colour types without colour: grey, and grey with alpha."""


def decode_values(picture: "Picture", kind: str, bit_depth: int, data: bytes, name: str) -> Values:
    """Decodes the first picture of a file without its alpha.

    Args:
        picture: Its header, read by Pillow.
        kind: The format, a value of `segdec.imaging.header.FORMATS`.
        bit_depth: Bits per channel.
        data: The file; for PNG, its essential chunks.
        name: Name in error messages.

    Returns:
        uint8 [H, W, C], or uint16 for more than 8 bits; C is 1 (grey) or 3 (RGB).

    Raises:
        ImageError: With the code `truncated_image` or `corrupt_image`.
        MissingExtraError: If simplejpeg is not installed.
    """
    values: Values
    if kind == "jpeg":
        values = _decode_jpeg(data, picture.mode, name)
    elif kind == "png":
        values = _decode_png(data, name)
    elif kind == "tiff":
        check_parts(data, picture.tag_v2, name)  # type: ignore[attr-defined]
        values = _decode_tiff_16(picture, data, name) if bit_depth > 8 else _decode_other(picture, name)
    else:
        values = _decode_other(picture, name)
    if values.shape[:2] != (picture.height, picture.width):
        raise _broken(False, name, "its header contradicts its pixels")
    return values


def is_transparent(picture: "Picture", values: Values, bit_depth: int, name: str) -> bool:
    """Returns whether any pixel is transparent, by an alpha channel, a palette or a transparent colour.

    Raises:
        ImageError: With the code `corrupt_image`.
    """
    key = picture.info.get("transparency")
    if picture.mode in ALPHA_MODES or (picture.mode == "P" and key is not None):
        try:
            lowest = picture.convert("RGBA").getchannel("A").getextrema()[0]
        except Exception as error:  # Pillow's decoders raise whatever they meet
            raise _broken(False, name, error) from error
        return bool(np.less(lowest, 255))
    if key is None:
        return False
    scale = 255 // (2**bit_depth - 1) if bit_depth < 8 else 1  # of grey values below 8 bits
    return bool((values == np.multiply(key, scale)).all(axis=2).any())


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
