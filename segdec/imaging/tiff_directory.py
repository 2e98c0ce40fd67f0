"""The first directory of a TIFF file, looked at before a decoder believes it."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from segdec.errors import ImageError

Tags = Mapping[int, Any]
"""Pillow's directory: values by tag."""

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""Little and big endian; with `+`, offsets have 64 bits (BigTIFF)."""

MAX_VALUES = 2**17
"""Numbers in one tag. Decoders keep each as an object, and one for each strip, before any pixel is read."""

MAX_METADATA_VALUES = 2**14
"""Numbers in a directory of notes; a camera writes some hundreds."""

ATTACHED = (34665, 34853, 40965)
"""Directories of notes: EXIF, GPS, interoperability."""

BYTE_TYPES = (1, 2, 7)
"""Bytes, text and undefined: kept as they are, so that their number costs no more than the file."""

TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
TYPE_BYTES |= {16: 8, 17: 8, 18: 8}

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
ORIENTATION, CHANNELS, PLANES, EXTRA_CHANNELS = 274, 277, 284, 338
STRIPS, STRIP_HEIGHT, STRIP_BYTES = 273, 278, 279
TILE_WIDTH, TILE_HEIGHT, TILES, TILE_BYTES = 322, 323, 324, 325
WHITE_IS_ZERO = 0
"""A photometric interpretation."""

PREMULTIPLIED = 1
"""An extra channel: alpha that the colours are multiplied by."""

NUMBER_BYTES = {3: 2, 4: 4, 13: 4, 16: 8, 18: 8}

ACCEPTED_COMPRESSIONS = {1: "none", 5: "LZW", 8: "deflate", 32773: "PackBits", 32946: "deflate"}
"""Compressions whose decoder notices an early end of a strip.

JPEG and CCITT (2, 3, 4) in TIFF fill up what is missing, silently; LZMA and Zstandard decode what was
overwritten by zeros. Wrong bytes that still unpack to as many pixels go unnoticed, as in a BMP, unless
they are deflated, for which `deflate_strips` compares the checksums.
"""

NEW_SUBFILE_TYPE, SUBFILE_TYPE = 254, 255
REDUCED_OR_MASK = 0b101
"""Bits of the newer tag: a smaller copy of another picture, and its transparency mask."""

REDUCED = 2
"""A value of the older tag."""


@dataclass(frozen=True)
class Entry:
    """One tag: its number, the type and number of its values, and the first value where it is a number."""

    tag: int
    type: int
    count: int
    value: int


def check_directory(data: bytes, name: str, max_pixels: int) -> None:
    """Refuses a TIFF whose directory asks for far too much memory, or describes no photograph.

    What cannot be read here is left to the decoder.

    Args:
        data: The file.
        name: What error messages call it.
        max_pixels: Limit on the pixels of one tile, which may be larger than the picture.

    Raises:
        ImageError: With the code `corrupt_image`, `too_many_pixels` or `unsupported_type`.
    """
    values: dict[int, int] = {}
    held = 0
    for entry in _entries(data):
        held += entry.count * TYPE_BYTES.get(entry.type, 0)
        if entry.type not in BYTE_TYPES and entry.count > MAX_VALUES:
            raise ImageError(
                f"{name}, a TIFF file, has {entry.count:,} values in its tag {entry.tag}. Expected at most "
                f"{MAX_VALUES:,}; save it with larger strips or tiles.",
                code="corrupt_image",
            )
        if entry.tag in values:  # decoders disagree on which one counts
            raise ImageError(
                f"{name}, a TIFF file, has its tag {entry.tag} twice. Expected it once; save it again.",
                code="corrupt_image",
            )
        values[entry.tag] = entry.value
        if entry.tag in ATTACHED:
            _check_attached(data, entry.value, name)
    if held > len(data):  # tags that share their bytes are read once for each
        raise ImageError(
            f"{name}, a TIFF file, has {len(data):,} bytes, its tags {held:,}. Expected tags within it; "
            "copy or save it again.",
            code="corrupt_image",
        )
    _check_tile(values.get(TILE_WIDTH, 0), values.get(TILE_HEIGHT, 0), name, max_pixels)
    _check_compression(values.get(COMPRESSION, 1), name)
    _check_kind(values.get(NEW_SUBFILE_TYPE, 0), values.get(SUBFILE_TYPE, 0), name)


def _check_attached(data: bytes, start: int, name: str) -> None:
    """Refuses a directory of notes that is large: it is taken apart to the last number."""
    held = sum(entry.count for entry in _entries(data, start) if entry.type not in BYTE_TYPES)
    if held > MAX_METADATA_VALUES:
        raise ImageError(
            f"{name}, a TIFF file, has {held:,} values in its notes. Expected at most {MAX_METADATA_VALUES:,}; "
            "save it without them.",
            code="corrupt_image",
        )


def read_orientation(exif: bytes) -> int:
    """Reads the orientation 1…8 in an EXIF block, which is laid out as a TIFF file; 1 where there is none."""
    block = exif.removeprefix(b"Exif\0\0")
    if not block.startswith(SIGNATURES):
        return 1
    entry = next((entry for entry in _entries(block) if entry.tag == ORIENTATION), None)
    whole = entry is not None and entry.type in NUMBER_BYTES and entry.count == 1
    return entry.value if entry is not None and whole and 1 <= entry.value <= 8 else 1


def numbers(tags: Tags, tag: int, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Reads the whole numbers of a tag; `default` where it is missing.

    Raises:
        ImageError: With the code `corrupt_image`, if it holds anything else.
    """
    found = tags.get(tag, default)
    values = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(value, int) for value in values) or (tag in tags and not values):
        raise ImageError(
            f"{name}, a TIFF file, holds no whole number in its tag {tag}. Expected one; save it again.",
            code="corrupt_image",
        )
    return values


def _check_tile(width: int, height: int, name: str, max_pixels: int) -> None:
    if width * height > max_pixels:
        raise ImageError(
            f"{name}, a TIFF file, has tiles of {width} × {height} = {width * height:,} pixels. "
            f"Expected at most {max_pixels:,}; save it with smaller tiles.",
            code="too_many_pixels",
        )


def _check_compression(compression: int, name: str) -> None:
    if compression not in ACCEPTED_COMPRESSIONS:
        raise ImageError(
            f"{name}, a TIFF file, is compressed by method {compression}. Expected none, LZW, deflate or "
            "PackBits, whose early end is always noticed; save it with one of these, or as PNG.",
            code="unsupported_type",
        )


def _check_kind(newer: int, older: int, name: str) -> None:
    """By the newer tag of a picture's kind, and the older one."""
    if newer & REDUCED_OR_MASK or older == REDUCED:
        tag, value = (NEW_SUBFILE_TYPE, newer) if newer & REDUCED_OR_MASK else (SUBFILE_TYPE, older)
        raise ImageError(
            f"The first picture in the TIFF file {name} is a smaller copy or a mask of another one (its tag "
            f"{tag} is {value}). Expected the photograph itself; save it alone.",
            code="unsupported_type",
        )


def _entries(data: bytes, start: int | None = None) -> Iterator[Entry]:
    """The entries of the directory at `start`, else of the first one; they end where the file does."""
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
            place_of_value = place + width - field
            bytes_of_value = data[place_of_value : place_of_value + NUMBER_BYTES.get(kind, 0)]
            yield Entry(
                tag, kind, number, int.from_bytes(bytes_of_value, "little" if order == "<" else "big")
            )
    except (struct.error, OverflowError):
        return
