"""A photograph as it was sent: an image file in memory."""

from dataclasses import dataclass

import numpy as np

from api.inspecting.settings import InspectionSettings
from segdec.errors import ImageError
from segdec.images import CheckSize, Photograph, decode_image, encode_png

EXPLANATIONS = {
    b"{": "It is JSON. Send it with Content-Type: application/json.",
    b"\x1f\x8b": "It is compressed. Send it as it is.",
    b"iVBORw0KGgo": "It is base64. Send its bytes, or JSON.",  # PNG
    b"/9j/": "It is base64. Send its bytes, or JSON.",  # JPEG
    b"data:": "It is a data URI. Send its bytes, or JSON.",
}
"""First bytes of what is often sent instead of a photograph → what to do."""

PICTURES = (b"\xff\xd8", b"\x89PNG", b"BM", b"II", b"MM", b"RIFF")
"""First bytes of JPEG, PNG, BMP, TIFF and WebP."""

MIN_BINARY_BYTES = 2**12
"""A photograph of this size has line feeds, unless they were removed."""


@dataclass(frozen=True)
class EncodedPhotograph:
    """An image file, and its name in error messages."""

    data: bytes
    name: str

    def decode(
        self, settings: InspectionSettings, white_level: int | None, check_size: CheckSize
    ) -> Photograph:
        """Decodes the file to uint8 [H, W, C]. Call it in a thread.

        `white_level` is that of the model's input. `check_size` is called with height and width before any
        pixel is decoded, and may raise.

        Raises:
            ImageError: If the file is not a complete photograph of a supported kind.
        """
        try:
            return decode_image(
                self.data,
                self.name,
                max_pixels=settings.max_pixels,
                max_side=settings.max_side,
                white_level=white_level,
                accept_webp=settings.accept_webp,
                check_size=check_size,
            )
        except ImageError as error:
            if error.code == "too_many_pixels":
                hint = "The service sets these limits with --max-pixels and --max-side."
            else:
                hint = _explain(self.data)
            raise ImageError(f"{error} {hint}".strip(), code=error.code) from error


def _explain(data: bytes) -> str:
    """Returns what may have happened to a photograph on its way; empty if that is unknown."""
    for start, explanation in EXPLANATIONS.items():
        if data.startswith(start):
            return explanation
    if data.startswith(PICTURES) and len(data) >= MIN_BINARY_BYTES and b"\n" not in data:
        return "Its line breaks were removed: send it unchanged (curl --data-binary, not -d)."
    return ""


def warm_up_decoder() -> None:
    """Decodes a small image, so that a missing library is reported at the start.

    Raises:
        MissingExtraError: If the extra `images` is not installed.
    """
    decode_image(encode_png(np.zeros((8, 8), np.uint8)), "warm-up")
