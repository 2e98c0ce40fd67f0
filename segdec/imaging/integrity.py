"""Damaged files, and the formats in which damage is always detected, because they have checksums.

Decoders also detect some damage without a checksum; `python -m benchmarks.damage` measures how much.
"""

from typing import Literal

from segdec.errors import ImageError

Integrity = Literal["checked", "unchecked"]
"""Whether checksums in the file cover every byte that its pixels depend on, and were checked."""

CHECKED_FORMATS = frozenset({"png"})
"""Other formats have no checksum. Deflate-compressed TIFF has one of the pixels, but not of the directory,
which defines for example black and the orientation."""


def incomplete(what: str, *, truncated: bool = False) -> ImageError:
    """Returns the error for a file that is damaged or truncated; `what` begins with its name."""
    code = "truncated_image" if truncated else "corrupt_image"
    return ImageError(f"{what}. Expected a complete image; copy or take it again.", code=code)


def is_webp(data: bytes) -> bool:
    """Returns whether a file starts like WebP."""
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def reject_webp(data: bytes, name: str) -> None:
    """Rejects a WebP file: its decoder accepts nearly everything, even a file with zeros for half of it."""
    if is_webp(data):
        raise ImageError(
            f"{name} is a WebP file. WebP has no checksum, so a damaged file may look like a complete "
            "picture of a good part. Expected PNG, JPEG, BMP or TIFF; save it as PNG, or accept the risk "
            "with accept_webp (--accept-webp).",
            code="unsupported_type",
        )
