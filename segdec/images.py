"""Image files to pixels and back: the one decoder of training and serving.

A photograph that cannot be read whole is refused, never filled up: an inspection that passes half a
picture as good is worse than one that stops.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError, MissingExtraError
from segdec.files import write_bytes_atomic
from segdec.image_header import EXPECTED, FORMATS, check_channels, check_depth, open_header, pillow

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

DEFAULT_MAX_PIXELS = 2**26
"""Largest photograph that is decoded, in pixels: 8192 × 8192."""

ORIENTATION_TAG = 0x0112
GREY_MODES = ("1", "L")


class ImageFile(Protocol):
    """What an image is read from; `str()` of it is its name. A `pathlib.Path` is one."""

    def read_bytes(self) -> bytes:
        """The whole file."""


@dataclass(frozen=True)
class Photograph:
    """A decoded image file.

    Attributes:
        pixels: uint8 [H, W, C], C is 1 (grey) or 3 (RGB), turned upright by its EXIF orientation.
        format: `png`, `jpeg`, `bmp`, `tiff` or `webp`, judged by content.
        bit_depth: Bits a channel in the file, at most 8.
        warnings: What a person may want to know, for example that the picture was turned.
    """

    pixels: NDArray[np.uint8]
    format: str
    bit_depth: int
    warnings: tuple[str, ...] = ()


def decode_image(data: bytes, name: str, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Photograph:
    """Decodes an image file held in memory; its type is judged by content, not by name.

    The header is read first, so a small file that unpacks to a huge picture costs nothing. A
    progressive JPEG that was cut between two scans and closed again cannot be told from a whole one.

    Args:
        data: The file.
        name: What error messages call it.
        max_pixels: Limit on height × width.

    Raises:
        ImageError: With the code `empty_image`, `unsupported_type`, `truncated_image`,
            `corrupt_image`, `unsupported_depth`, `unsupported_channels` or `too_many_pixels`.
        MissingExtraError: If the extra `images` is not installed.
    """
    if not data:
        raise ImageError(f"{name} is empty (0 bytes). {EXPECTED}; send it again.", code="empty_image")
    with open_header(data, name, max_pixels) as picture:
        bit_depth = check_depth(picture, data, name)
        check_channels(picture, name)
        kind = FORMATS[str(picture.format)]
        pixels = _decode(picture, kind, data, name)
        orientation = _orientation(picture)
        warnings = _warnings(picture, orientation)
    return Photograph(_upright(pixels, orientation), kind, bit_depth, warnings)


def decode_mask(data: bytes, name: str, *, threshold: int = 0) -> NDArray[np.uint8]:
    """Decodes a mask file held in memory: uint8 [H, W], 255 where any channel is above `threshold`, else 0.

    Raises:
        ImageError: As `decode_image`.
    """
    defect = decode_image(data, name).pixels.max(axis=2) > threshold
    return np.where(defect, np.uint8(255), np.uint8(0))


def read_image(path: Path, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Photograph:
    """Reads and decodes the image file at `path`; see `decode_image`.

    Raises:
        ImageError: As `decode_image`, or with the code `unreadable_file`; the message names the path.
    """
    return decode_image(read_file(path), str(path), max_pixels=max_pixels)


def read_mask(path: Path, *, threshold: int = 0) -> NDArray[np.uint8]:
    """Reads and decodes the mask file at `path`; see `decode_mask`.

    Raises:
        ImageError: As `read_image`.
    """
    return decode_mask(read_file(path), str(path), threshold=threshold)


def read_file(file: ImageFile) -> bytes:
    """The bytes of an image file.

    Raises:
        ImageError: With the code `unreadable_file`; the message names the file.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise ImageError(
            f"{file} cannot be read: {error.strerror or error}. Expected an image file; check the path.",
            code="unreadable_file",
        ) from error


