"""The scans of progressive and sequential JPEG files, as encoders write them and as a cut leaves them."""

from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.images import decode_image
from segdec.imaging.jpeg_scans import check_scans
from tests.image_files import encode

START_OF_SCAN, END_OF_IMAGE = b"\xff\xda", b"\xff\xd9"


def surface(channels: int) -> NDArray[np.uint8]:
    noise = np.random.default_rng(3).integers(0, 256, (48, 72, channels), dtype=np.uint8)
    return np.asarray(cv2.GaussianBlur(noise, (0, 0), 2), dtype=np.uint8).reshape(48, 72, channels)


def jpeg(channels: int, **options: Any) -> bytes:
    return encode(surface(channels), "JPEG", **options)


def scan_starts(data: bytes) -> list[int]:
    """Starts of the scans, without a parser: Pillow writes no marker into its coded pixels."""
    return [place for place in range(len(data)) if data.startswith(START_OF_SCAN, place)]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("quality", [5, 100])
def test_file_cut_between_any_two_scans_and_closed_is_rejected(channels: int, quality: int) -> None:
    data = jpeg(channels, quality=quality, progressive=True)
    starts = scan_starts(data)
    assert len(starts) == (6 if channels == 1 else 10)
    for number, start in enumerate(starts):
        before = data.rindex(b"\xff\xc4", 0, start) if number else start  # tables of a scan come before it
        for cut in (start, before):
            with pytest.raises(ImageError, match="part, a JPEG file, ends before its last scan") as caught:
                decode_image(data[:cut] + END_OF_IMAGE, "part")
            assert caught.value.code == "truncated_image"


def segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2) + content


def frame(marker: int, *components: int) -> bytes:
    parts = b"".join(bytes([component, 0x11, 0]) for component in components)
    return segment(marker, bytes([8, 0, 8, 0, 8, len(components)]) + parts)


def scan(*components: int, first: int = 0, last: int = 63, bits: int = 0) -> bytes:
    tables = b"".join(bytes([component, 0]) for component in components)
    coded = b"\x12\xff\x00\x34\xff\xd0\x56"  # with a value 0xff and a restart
    return segment(0xDA, bytes([len(components)]) + tables + bytes([first, last, bits])) + coded


WHOLE = {
    "sequential, one scan": frame(0xC0, 1, 2, 3) + scan(1, 2, 3),
    "sequential, a scan for each component": frame(0xC1, 1, 2, 3) + scan(1) + scan(2) + scan(3),
    "progressive, bit by bit": frame(0xC2, 1)
    + scan(1, last=0, bits=0x01)
    + scan(1, first=1, bits=0x02)
    + scan(1, first=1, bits=0x21)
    + scan(1, last=0, bits=0x10)
    + scan(1, first=1, bits=0x10),
}
PARTS = {
    "sequential, a component is missing": frame(0xC0, 1, 2, 3) + scan(1) + scan(2),
    "progressive, the lowest bit of AC is missing": frame(0xC2, 1)
    + scan(1, last=0)
    + scan(1, first=1, bits=1),
    "progressive, the lowest bit of DC is missing": frame(0xC2, 1)
    + scan(1, last=0, bits=1)
    + scan(1, first=1),
    "progressive, coefficient 63 is missing": frame(0xC2, 1) + scan(1, last=0) + scan(1, first=1, last=62),
    "progressive, AC of one component is missing": frame(0xC2, 1, 2) + scan(1, 2, last=0) + scan(1, first=1),
    "no scan": frame(0xC0, 1),
}


@pytest.mark.parametrize("body", WHOLE.values(), ids=WHOLE)
def test_complete_scans_pass(body: bytes) -> None:
    check_scans(b"\xff\xd8" + body + END_OF_IMAGE, "part")


@pytest.mark.parametrize("body", PARTS.values(), ids=PARTS)
def test_incomplete_scans_are_rejected(body: bytes) -> None:
    with pytest.raises(ImageError, match="contain only a part") as caught:
        check_scans(b"\xff\xd8" + body + END_OF_IMAGE, "part")
    assert caught.value.code == "truncated_image"


def test_data_after_the_end_is_ignored() -> None:
    with pytest.raises(ImageError, match="contain only a part"):
        check_scans(b"\xff\xd8" + frame(0xC0, 1, 2) + scan(1) + END_OF_IMAGE + scan(2), "part")


def test_markers_within_a_segment_are_not_the_pictures() -> None:
    """A preview in the notes is a JPEG of its own, of any coding and cut off anywhere."""
    preview = b"\xff\xd8" + frame(0xC9, 1) + frame(0xC0, 1, 2) + scan(1) + END_OF_IMAGE
    whole = WHOLE["sequential, one scan"]
    check_scans(b"\xff\xd8" + segment(0xE1, preview) + whole + END_OF_IMAGE, "part")
    with pytest.raises(ImageError, match="contain only a part"):
        check_scans(b"\xff\xd8" + segment(0xE1, whole) + frame(0xC0, 1) + END_OF_IMAGE, "part")
