"""Reads and checks the header of an image file before its pixels are decoded."""

import io
from typing import TYPE_CHECKING, Any

from segdec.errors import ImageError, MissingExtraError
from segdec.imaging.integrity import is_webp
from segdec.imaging.other_formats import name_format
from segdec.imaging.png_chunks import read_size
from segdec.imaging.tiff_channels import picture_header
from segdec.imaging.tiff_directory import PREMULTIPLIED, WHITE_IS_ZERO, Tag, numbers
from segdec.imaging.tiff_samples import UNSIGNED, find_separable

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

FORMATS = {"JPEG": "jpeg", "MPO": "jpeg", "PNG": "png", "BMP": "bmp", "TIFF": "tiff", "WEBP": "webp"}
"""Pillow's names of the accepted formats → ours. MPO is a JPEG followed by further pictures."""

PILLOW_FORMATS = [key for key in FORMATS if key != "MPO"]
"""Formats that Pillow may open; it opens MPO as JPEG."""

MAX_PIXEL_LIMIT = 2**30
"""Highest limit on pixels that a user can set: OpenCV's own limit, unless changed before its import."""

SIGNATURES = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG", b"BM": "BMP", b"II*\0": "TIFF", b"MM\0*": "TIFF"}
EXPECTED = "Expected an image with 8 or 16 bits per channel as PNG, JPEG, BMP or TIFF"

GREY_MODES = ("1", "L", "LA")
ALPHA_MODES = ("LA", "PA", "RGBA")
PALETTE_MODES = ("P", "PA")
MODES_16_BIT = ("I;16", "I;16L", "I;16B")
MODES = ("P", "RGB", *GREY_MODES, *ALPHA_MODES, *MODES_16_BIT)

RUN_LENGTH = (1, 2)
"""Run-length compressions of BMP with 8 and 4 bits per pixel."""


def open_header(data: bytes, name: str, max_pixels: int, max_side: int) -> "Picture":
    """Reads the header of an image file without decoding its pixels.

    Pillow rejects more than 179 megapixels (twice its `MAX_IMAGE_PIXELS`) whatever `max_pixels` is; entry
    points increase this limit with `segdec.runtime.cli.raise_pixel_limit`.

    Raises:
        ImageError: With the code `unsupported_type`, `corrupt_image` or `too_many_pixels`.
        MissingExtraError: If Pillow is not installed.
    """
    image = import_pillow()
    if (samples := find_separable(data, name)) is not None:
        data = picture_header(data, samples)
    try:
        picture: Picture = image.open(io.BytesIO(data), formats=PILLOW_FORMATS)
    except (image.DecompressionBombError, image.DecompressionBombWarning) as error:
        limit = image.MAX_IMAGE_PIXELS * (1 if isinstance(error, Warning) else 2)
        raise _too_large(read_size(data), name, max_pixels, limit) from error
    except Exception as error:  # Pillow's plugins raise any exception
        raise _unrecognised(data, name) from error
    if picture.width * picture.height > max_pixels:
        raise _too_large((picture.height, picture.width), name, max_pixels, max_pixels)
    if max(picture.size) > max_side:
        raise ImageError(
            f"{name} has {picture.width} × {picture.height} pixels. Expected sides of at most {max_side:,}; "
            "crop or shrink it.",
            code="too_many_pixels",
        )
    return picture


def import_pillow() -> Any:
    """Imports the module `PIL.Image`; raises MissingExtraError if Pillow is not installed."""
    try:
        import PIL.Image
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error
    return PIL.Image


def _too_large(sides: tuple[int, int] | None, name: str, max_pixels: int, limit: int) -> ImageError:
    """Returns the error for a picture of these rows and columns; None: more than `limit` pixels."""
    setting = "max_pixels" if max_pixels <= limit else "PIL.Image.MAX_IMAGE_PIXELS"
    size = f"{sides[1]} × {sides[0]} = {sides[0] * sides[1]:,}" if sides else f"more than {limit:,}"
    return ImageError(
        f"{name} has {size} pixels. Expected at most {min(max_pixels, limit):,}; crop or shrink it, or "
        f"raise the limit {setting}.",
        code="too_many_pixels",
    )


def _unrecognised(data: bytes, name: str) -> ImageError:
    kind = next((kind for signature, kind in SIGNATURES.items() if data.startswith(signature)), None)
    if is_webp(data):
        kind = "WebP"
    if kind:
        return ImageError(
            f"{name} starts like a {kind} file, but its header cannot be read: it is damaged or truncated. "
            f"{EXPECTED}; copy the file again.",
            code="corrupt_image",
        )
    if kind := name_format(data):
        return ImageError(
            f"{name} is a {kind} file, which is not read. {EXPECTED}; save it as PNG.",
            code="unsupported_type",
        )
    first = data[:8]
    readable = all(32 <= byte < 127 for byte in first)
    shown = f"'{first.decode('ascii')}'" if readable else f"the bytes {first.hex(' ')}"
    return ImageError(
        f"{name} is not an image of a known type (it starts with {shown}). {EXPECTED}.",
        code="unsupported_type",
    )


def check_depth(picture: "Picture", data: bytes, name: str) -> int:
    """Returns the bits per channel, at most 16; Pillow's mode does not show the 16 bits of colour pictures.

    Raises:
        ImageError: With the code `unsupported_depth`.
    """
    depth = 32 if picture.mode in ("I", "F") else 16 if picture.mode in MODES_16_BIT else 8
    inverted = False
    if picture.format == "PNG":
        depth = data[24]  # IHDR: width, height, bit depth
    elif picture.format == "TIFF" and picture.mode not in ("I", "F"):
        tags = picture.tag_v2  # type: ignore[attr-defined]
        signed = set(numbers(tags, Tag.SAMPLE_FORMAT, name, (UNSIGNED,))) != {UNSIGNED}
        depth = 32 if signed else max(numbers(tags, Tag.BITS, name, (1,)))
        inverted = depth > 8 and numbers(tags, Tag.PHOTOMETRIC, name, (1,))[0] == WHITE_IS_ZERO
    if depth > 16 or inverted:
        values = "more than 8 bits with 0 for white" if inverted else "32 bits, or signed or float values,"
        raise ImageError(
            f"{name} has {values} per pixel. {EXPECTED}, with 0 for black: convert its values by a fixed "
            "rule, the same for training and inspection.",
            code="unsupported_depth",
        )
    return depth


def check_channels(picture: "Picture", bit_depth: int, name: str) -> None:
    """Rejects CMYK and all other channels than grey or RGB, with or without alpha.

    Raises:
        ImageError: With the code `unsupported_channels`.
    """
    if picture.format == "BMP" and picture.info.get("compression") in RUN_LENGTH:
        raise ImageError(
            f"{name} is a BMP file with run-length coding, which may skip pixels. Expected an uncompressed "
            "one; save it as PNG.",
            code="unsupported_type",
        )
    if picture.mode not in MODES:
        raise ImageError(
            f"{name}, a {picture.format} file, has the channels {picture.mode}. Expected grey or RGB; save "
            "it as one of these.",
            code="unsupported_channels",
        )
    extra = numbers(getattr(picture, "tag_v2", {}), Tag.EXTRA_CHANNELS, name)
    if bit_depth > 8 and PREMULTIPLIED in extra:
        raise ImageError(
            f"{name} has 16-bit colours that are multiplied by their alpha. Expected grey or RGB; save it "
            "without alpha.",
            code="unsupported_channels",
        )
