"""Checks the first directory of a TIFF file before a decoder uses it."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from segdec.errors import ImageError

Tags = Mapping[int, Any]
"""Pillow's directory: tag → values."""

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""Little and big endian; with `+`, offsets have 64 bits (BigTIFF)."""

MAX_VALUES = 2**17
"""Values of one tag. Decoders create an object for each before they read any pixel."""

MAX_METADATA_VALUES = 2**14
"""Values in a metadata directory; a camera writes some hundreds."""

MAX_DIRECTORIES = 100
"""Directories of pages that are read."""

METADATA_DIRECTORIES = (34665, 34853, 40965)
"""EXIF, GPS, interoperability."""

BYTE_TYPES = (1, 2, 7)
"""Bytes, text and undefined: decoders keep them as bytes, so that any number is cheap."""

TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
TYPE_BYTES |= {16: 8, 17: 8, 18: 8}


class Tag(IntEnum):
    """Numbers of the tags that are read."""

    NEW_SUBFILE_TYPE, SUBFILE_TYPE = 254, 255
    WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
    ORIENTATION, CHANNELS, PLANES, EXTRA_CHANNELS = 274, 277, 284, 338
    FILL_ORDER, PREDICTOR, SAMPLE_FORMAT = 266, 317, 339
    STRIPS, STRIP_HEIGHT, STRIP_BYTES = 273, 278, 279
    TILE_WIDTH, TILE_HEIGHT, TILES, TILE_BYTES = 322, 323, 324, 325


WHITE_IS_ZERO = 0
"""A photometric interpretation."""

PREMULTIPLIED = 1
"""An extra channel: premultiplied alpha."""

SEPARATE = 2
"""Planar configuration with one plane per channel."""

NUMBER_BYTES = {3: 2, 4: 4, 13: 4, 16: 8, 18: 8}

ACCEPTED_COMPRESSIONS = {1: "none", 5: "LZW", 8: "deflate", 32773: "PackBits", 32946: "deflate"}
"""Compressions whose decoder detects an early end of a strip.

