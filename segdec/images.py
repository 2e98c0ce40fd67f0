"""Reads and writes image files. A photograph that cannot be decoded completely is rejected."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.imaging import header, jpeg_scans, png_chunks, tiff_directory
from segdec.imaging.decoders import Decoded, decode_picture, upright
from segdec.imaging.further_pictures import has_further_pictures
from segdec.imaging.header import EXPECTED, FORMATS, check_channels, check_depth, open_header
from segdec.imaging.integrity import CHECKED_FORMATS, Integrity, reject_webp
from segdec.imaging.mask_values import class_values, defect_values
from segdec.imaging.tiff_directory import Tag, read_orientation
from segdec.imaging.tiff_samples import check_samples
from segdec.imaging.white_level import to_8_bits
from segdec.runtime.files import write_bytes_atomic

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"})
"""Suffixes of photographs in a folder. The type itself is detected from the content."""

DEFAULT_MAX_PIXELS = 2**26
"""Default limit on a photograph's pixels, 8192 × 8192. The decoder may need twice its size in memory: 1 byte
per pixel in grey, 3 in colour, twice that for 16 bits."""

MAX_PIXEL_LIMIT = header.MAX_PIXEL_LIMIT

DEFAULT_MAX_SIDE = 2**16
"""Default limit on a photograph's longest side, px."""

BLANK_PALETTE = "all colours of the file's palette are the same, so the picture is one area; save it again"
"""A warning about a photograph."""

SEVERAL_PICTURES = "the file has several pictures; the first one was used"
"""A warning about a photograph."""

PIXELS = "pixels"
"""Format of a photograph that did not come from a file."""

CheckSize = Callable[[int, int], None]
"""Called with a picture's height and width, px, before its pixels are decoded; raises to reject it."""


class ImageFile(Protocol):
    """A source of image bytes, such as `pathlib.Path`; `str()` returns its name."""

    def read_bytes(self) -> bytes:
        """Reads the whole file."""


@dataclass(frozen=True)
class Photograph:
    """A decoded image file.

    Attributes:
        pixels: uint8 [H, W, C], C is 1 (grey) or 3 (RGB), turned upright by its EXIF orientation.
        format: `png`, `jpeg`, `bmp`, `tiff` or `webp`, detected from the content; or `pixels`.
        bit_depth: Bits per channel in the file, at most 16.
        warnings: Changes to the picture that users may not expect, for example a rotation.
        orientation: The EXIF orientation of the file, 1 to 8, which was applied.
    """

    pixels: NDArray[np.uint8]
    format: str
    bit_depth: int
    warnings: tuple[str, ...] = ()
    orientation: int = 1

    @property
    def integrity(self) -> Integrity:
        """`checked` if checksums in the file have shown that it is unchanged."""
        return "checked" if self.format in CHECKED_FORMATS else "unchecked"


@dataclass(frozen=True)
class ImageHeader:
    """What an image file states about its first picture.

    Attributes:
        height: Pixels, as stored.
        width: Pixels, as stored.
        orientation: EXIF orientation, 1 to 8.
        has_further_pictures: Whether the file has other pictures than the first one.
    """

    height: int
    width: int
    orientation: int
    has_further_pictures: bool

    @property
    def upright_size(self) -> tuple[int, int]:
        """Height and width of the upright picture, px."""
        return (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)


