"""Checks that a TIFF file has enough strips or tiles for its picture."""

from dataclasses import dataclass

from segdec.errors import ImageError
from segdec.imaging.tiff_directory import (
    BITS,
    CHANNELS,
    COMPRESSION,
    HEIGHT,
    PLANES,
    STRIP_BYTES,
    STRIP_HEIGHT,
    STRIPS,
    TILE_BYTES,
    TILE_HEIGHT,
    TILE_WIDTH,
    TILES,
    WIDTH,
    Tags,
    numbers,
)

SEPARATE = 2
"""Planar configuration with one plane per channel."""


@dataclass(frozen=True)
class Parts:
    """The strips or tiles of a picture.

    Attributes:
        places: Offset of each in the file.
        lengths: Bytes of each in the file; empty if the directory does not say.
        needed: Number of strips or tiles that cover the picture.
        part_bytes: Maximum size of each after decompression.
    """

    places: tuple[int, ...]
    lengths: tuple[int, ...]
    needed: int
    part_bytes: int


def check_parts(tags: Tags, name: str) -> None:
    """Rejects a TIFF with too few strips or tiles for its picture: Pillow fills the rest with black.

    Args:
        tags: The first directory.
        name: Name of the file in error messages.

    Raises:
        ImageError: With the code `truncated_image`, or as `numbers`.
    """
    found = parts(tags, name)
    size = sum(found.lengths)
    too_short = found.lengths and size < _needed_bytes(tags, name)
    if len(found.places) < found.needed or 0 in found.lengths or too_short:
        raise ImageError(
            f"{name}, a TIFF file, has {len(found.places)} parts of {size:,} bytes, but its picture needs "
            f"{found.needed} parts. Expected a complete image; copy or take it again.",
            code="truncated_image",
        )


def parts(tags: Tags, name: str) -> Parts:
    """Returns the strips or tiles of a picture.

    Raises:
        ImageError: As `numbers`.
    """
    tiled = TILES in tags
    places = numbers(tags, TILES if tiled else STRIPS, name)
    lengths = numbers(tags, TILE_BYTES if tiled else STRIP_BYTES, name)
    width, height = numbers(tags, WIDTH, name)[0], numbers(tags, HEIGHT, name)[0]
    part_width = max(numbers(tags, TILE_WIDTH, name, (width,))[0], 1) if tiled else width
    part_height = max(numbers(tags, TILE_HEIGHT if tiled else STRIP_HEIGHT, name, (height,))[0], 1)
    channels = numbers(tags, CHANNELS, name, (1,))[0]
    separate = numbers(tags, PLANES, name, (1,))[0] == SEPARATE
    needed = -(-width // max(part_width, 1)) * -(-height // part_height) * (channels if separate else 1)
    rows = part_height if tiled else min(part_height, height)
    bits = part_width * max(numbers(tags, BITS, name, (1,))) * (1 if separate else channels)
    return Parts(places, lengths, needed, -(-bits // 8) * rows)


def _needed_bytes(tags: Tags, name: str) -> int:
    """Returns the minimum size of all parts; known only without compression."""
    if numbers(tags, COMPRESSION, name, (1,))[0] != 1:
        return 0
    bits = sum(numbers(tags, BITS, name, (1,)))
    return numbers(tags, WIDTH, name)[0] * bits // 8 * numbers(tags, HEIGHT, name)[0]