JPEG and CCITT (2, 3, 4) in TIFF silently fill in missing pixels; LZMA and Zstandard decode zeros that
overwrote data. Wrong bytes that decode to the right number of pixels are not detected, as in BMP, except with
deflate, for which `deflate_strips` checks the checksums.
"""

REDUCED_OR_MASK = 0b101
"""Bits of the newer tag: a smaller copy of another picture, or its transparency mask."""

REDUCED = 2
"""A value of the older tag."""


@dataclass(frozen=True)
class Entry:
    """One tag: its number, the type and number of its values.

    `value` is the first value if the entry holds it and it is a number; all values start at `place`.
    """

    tag: int
    type: int
    count: int
    value: int
    place: int


def check_directory(data: bytes, name: str, max_pixels: int) -> None:
    """Rejects a TIFF whose directory needs too much memory or does not describe a photograph.

    Unreadable entries are left to the decoder. `max_pixels` limits one tile, which may be larger than the
    picture.

    Raises:
        ImageError: With the code `corrupt_image`, `too_many_pixels` or `unsupported_type`.
    """
    values: dict[int, int] = {}
    tag_bytes = 0
    for entry in entries(data):
        tag_bytes += entry.count * TYPE_BYTES.get(entry.type, 0)
        if entry.type not in BYTE_TYPES and entry.count > MAX_VALUES:
            arrived = f"has {entry.count:,} values in its tag {entry.tag}"
            raise _rejected(name, arrived, f"at most {MAX_VALUES:,}; save it with larger strips or tiles")
        if entry.tag in values:  # decoders disagree on which one counts
            raise _rejected(name, f"has its tag {entry.tag} twice", "it once; save it again")
        values[entry.tag] = entry.value
        if entry.tag in METADATA_DIRECTORIES:  # decoders parse all of its values
            inner = entries(data, entry.value)
            count = sum(each.count for each in inner if each.type not in BYTE_TYPES)
            if count > MAX_METADATA_VALUES:
                expected = f"at most {MAX_METADATA_VALUES:,}; save it without metadata"
                raise _rejected(name, f"has {count:,} values in its metadata", expected)
    if tag_bytes > len(data):  # tags that share bytes are read once each
        arrived = f"has {len(data):,} bytes, but its tags need {tag_bytes:,}"
        raise _rejected(name, arrived, "tags inside the file; copy or save it again")
    width, height = values.get(Tag.TILE_WIDTH, 0), values.get(Tag.TILE_HEIGHT, 0)
    if width * height > max_pixels:
        arrived = f"has tiles of {width} × {height} = {width * height:,} pixels"
        expected = f"at most {max_pixels:,}; save it with smaller tiles"
        raise _rejected(name, arrived, expected, code="too_many_pixels")
    compression = values.get(Tag.COMPRESSION, 1)
    if compression not in ACCEPTED_COMPRESSIONS:
        expected = "none, LZW, deflate or PackBits, which detect an early end; save it so, or as PNG"
        raise _rejected(name, f"is compressed by method {compression}", expected, code="unsupported_type")
    newer, older = values.get(Tag.NEW_SUBFILE_TYPE, 0), values.get(Tag.SUBFILE_TYPE, 0)
    if newer & REDUCED_OR_MASK or older == REDUCED:
        arrived = "has as its first picture a smaller copy or a mask of another one"
        raise _rejected(name, arrived, "the photograph itself; save it alone", code="unsupported_type")


def _rejected(name: str, arrived: str, expected: str, code: str = "corrupt_image") -> ImageError:
    return ImageError(f"{name}, a TIFF file, {arrived}. Expected {expected}.", code=code)


def read_orientation(exif: bytes) -> int:
    """Reads the orientation 1…8 from an EXIF block, which has the layout of a TIFF file; default 1."""
    block = exif.removeprefix(b"Exif\0\0")
    if not block.startswith(SIGNATURES):
        return 1
    entry = next((entry for entry in entries(block) if entry.tag == Tag.ORIENTATION), None)
    whole = entry is not None and entry.type in NUMBER_BYTES and entry.count == 1
    return entry.value if entry is not None and whole and 1 <= entry.value <= 8 else 1


def numbers(tags: Tags, tag: int, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Reads the integers of a tag; `default` if it is missing.

    Raises:
        ImageError: With the code `corrupt_image`, if it has other values.
    """
    tag_values = tags.get(tag, default)
    values = tag_values if isinstance(tag_values, tuple) else (tag_values,)
    if not all(isinstance(value, int) for value in values) or (tag in tags and not values):
        raise _rejected(name, f"has no integer in its tag {tag}", "one; save it again")
    return values


def directories(data: bytes) -> Iterator[int]:
    """Yields the start of the directory of each page, of at most `MAX_DIRECTORIES`."""
    order, big = "<" if data[:2] == b"II" else ">", b"+" in data[2:4]
    head, number, entry_bytes, place = ("Q", "Q", 20, 8) if big else ("L", "H", 12, 4)
    try:
        for _ in range(MAX_DIRECTORIES):
            (start,) = struct.unpack_from(order + head, data, place)
            if not start:
                return
            (count,) = struct.unpack_from(order + number, data, start)
            yield start
            place = start + struct.calcsize(number) + count * entry_bytes
    except (struct.error, OverflowError):
        return


def entries(data: bytes, start: int | None = None) -> Iterator[Entry]:
    """Yields the entries of the directory at `start`, default the first one, up to the end of the file."""
    order = "<" if data[:2] == b"II" else ">"
    big = b"+" in data[2:4]
    head, size, layout, field = ("Q", 8, "HHQ", 8) if big else ("L", 2, "HHL", 4)
    try:
        if start is None:
            (start,) = struct.unpack_from(order + head, data, 8 if big else 4)
        (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, start)
        width = struct.calcsize(order + layout) + field
        for place in range(start + size, start + size + min(count, 2**16) * width, width):
            tag, kind, number = struct.unpack_from(order + layout, data, place)
            value_start = place + width - field
            value = data[value_start : value_start + NUMBER_BYTES.get(kind, 0)]
            first = int.from_bytes(value, "little" if order == "<" else "big")
            if number * TYPE_BYTES.get(kind, 0) > field:
                (value_start,) = struct.unpack_from(order + head, data, value_start)
            yield Entry(tag, kind, number, first, value_start)
    except (struct.error, OverflowError):
        return
