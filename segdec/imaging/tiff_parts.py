"""Checks that a TIFF file has all strips or tiles of its picture, and verifies checksums of deflated ones.

libtiff stops decompressing a strip as soon as the picture is full and never checks the checksum (RFC 1950,
section 2.2). If zeros overwrite the rest of a strip, they often decode to a long run of equal pixels, and no
decoder reports an error.
"""

from functools import partial

from segdec.errors import ImageError
from segdec.imaging.deflate import check_deflated
from segdec.imaging.integrity import incomplete
from segdec.imaging.tiff_directory import SEPARATE, Tag, Tags, numbers

UNCOMPRESSED, DEFLATE = 1, (8, 32946)
PIECE_BYTES = 2**16


def check_parts(data: bytes, tags: Tags, name: str) -> None:
    """Rejects a TIFF with missing strips or tiles, which Pillow would show black, or damaged deflated ones.

    `tags` is the first directory of the file `data`, which messages call `name`.

    Raises:
        ImageError: With the code `truncated_image` or `corrupt_image`.
    """
    tiled = Tag.TILES in tags
    places = numbers(tags, Tag.TILES if tiled else Tag.STRIPS, name)
    # Empty if the directory does not say
    lengths = numbers(tags, Tag.TILE_BYTES if tiled else Tag.STRIP_BYTES, name)
    width, height = numbers(tags, Tag.WIDTH, name)[0], numbers(tags, Tag.HEIGHT, name)[0]
    part_width = max(numbers(tags, Tag.TILE_WIDTH, name, (width,))[0], 1) if tiled else width
    part_height = max(numbers(tags, Tag.TILE_HEIGHT if tiled else Tag.STRIP_HEIGHT, name, (height,))[0], 1)
    bits = numbers(tags, Tag.BITS, name, (1,))
    compression = numbers(tags, Tag.COMPRESSION, name, (1,))[0]
    channels = numbers(tags, Tag.CHANNELS, name, (1,))[0]
    separate = numbers(tags, Tag.PLANES, name, (1,))[0] == SEPARATE
    needed = -(-width // max(part_width, 1)) * -(-height // part_height) * (channels if separate else 1)

    size = sum(lengths)
    min_bytes = width * sum(bits) // 8 * height if compression == UNCOMPRESSED else 0
    if len(places) < needed or 0 in lengths or (lengths and size < min_bytes):
        what = f"has {len(places)} parts of {size:,} bytes, but its picture needs {needed} parts"
        raise incomplete(f"{name}, a TIFF file, {what}", truncated=True)
    if compression in DEFLATE:
        rows = part_height if tiled else min(part_height, height)
        part_bits = part_width * max(bits) * (1 if separate else channels)
        view = memoryview(data)
        for place, length in zip(places[:needed], lengths or (len(data),) * needed, strict=False):
            packed = view[place : place + length]
            pieces = (packed[start : start + PIECE_BYTES] for start in range(0, len(packed), PIECE_BYTES))
            if not check_deflated(pieces, -(-part_bits // 8) * rows, PIECE_BYTES, partial(_broken, name)):
                raise _broken(name, "a strip or tile ends early", truncated=True)


def _broken(name: str, what: str, *, truncated: bool = False) -> ImageError:
    return incomplete(f"{name} is not a complete TIFF file: {what}", truncated=truncated)