def decode_image(
    data: bytes,
    name: str,
    *,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    max_side: int = DEFAULT_MAX_SIDE,
    white_level: int | None = None,
    accept_webp: bool = False,
    check_size: CheckSize | None = None,
) -> Photograph:
    """Decodes an image file in memory; its type is detected from the content.

    It reads the header first, so a small file that unpacks to a huge picture is rejected at no cost. It drops
    alpha and scales 16-bit values to 8 bits by the white level; see `segdec.imaging.white_level`.

    Args:
        data: The file.
        name: Name in error messages.
        max_pixels: Limit on height × width; for more than 178,956,970 see `raise_pixel_limit`.
        max_side: Limit on height and on width, px.
        white_level: Value of a 16-bit photograph that becomes 255: the model's `input.white_level`.
        accept_webp: Whether to decode WebP, in which damage cannot be detected, instead of rejecting it.
        check_size: Called after the header is accepted and before pixels are decoded.

    Raises:
        ImageError: With the code `empty_image`, `unsupported_type`, `truncated_image`,
            `corrupt_image`, `unsupported_depth`, `unsupported_channels` or `too_many_pixels`.
        MissingExtraError: If the extra `images` is not installed.
    """
    if not accept_webp:
        reject_webp(data, name)
    file = _decode(data, name, max_pixels, max_side, check_size)
    values = file.picture.values
    doubts: tuple[str, ...] = ()
    if values.dtype == np.uint8:
        pixels = values.astype(np.uint8, copy=False)
    else:
        pixels, doubts = to_8_bits(values.astype(np.uint16, copy=False), white_level, name)
    warnings = *file.warnings, *doubts
    rotated = upright(pixels, file.orientation)
    return Photograph(rotated, file.format, file.bit_depth, warnings, file.header.orientation)


def decode_mask(
    data: bytes, name: str, *, threshold: int = 0, max_pixels: int = DEFAULT_MAX_PIXELS
) -> NDArray[np.uint8]:
    """As `decode_mask_values`, but with 255 for values above `threshold`, else 0."""
    values = decode_mask_values(data, name, max_pixels=max_pixels)
    return np.where(values > threshold, np.uint8(255), np.uint8(0))


def decode_mask_values(
    data: bytes, name: str, *, max_pixels: int = DEFAULT_MAX_PIXELS, classes: Collection[int] | None = None
) -> NDArray[np.uint8]:
    """Decodes a mask file in memory: uint8 [H, W], 0 = good.

    Args:
        data: The file.
        name: Name in error messages.
        max_pixels: As in `decode_image`.
        classes: Numbers of the classes in the mask, empty if unknown; None: the mask has no numbers. See
            `segdec.imaging.mask_values`.

    Raises:
        ImageError: As `decode_image`, and with the code `unsupported_channels` if the meaning of colours or
            transparent pixels is ambiguous.
    """
    reject_webp(data, name)
    mask = _decode(data, name, max_pixels, DEFAULT_MAX_SIDE)
    values = (
        defect_values(mask.picture, name) if classes is None else class_values(mask.picture, name, classes)
    )
    return upright(values, mask.orientation)


def read_image(
    path: Path,
    *,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    white_level: int | None = None,
    accept_webp: bool = False,
) -> Photograph:
    """Reads and decodes the image file at `path`; raises as `decode_image` and `read_file`."""
    return decode_image(
        read_file(path), str(path), max_pixels=max_pixels, white_level=white_level, accept_webp=accept_webp
    )


