"""Checks that the scans of a JPEG file contain the whole picture.

The scans of a progressive JPEG add coefficients or bits step by step. A file that was cut between two scans
and closed again decodes without an error, but blurred; only the scan headers show what is missing.
Arithmetic-coded data has no end marker: decoders continue as if zeros followed. Such files are always
rejected.

Reference:
    ITU-T T.81, annexes B.2 (markers), D.2 (arithmetic decoding) and G.1.1.1.1 (progressive scans).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from segdec.errors import ImageError
from segdec.imaging.integrity import incomplete

SIGNATURE = b"\xff\xd8\xff"
MAX_SCANS = 100
"""Encoders write about ten. Each covers the whole picture, so thousands would take minutes to decode."""

MAX_SEGMENTS = 10_000
"""Profiles and metadata need some hundreds. Reading millions of empty ones would take too long."""

MAX_EXIF_SEGMENTS = 16
"""A normal file has one. Pillow joins and parses them."""

MAX_PADDING = 2**12
"""Bytes between two segments; normally none."""

COEFFICIENTS = 64
MISSING = 255
SCAN, END, EXIF = 0xDA, 0xD9, 0xE1
PROGRESSIVE = 0xC2
FRAMES = (0xC0, 0xC1, PROGRESSIVE)
"""Baseline, extended and progressive with Huffman coding: the decoder detects an early end."""

OTHER_FRAMES = {0xC3: "lossless", 0xC9: "arithmetic-coded", 0xCA: "arithmetic-coded and progressive"}
OTHER_FRAMES |= {0xCB: "arithmetic-coded and lossless"}
OTHER_FRAMES |= dict.fromkeys((0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF), "hierarchical")

BITS = 8
"""Bits per sample in an accepted frame."""

_MARKER = re.compile(rb"\xff([^\x00\x01\xff\xd0-\xd7])", re.DOTALL)
"""Markers with a length: not 0xff00 (a value), 0xff01 (reserved), 0xffd0 … 0xffd7 (restarts)."""


@dataclass
class Frame:
    """What was read so far: for each component, the lowest bit that arrived of each of its coefficients."""

    progressive: bool
    lowest_bit: dict[int, list[int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every coefficient of every component is there down to bit 0."""
        return not any(any(bits) for bits in self.lowest_bit.values())

    def add(self, components: Sequence[int], first: int, last: int, bit: int) -> None:
        """Adds a scan with the coefficients `first` … `last` down to `bit`."""
        for component in components:
            bits = self.lowest_bit.get(component, [])
            for place in range(first, min(last + 1, len(bits))):
                bits[place] = min(bits[place], bit)


def check_scans(data: bytes, name: str) -> None:
    """Rejects a JPEG with missing scans, or with a coding whose decoder would not detect them.

    Files without a frame are left to the decoder.

    Raises:
        ImageError: With the code `truncated_image` if scans are missing, `corrupt_image` if there are too
            many, `unsupported_type` if the coding is not in `FRAMES`.
    """
    frame, scans, exif_segments = None, 0, 0
    for marker, segment in _segments(data, name):
        _check_coding(marker, segment, name)
        if marker in FRAMES and len(segment) >= 6:
            frame = _frame(marker, segment)
        elif marker == EXIF and segment.startswith(b"Exif\0\0"):
            exif_segments += 1
            if exif_segments > MAX_EXIF_SEGMENTS:
                raise _excessive(name, f"over {MAX_EXIF_SEGMENTS} EXIF segments", "one")
        elif marker == SCAN and frame is not None:
            scans += 1
            if scans > MAX_SCANS:
                raise _excessive(name, f"over {MAX_SCANS} scans", "about ten")
            _add_scan(frame, segment)
            if frame.complete and not frame.progressive:
                return  # the usual case: one scan has everything
    if frame is not None and not frame.complete:
        what = f"its scans ({scans}) contain only a part of the picture"
        raise incomplete(f"{name}, a JPEG file, ends before its last scan: {what}", truncated=True)


def read_size(data: bytes) -> tuple[int, int] | None:
    """Returns width and height of a JPEG, px, from its first frame; None if it cannot be read."""
    if not data.startswith(SIGNATURE):
        return None
    try:
        frames = (content for marker, content in _segments(data, "") if marker in {*FRAMES, *OTHER_FRAMES})
        frame = next(frames, b"")
    except ImageError:
        return None
    return (int.from_bytes(frame[3:5]), int.from_bytes(frame[1:3])) if len(frame) >= 5 else None


def _segments(data: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Yields marker and content of each segment; skips the coded pixels after a scan header."""
    place, marker, number = 2, 0, 0
    while match := _MARKER.search(data, place):
        padding = 0 if marker == SCAN else match.start() - place
        number += 1
        if padding > MAX_PADDING:
            raise _excessive(name, f"{padding:,} bytes between two segments", "none")
        if number > MAX_SEGMENTS:
            raise _excessive(name, f"over {MAX_SEGMENTS:,} segments", "some hundreds at most")
        marker, start = match[1][0], match.end()
        if marker == END:
            return
        length = int.from_bytes(data[start : start + 2])
        yield marker, data[start + 2 : start + length]
        place = start + length


def _excessive(name: str, held: str, expected: str) -> ImageError:
    return ImageError(
        f"{name}, a JPEG file, has {held}. Expected {expected}; save it again.", code="corrupt_image"
    )


def _check_coding(marker: int, segment: bytes, name: str) -> None:
    """Checks a frame; the first byte of its segment is the number of bits per sample."""
    coding = OTHER_FRAMES.get(marker)
    if marker in FRAMES and segment and segment[0] != BITS:
        coding = f"coded with {segment[0]} bits per sample"
    if coding:
        raise ImageError(
            f"{name}, a JPEG file, is {coding} (frame {marker:#x}). Expected baseline or progressive "
            "JPEG with Huffman coding and 8 bits per sample; save it as such, or as PNG.",
            code="unsupported_type",
        )


def _frame(marker: int, segment: bytes) -> Frame:
    progressive = marker == PROGRESSIVE
    count = COEFFICIENTS if progressive else 1
    return Frame(progressive, {component: [MISSING] * count for component in segment[6::3]})


def _add_scan(frame: Frame, segment: bytes) -> None:
    """Parses a scan header: number of components, two bytes for each, first and last coefficient, bits."""
    count = segment[0] if segment else 0
    parameters = segment[1 + 2 * count :]
    if len(parameters) >= 3:
        first, last, bits = parameters[:3]
        frame.add(segment[1 : 1 + 2 * count : 2], first, last, bits & 0x0F if frame.progressive else 0)
