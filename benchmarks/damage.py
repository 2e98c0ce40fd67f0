"""Share of file damage that decoders detect, by format; all damage keeps the length of the file.

    python -m benchmarks.damage [--photographs 4] [--times 50]

Grey and colour photographs of 256 × 256 px are written in every format. Their files are overwritten at
random positions: with zeros to the end or for 512 bytes, with random bytes, with bytes from elsewhere in the
file, or in a single bit. Damage is detected if the file is rejected or decodes to the same pixels. Formats
with `checked` integrity must detect all damage.
"""

import io
import sys
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image

from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.untrained_models import photograph
from segdec.errors import ImageError
from segdec.images import Photograph, decode_image
from segdec.runtime.cli import clean_exit, hide_stderr

SIDE = 256
STRETCH = 512
"""Bytes of a damaged stretch: a disk sector; at most an eighth of the file."""

Encode = Callable[[NDArray[np.uint8]], bytes]
Overwrite = Callable[[Generator, bytes], bytes]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, photographs=4)
    text = "overwrites of each kind (default: %(default)s)"
    parser.add_argument("--times", type=int, default=50, help=text)
    options = parser.parse_args(arguments)
    with clean_exit(extra="images"), hide_stderr():  # decoders write a line for each damaged file
        rows = [measure(name, options.photographs, options.times) for name in FORMATS]
    lowest = [min(float(row[name]) for name in OVERWRITES) for row in rows if row["integrity"] == "checked"]
    return finish(options.json, rows, [Target("detected where checked, %", min(lowest), lowest=100)])


def measure(name: str, photographs: int, times: int) -> dict[str, Any]:
    """Returns the row of a format: the percentage detected of each kind of overwrite."""
    files = [FORMATS[name](pixels(seed)) for seed in range(photographs)]
    row: dict[str, Any] = {"format": name, "integrity": decode(files[0]).integrity}
    for kind, overwrite in OVERWRITES.items():
        rng = np.random.default_rng(0)
        found = [is_detected(data, overwrite(rng, data)) for data in files for _ in range(times)]
        row[kind] = round(100 * sum(found) / len(found), 1)
    return row


def is_detected(whole: bytes, damaged: bytes) -> bool:
    """Whether the damaged file is rejected or has the same pixels."""
    try:
        found = decode(damaged).pixels
    except ImageError:
        return True
    return np.array_equal(found, decode(whole).pixels)


def decode(data: bytes) -> Photograph:
    """Decodes a file of any format."""
    return decode_image(data, "photograph", accept_webp=True)


def pixels(seed: int) -> NDArray[np.uint8]:
    """Returns a photograph, uint8 [H, W, C]: grey for even seeds, in colour for odd ones."""
    grey = decode(photograph(SIDE, SIDE, seed)).pixels
    return np.clip(grey + np.array([0, -8, 8]), 0, 255).astype(np.uint8) if seed % 2 else grey


def _rest_zeroed(rng: Generator, data: bytes) -> bytes:
    start = int(rng.uniform(0.1, 0.9) * len(data))
    return data[:start].ljust(len(data), b"\0")


def _zeroed(rng: Generator, data: bytes) -> bytes:
    start, length = _stretch(rng, data)
    return data[:start] + bytes(length) + data[start + length :]


def _random(rng: Generator, data: bytes) -> bytes:
    start, length = _stretch(rng, data)
    return data[:start] + rng.bytes(length) + data[start + length :]


def _copied(rng: Generator, data: bytes) -> bytes:
    (start, length), (source, _) = _stretch(rng, data), _stretch(rng, data)
    return data[:start] + data[source : source + length] + data[start + length :]


def _one_bit(rng: Generator, data: bytes) -> bytes:
    place, changed = int(rng.integers(0, 8 * len(data))), bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def _stretch(rng: Generator, data: bytes) -> tuple[int, int]:
    length = min(STRETCH, len(data) // 8)
    return int(rng.integers(0, len(data) - length + 1)), length


OVERWRITES: dict[str, Overwrite] = {
    "rest zeroed": _rest_zeroed,
    "zeroed": _zeroed,
    "random": _random,
    "copied": _copied,
    "one bit": _one_bit,
}
"""Damage that keeps the length of a file, by name."""


def _by_pillow(kind: str, **options: Any) -> Encode:
    def encode(image: NDArray[np.uint8]) -> bytes:
        stream = io.BytesIO()
        Image.fromarray(image.squeeze()).save(stream, kind, **options)
        return stream.getvalue()

    return encode


def _jpeg_with_restarts(image: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_RST_INTERVAL, 8])[1].tobytes()


FORMATS: dict[str, Encode] = {
    "PNG": _by_pillow("PNG"),
    "TIFF, deflate": _by_pillow("TIFF", compression="tiff_adobe_deflate"),
    "JPEG": _by_pillow("JPEG", quality=90),
    "JPEG, progressive": _by_pillow("JPEG", quality=90, progressive=True),
    "JPEG, restart markers": _jpeg_with_restarts,
    "TIFF, LZW": _by_pillow("TIFF", compression="tiff_lzw"),
    "TIFF, PackBits": _by_pillow("TIFF", compression="packbits"),
    "TIFF, uncompressed": _by_pillow("TIFF"),
    "BMP": _by_pillow("BMP"),
    "WebP, lossy": _by_pillow("WEBP", quality=90),
    "WebP, lossless": _by_pillow("WEBP", lossless=True),
}
"""Encoders by name: pixels uint8 [H, W, C] → file."""


if __name__ == "__main__":
    sys.exit(main())