def read_header(data: bytes, name: str, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> ImageHeader:
    """Reads the header of an image file in memory without decoding its pixels; raises as `decode_image`."""
    data, is_animated = _checked(data, name, max_pixels)
    with open_header(data, name, max_pixels, DEFAULT_MAX_SIDE) as picture:
        return _describe(picture, data, is_animated=is_animated)


def read_size(
    path: Path, *, max_pixels: int = DEFAULT_MAX_PIXELS, is_stored: bool = False
) -> tuple[int, int]:
    """Reads height and width, px, of the upright or the stored picture in `path`, not its pixels."""
    header = read_header(read_file(path), str(path), max_pixels=max_pixels)
    return (header.height, header.width) if is_stored else header.upright_size


def read_mask(path: Path, *, threshold: int = 0, max_pixels: int = DEFAULT_MAX_PIXELS) -> NDArray[np.uint8]:
    """Reads and decodes the mask file at `path`; see `decode_mask`."""
    return decode_mask(read_file(path), str(path), threshold=threshold, max_pixels=max_pixels)


def read_file(file: ImageFile) -> bytes:
    """Reads the bytes of an image file.

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
    """Scales a mask [H, W] to [height, width] px: 255 = defect, 0 elsewhere.

    Shrinking marks every pixel that a defect touches, so that thin scratches remain; enlarging repeats
    pixels.
    """
    share = (mask > 0).astype(np.float32)  # uint8 would round small shares to 0
    smaller = min(width, mask.shape[1]), min(height, mask.shape[0])
    touched = cv2.resize(share, smaller, interpolation=cv2.INTER_AREA) > 0
    scaled = cv2.resize(touched.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
    return np.where(scaled > 0, np.uint8(255), np.uint8(0))


def write_png(path: Path, image: NDArray[np.uint8]) -> None:
    """Writes `image` [H, W] or [H, W, C] to `path` atomically; see `encode_png`."""
    write_bytes_atomic(path, encode_png(image))


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """Encodes `image` uint8 [H, W] or [H, W, C], C is 1 (grey) or 3 (RGB), as PNG.

    Raises:
        ValueError: If the array is not such an image.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.shape[2:] not in ((), (1,), (3,)):
        raise ValueError(
            f"Wrong image {image.dtype} {image.shape}. Expected uint8 [H, W], [H, W, 1] or [H, W, 3]."
        )
    stored = image[..., ::-1] if image.shape[2:] == (3,) else image  # OpenCV stores BGR
    return bytes(cv2.imencode(".png", np.ascontiguousarray(stored))[1])


# === Decoding ===


@dataclass(frozen=True)
class _File:
    """A decoded file: `picture` is still to be rotated by `orientation`; others as in `Photograph`."""

    picture: Decoded
    orientation: int
    format: str
    bit_depth: int
    warnings: tuple[str, ...]
    header: ImageHeader


def _decode(
    data: bytes, name: str, max_pixels: int, max_side: int, check_size: CheckSize | None = None
) -> _File:
    data, is_animated = _checked(data, name, max_pixels)
    with open_header(data, name, max_pixels, max_side) as picture:
        bit_depth = check_depth(picture, data, name)
        check_channels(picture, bit_depth, name)
        if check_size is not None:
            check_size(picture.height, picture.width)
        kind = FORMATS[str(picture.format)]
        described = _describe(picture, data, is_animated=is_animated)
        orientation = _read_exif_orientation(picture)
        decoded = decode_picture(picture, kind, bit_depth, data, name)
    warnings = []
    if described.orientation != 1:
        warnings.append("the picture was rotated to its EXIF orientation")
    if described.has_further_pictures:
        warnings.append(SEVERAL_PICTURES)
    if decoded.is_transparent:
        warnings.append("the picture has transparent pixels; its alpha was dropped")
    if decoded.is_palette_blank:
        warnings.append(BLANK_PALETTE)
    return _File(decoded, orientation, kind, bit_depth, tuple(warnings), described)


def _describe(picture: "Picture", data: bytes, *, is_animated: bool) -> ImageHeader:
    """The header of an open file; `is_animated`: whether it is an animated PNG."""
    height, width, orientation = picture.height, picture.width, _read_exif_orientation(picture)
    tag = getattr(picture, "tag_v2", {}).get(Tag.ORIENTATION, 1)
    if tag in range(2, 9):  # Pillow rotates TIFF itself, and gives the upright size
        orientation = int(tag)
        height, width = (width, height) if orientation >= 5 else (height, width)
    has_further = is_animated or has_further_pictures(picture, data)
    return ImageHeader(height, width, orientation, has_further)


def _read_exif_orientation(picture: "Picture") -> int:
    """Only EXIF counts, as in image viewers, not text or XMP."""
    return read_orientation(picture.info.get("exif", b""))


def _checked(data: bytes, name: str, max_pixels: int) -> tuple[bytes, bool]:
    """Checks the file structure; returns the data to decode, and whether it is an animated PNG."""
    if not data:
        raise ImageError(f"{name} is empty (0 bytes). {EXPECTED}; send the file again.", code="empty_image")
    if data.startswith(png_chunks.SIGNATURE):
        return png_chunks.essential_chunks(data, name)
    if data.startswith(jpeg_scans.SIGNATURE):
        jpeg_scans.check_scans(data, name)
    if data.startswith(tiff_directory.SIGNATURES):
        tiff_directory.check_directory(data, name, max_pixels)
        check_samples(data, name)
    return data, False