def resize_mask(mask: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Scales a mask [H, W] to [height, width] px: 255 where there is a defect, 0 elsewhere.

    Shrinking keeps every pixel that a defect touches, however little of it, so that thin scratches
    survive; enlarging repeats pixels.
    """
    share = (mask > 0).astype(np.float32)  # of defect in each pixel; uint8 would round small shares away
    smaller = min(width, mask.shape[1]), min(height, mask.shape[0])
    touched = cv2.resize(share, smaller, interpolation=cv2.INTER_AREA) > 0
    scaled = cv2.resize(touched.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
    return np.where(scaled > 0, np.uint8(255), np.uint8(0))


def write_png(path: Path, image: NDArray[np.uint8]) -> None:
    """Writes `image` [H, W] or [H, W, C] to `path`: the whole file or none; see `encode_png`."""
    write_bytes_atomic(path, encode_png(image))


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """Encodes `image` uint8 [H, W] or [H, W, C], C is 1 (grey) or 3 (RGB), as PNG.

    Raises:
        ValueError: If the array is no such image.
    """
    if (
        image.dtype != np.uint8
        or image.ndim not in (2, 3)
        or (image.ndim == 3 and image.shape[2] not in (1, 3))
    ):
        raise ValueError(
            f"Wrong image {image.dtype} {image.shape}. Expected uint8 [H, W], [H, W, 1] or [H, W, 3]."
        )
    stored = image[..., ::-1] if image.shape[2:] == (3,) else image  # OpenCV stores BGR
    return bytes(cv2.imencode(".png", np.ascontiguousarray(stored))[1])


# === Pixels ===


def _decode(picture: "Picture", kind: str, data: bytes, name: str) -> NDArray[np.uint8]:
    """Pixels [H, W, C] as stored, by the strictest decoder there is for each format."""
    if kind == "jpeg":
        return _decode_jpeg(data, picture.mode, name)
    if kind == "png":
        return _decode_png(data, picture.mode, name)
    return _decode_other(picture, name)


def _decode_jpeg(data: bytes, mode: str, name: str) -> NDArray[np.uint8]:
    """Strict decoding: a JPEG that ends early is an error even when its last bytes say it ends."""
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


def _decode_png(data: bytes, mode: str, name: str) -> NDArray[np.uint8]:
    """Checks every chunk first; Pillow would fill missing rows with black, OpenCV refuses them."""
    try:
        with pillow().open(io.BytesIO(data)) as picture:
            picture.verify()
    except Exception as error:  # Pillow's plugins raise whatever their parsing meets
        raise _broken("truncated" in str(error).lower(), name, error) from error
    grey = mode in GREY_MODES
    flags = cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR)
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if decoded is None:
        raise _broken(False, name, "its pixels cannot be unpacked whole")
    pixels = np.asarray(decoded, dtype=np.uint8)
    return pixels[..., None] if grey else pixels[..., ::-1]


def _decode_other(picture: "Picture", name: str) -> NDArray[np.uint8]:
    """BMP, TIFF and WebP; Pillow is the stricter one here."""
    grey = picture.mode in GREY_MODES
    try:
        pixels = np.asarray(picture.convert("L" if grey else "RGB"), dtype=np.uint8)
    except Exception as error:  # Pillow's decoders raise whatever they meet
        raise _broken("truncated" in str(error).lower(), name, error) from error
    return pixels[..., None] if grey else pixels


def _broken(truncated: bool, name: str, reason: object) -> ImageError:
    code = "truncated_image" if truncated else "corrupt_image"
    what = "ends before its last pixel" if truncated else "is damaged"
    return ImageError(f"{name} {what} ({reason}). Expected a whole image; copy or take it again.", code=code)


def _orientation(picture: "Picture") -> int:
    """EXIF orientation 1…8 still to be applied (Pillow turns TIFF itself and then drops the tag)."""
    try:
        value = picture.getexif().get(ORIENTATION_TAG, 1)
    except Exception:  # a broken EXIF block says nothing about the pixels
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Applies an EXIF orientation to `pixels` [H, W, C]; 5…8 swap height and width."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _warnings(picture: "Picture", orientation: int) -> tuple[str, ...]:
    found = []
    if orientation != 1:
        found.append(f"the picture was turned upright: its EXIF orientation is {orientation}")
    if getattr(picture, "is_animated", False):
        found.append("the file holds several pictures; the first one was used")
    return tuple(found)
