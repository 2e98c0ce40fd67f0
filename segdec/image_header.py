"""What the first bytes of an image file say: enough to refuse it before any pixel is decoded."""

import io
from typing import TYPE_CHECKING, Any

from segdec.errors import ImageError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

FORMATS = {"JPEG": "jpeg", "MPO": "jpeg", "PNG": "png", "BMP": "bmp", "TIFF": "tiff", "WEBP": "webp"}
"""Names of the accepted formats: Pillow's and ours. MPO is a JPEG with further pictures behind it."""

SIGNATURES = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG", b"BM": "BMP", b"II*\0": "TIFF", b"MM\0*": "TIFF"}
EXPECTED = "Expected an image of 8 bits a channel as PNG, JPEG, BMP, TIFF or WebP"
BITS_PER_SAMPLE_TAG = 258


def open_header(data: bytes, name: str, max_pixels: int) -> "Picture":
    """Reads the header of an image file and leaves its pixels undecoded.

    Pillow refuses more than twice its `MAX_IMAGE_PIXELS` (179 megapixels), whatever `max_pixels` says.

    Raises:
        ImageError: With the code `unsupported_type`, `corrupt_image` or `too_many_pixels`.
        MissingExtraError: If Pillow is not installed.
    """
    image = pillow()
    try:
        picture: Picture = image.open(io.BytesIO(data), formats=[key for key in FORMATS if key != "MPO"])
    except (image.DecompressionBombError, image.DecompressionBombWarning) as error:
        most = image.MAX_IMAGE_PIXELS * (1 if isinstance(error, Warning) else 2)  # where Pillow stops
        raise _too_large(f"more than {most:,}", name, min(max_pixels, most)) from error
    except Exception as error:  # Pillow's plugins raise whatever their parsing meets
        raise _unrecognised(data, name) from error
    if picture.width * picture.height > max_pixels:
        size = f"{picture.width} × {picture.height} = {picture.width * picture.height:,}"
        raise _too_large(size, name, max_pixels)
    return picture


def pillow() -> Any:
    """The module `PIL.Image`, imported when it is first needed.

    Raises:
        MissingExtraError: If Pillow is not installed.
    """
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


def check_depth(picture: "Picture", data: bytes, name: str) -> int:
    """Bits a channel in the file, at most 8; Pillow's mode alone hides the 16 bits of a colour PNG.

    Raises:
        ImageError: With the code `unsupported_depth`.
    """
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


def check_channels(picture: "Picture", name: str) -> None:
    """Refuses alpha, CMYK and whatever else is neither grey nor RGB.

    Raises:
        ImageError: With the code `unsupported_channels`.
    """
    transparent = "transparency" in picture.info
    if picture.mode not in ("1", "L", "P", "RGB") or transparent:
        held = f"{picture.mode} with transparency" if transparent else picture.mode
        raise ImageError(
            f"{name} has the channels {held}. Expected grey or RGB; save it without alpha and not as CMYK.",
            code="unsupported_channels",
        )
