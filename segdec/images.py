"""Image files to pixels and back: the one decoder of training and serving.

A photograph that cannot be read whole is refused, never filled up: an inspection that passes half a
picture as good is worse than one that stops.
"""

import io
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

DEFAULT_MAX_PIXELS = 2**26
"""Largest photograph that is decoded, in pixels: 8192 × 8192."""

FORMATS = {"JPEG": "jpeg", "MPO": "jpeg", "PNG": "png", "BMP": "bmp", "TIFF": "tiff", "WEBP": "webp"}
"""Names of the accepted formats: Pillow's and ours. MPO is a JPEG with further pictures behind it."""

SIGNATURES = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG", b"BM": "BMP", b"II*\0": "TIFF", b"MM\0*": "TIFF"}
EXPECTED = "Expected an image of 8 bits a channel as PNG, JPEG, BMP, TIFF or WebP"
ORIENTATION_TAG = 0x0112
BITS_PER_SAMPLE_TAG = 258


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
    with _open(data, name, max_pixels) as picture:
        bit_depth = _check_depth(picture, data, name)
        _check_channels(picture, name)
        kind = FORMATS[str(picture.format)]
        pixels = _decode_jpeg(data, picture.mode, name) if kind == "jpeg" else _decode(picture, data, name)
        orientation = _orientation(picture)
        warnings = _warnings(picture, orientation)
    return Photograph(_upright(pixels, orientation), kind, bit_depth, warnings)


def read_image(path: Path, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Photograph:
    """Reads and decodes the image file at `path`; see `decode_image`.

    Raises:
        ImageError: As `decode_image`, or with the code `unreadable_file`; the message names the path.
    """
    return decode_image(_read(path), str(path), max_pixels=max_pixels)


def read_mask(path: Path, *, threshold: int = 0) -> NDArray[np.uint8]:
    """Reads a mask file: uint8 [H, W], 255 where any channel is above `threshold`, 0 elsewhere.

    Raises:
        ImageError: As `read_image`.
    """
    defect = read_image(path).pixels.max(axis=2) > threshold
    return np.where(defect, np.uint8(255), np.uint8(0))


def write_png(path: Path, image: NDArray[np.uint8]) -> None:
    """Writes `image` [H, W] or [H, W, C] to `path`: the whole file or none."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(encode_png(image))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


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


# === Header ===


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ImageError(
            f"{path} cannot be read: {error.strerror or error}. Expected an image file; check the path.",
            code="unreadable_file",
        ) from error


def _open(data: bytes, name: str, max_pixels: int) -> "Picture":
    """Reads the header and leaves the pixels undecoded."""
    image = _pillow()
    try:
        picture: Picture = image.open(io.BytesIO(data), formats=[key for key in FORMATS if key != "MPO"])
    except (image.DecompressionBombError, image.DecompressionBombWarning) as error:
        raise _too_large(f"more than {image.MAX_IMAGE_PIXELS:,}", name, max_pixels) from error
    except Exception as error:  # Pillow's plugins raise whatever their parsing meets
        raise _unrecognised(data, name) from error
    if picture.width * picture.height > max_pixels:
        size = f"{picture.width} × {picture.height} = {picture.width * picture.height:,}"
        raise _too_large(size, name, max_pixels)
    return picture


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error
    return PIL.Image


def _too_large(size: str, name: str, max_pixels: int) -> ImageError:
    return ImageError(
        f"{name} has {size} pixels. Expected at most {max_pixels:,}; crop or shrink it.",
        code="too_many_pixels",
    )


def _unrecognised(data: bytes, name: str) -> ImageError:
    kind = next((kind for signature, kind in SIGNATURES.items() if data.startswith(signature)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "WebP"
    if kind:
        return ImageError(
            f"{name} begins like a {kind} file, but its header cannot be read: it is damaged or cut off. "
            f"{EXPECTED}; copy the file again.",
            code="corrupt_image",
        )
    return ImageError(
        f"{name} is not an image of a known type (it begins with {data[:8]!r}). {EXPECTED}.",
        code="unsupported_type",
    )


def _check_depth(picture: "Picture", data: bytes, name: str) -> int:
    """Bits a channel in the file; Pillow's mode alone hides the 16 bits of a colour PNG."""
    depth = 32 if picture.mode in ("I", "F") else 16 if picture.mode.startswith("I;16") else 8
    if picture.format == "PNG":
        depth = data[24]  # IHDR: width, height, bit depth
    elif picture.format == "TIFF":
        bits = getattr(picture, "tag_v2", {}).get(BITS_PER_SAMPLE_TAG, (1,))
        depth = max(bits) if isinstance(bits, tuple) else int(bits)
    if depth > 8:
        raise ImageError(
            f"{name} has {depth} bits a channel. {EXPECTED}: scale its values to 0…255 by a fixed rule, "
            "the same for training and inspection.",
            code="unsupported_depth",
        )
    return depth


def _check_channels(picture: "Picture", name: str) -> None:
    transparent = "transparency" in picture.info
    if picture.mode not in ("1", "L", "P", "RGB") or transparent:
        held = f"{picture.mode} with transparency" if transparent else picture.mode
        raise ImageError(
            f"{name} has the channels {held}. Expected grey or RGB; save it without alpha and not as CMYK.",
            code="unsupported_channels",
        )


# === Pixels ===


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


def _decode(picture: "Picture", data: bytes, name: str) -> NDArray[np.uint8]:
    try:
        with _pillow().open(io.BytesIO(data)) as copy:
            copy.verify()  # checks every PNG chunk and leaves the copy unusable
        picture.load()
    except Exception as error:  # Pillow's decoders raise whatever they meet
        raise _broken("truncated" in str(error).lower(), name, error) from error
    grey = picture.mode in ("1", "L")
    pixels = np.asarray(picture.convert("L" if grey else "RGB"), dtype=np.uint8)
    return pixels[..., None] if grey else pixels


def _broken(truncated: bool, name: str, error: Exception) -> ImageError:
    code: Literal["truncated_image", "corrupt_image"] = "truncated_image" if truncated else "corrupt_image"
    what = "ends before its last pixel" if truncated else "is damaged"
    return ImageError(f"{name} {what} ({error}). Expected a whole image; copy or take it again.", code=code)


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
