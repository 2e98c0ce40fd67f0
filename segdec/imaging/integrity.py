"""Which formats tell that a file was damaged, and which not even nearly.

Only a checksum tells. Decoders notice some damage without one, since what is left often means nothing: how
much of it, `python -m benchmarks.damage` measures for each format.
"""

from typing import Literal

from segdec.errors import ImageError

Integrity = Literal["checked", "unchecked"]
"""Whether checksums within a file cover every byte that its pixels depend on, and were compared."""

CHECKED_FORMATS = frozenset({"png"})
"""The others have no checksum, but for deflated TIFF: that covers the pixels, and not the directory, which
says for example what is black and how the picture is to be turned."""


def integrity_of(kind: str) -> Integrity:
    """Returns what is known of a picture that was decoded whole from the format `kind`, or came as pixels."""
    return "checked" if kind in CHECKED_FORMATS else "unchecked"


def is_webp(data: bytes) -> bool:
    """Whether a file begins as WebP does."""
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def reject_webp(data: bytes, name: str) -> None:
    """Refuses a WebP file: its decoder makes a whole picture of nearly everything, zeros for half of it too.

    Raises:
        ImageError: With the code `unsupported_type`.
    """
    if is_webp(data):
        raise ImageError(
            f"{name} is a WebP file. It has no checksum, and a damaged one may pass for a whole picture of a "
            "good part. Expected PNG, or JPEG, BMP or TIFF; save it as PNG, or take the risk by accept_webp "
            "(--accept-webp).",
            code="unsupported_type",
        )
