"""The strips or tiles of a TIFF file: whether there are enough of them for the picture."""

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

APART = 2
"""Of the planes: one for each channel."""


@dataclass(frozen=True)
class Parts:
    """Lists the strips or tiles of a picture.

    Attributes:
        places: Where each begins in the file.
        lengths: How many bytes each has there; empty where the directory does not say.
        needed: How many cover the picture.
        part_bytes: How many bytes each unpacks to at most.
    """

    places: tuple[int, ...]
    lengths: tuple[int, ...]
    needed: int
    part_bytes: int


def check_parts(tags: Tags, name: str) -> None:
    """Refuses a TIFF with fewer strips or tiles than its picture has: Pillow fills up the rest with black.

    Args:
        tags: The first directory.
        name: What error messages call the file.

    Raises:
        ImageError: With the code `truncated_image`, or as `numbers`.
    """
    found = parts(tags, name)
    held = sum(found.lengths)
    too_short = found.lengths and held < _needed_bytes(tags, name)
    if len(found.places) < found.needed or 0 in found.lengths or too_short:
        raise ImageError(
            f"{name}, a TIFF file, has {len(found.places)} parts of {held:,} bytes, fewer than its picture "
            f"needs ({found.needed} parts). Expected a whole image; copy or take it again.",
            code="truncated_image",
        )


def parts(tags: Tags, name: str) -> Parts:
    """Lists the strips or tiles of a picture.

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
    apart = numbers(tags, PLANES, name, (1,))[0] == APART
    needed = -(-width // max(part_width, 1)) * -(-height // part_height) * (channels if apart else 1)
    rows = part_height if tiled else min(part_height, height)
    bits = part_width * max(numbers(tags, BITS, name, (1,))) * (1 if apart else channels)
    return Parts(places, lengths, needed, -(-bits // 8) * rows)


def _needed_bytes(tags: Tags, name: str) -> int:
    """What the parts hold at least; only without compression it is known."""
    if numbers(tags, COMPRESSION, name, (1,))[0] != 1:
        return 0
    bits = sum(numbers(tags, BITS, name, (1,)))
    return numbers(tags, WIDTH, name)[0] * bits // 8 * numbers(tags, HEIGHT, name)[0]
