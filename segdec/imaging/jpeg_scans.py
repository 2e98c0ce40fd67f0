"""Whether the scans of a JPEG file make up the whole picture.

A progressive JPEG sends the picture several times over, each time with more of its coefficients or of
their bits. One that was cut between two scans and closed again decodes without complaint, blurred:
only the scans' headers tell that some are missing. Arithmetic-coded data have no end of their own:
decoders go on as if zeros followed, so such files are refused, whole or not.

Reference:
    ITU-T T.81, annexes B.2 (markers), D.2 (arithmetic decoding) and G.1.1.1.1 (progressive scans).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from segdec.errors import ImageError

SIGNATURE = b"\xff\xd8\xff"
MAX_SCANS = 100
"""Encoders write about ten. Each one passes over the whole picture, so thousands would take minutes."""

MAX_SEGMENTS = 10_000
"""Profiles and notes take some hundreds. Millions of empty ones would keep a reader of headers busy."""

MAX_EXIF_SEGMENTS = 16
"""EXIF segments; there is one. Pillow puts them together and looks for the resolution in them."""

MAX_PADDING = 2**12
"""Bytes between two segments; there need not be any."""

COEFFICIENTS = 64
UNSENT = 255
SCAN, END, NOTES = 0xDA, 0xD9, 0xE1
PROGRESSIVE = 0xC2
FRAMES = (0xC0, 0xC1, PROGRESSIVE)
"""Baseline, extended and progressive, Huffman-coded: the decoder notices an early end of these."""

OTHER_FRAMES = {0xC3: "lossless", 0xC9: "arithmetic-coded", 0xCA: "arithmetic-coded and progressive"}
OTHER_FRAMES |= {0xCB: "arithmetic-coded and lossless"}
OTHER_FRAMES |= dict.fromkeys((0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF), "hierarchical")

BITS = 8
"""A sample in an accepted frame."""

_MARKER = re.compile(rb"\xff([^\x00\x01\xff\xd0-\xd7])", re.DOTALL)
"""Without those that have no length: 0xff00 is a value, 0xff01 nothing, 0xffd0 … 0xffd7 are restarts."""


@dataclass
class Frame:
    """What has been sent of the picture.

    Attributes:
        progressive: Whether coefficients come in several scans.
        lowest_bit: For each component, the lowest bit that was sent of each of its 64 coefficients.
    """

    progressive: bool
    lowest_bit: dict[int, list[int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every coefficient of every component was sent down to its lowest bit."""
        return not any(any(bits) for bits in self.lowest_bit.values())

    def add(self, components: Sequence[int], first: int, last: int, bit: int) -> None:
        """Takes up a scan that sends the coefficients `first` … `last` down to `bit`."""
        for component in components:
            bits = self.lowest_bit.get(component, [])
            for place in range(first, min(last + 1, len(bits))):
                bits[place] = min(bits[place], bit)


def check_scans(data: bytes, name: str) -> None:
    """Refuses a JPEG whose scans leave out some of the picture, or whose decoder would not notice it.

    What is no JPEG, or has no frame, is left to the decoder.

    Raises:
        ImageError: With the code `truncated_image` if scans are missing, `corrupt_image` if there
            are more than anyone needs, `unsupported_type` if the coding is another one than of `FRAMES`.
    """
    frame, scans, notes = None, 0, 0
    for marker, segment in _segments(data, name):
        _check_coding(marker, segment, name)
        if marker in FRAMES and len(segment) >= 6:
            frame = _frame(marker, segment)
        elif marker == NOTES and segment.startswith(b"Exif\0\0"):
            notes += 1
            if notes > MAX_EXIF_SEGMENTS:
                raise _excessive(name, f"over {MAX_EXIF_SEGMENTS} EXIF segments", "one")
        elif marker == SCAN and frame is not None:
            scans += 1
            if scans > MAX_SCANS:
                raise _excessive(name, f"over {MAX_SCANS} scans", "about ten")
            _take_up(frame, segment)
            if frame.complete and not frame.progressive:
                return  # the usual case: one scan holds all, and the rest need not be searched
    if frame is not None and not frame.complete:
        raise ImageError(
            f"{name}, a JPEG file, ends before its last scan: the scans it has ({scans}) hold only a part of "
            "the picture. Expected a whole image; copy or take it again.",
            code="truncated_image",
        )


def _segments(data: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Marker and content of each segment; the coded pixels behind a scan's header are passed over."""
    place, marker, number = 2, 0, 0
    while found := _MARKER.search(data, place):
        padding = 0 if marker == SCAN else found.start() - place
        number += 1
        if padding > MAX_PADDING:
            raise _excessive(name, f"{padding:,} bytes between two segments", "none")
        if number > MAX_SEGMENTS:
            raise _excessive(name, f"over {MAX_SEGMENTS:,} segments", "some hundreds at most")
        marker, start = found[1][0], found.end()
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
    """Of a frame; the first byte of its segment are the bits a sample."""
    coding = OTHER_FRAMES.get(marker)
    if marker in FRAMES and segment and segment[0] != BITS:
        coding = f"of {segment[0]} bits a sample"
    if coding:
        raise ImageError(
            f"{name}, a JPEG file, is {coding} (frame {marker:#x}). Expected baseline or progressive "
            "JPEG with Huffman coding and 8 bits a sample; save it as such, or as PNG.",
            code="unsupported_type",
        )


def _frame(marker: int, segment: bytes) -> Frame:
    progressive = marker == PROGRESSIVE
    sent_together = COEFFICIENTS if progressive else 1
    return Frame(progressive, {component: [UNSENT] * sent_together for component in segment[6::3]})


def _take_up(frame: Frame, segment: bytes) -> None:
    """A scan's header: number of components, two bytes for each, first and last coefficient, bits."""
    count = segment[0] if segment else 0
    parameters = segment[1 + 2 * count :]
    if len(parameters) >= 3:
        first, last, bits = parameters[:3]
        frame.add(segment[1 : 1 + 2 * count : 2], first, last, bits & 0x0F if frame.progressive else 0)
