"""Checks that the strips or tiles of a deflate-compressed TIFF file are complete, by their checksums.

libtiff stops decompressing a strip as soon as the picture is full and never checks the checksum. If zeros
overwrite the rest of a strip, they often decode to a long run of equal pixels, and no decoder reports an
error.

Reference:
    RFC 1950, section 2.2 (the checksum).
"""

import zlib

from segdec.errors import ImageError
from segdec.imaging.tiff_directory import COMPRESSION, Tags, numbers
from segdec.imaging.tiff_parts import parts

DEFLATE = (8, 32946)
PIECE_BYTES = 2**16


def check_strips(data: bytes, tags: Tags, name: str) -> None:
    """Rejects a deflate-compressed TIFF with a strip or tile that is incomplete or has a wrong checksum.

    It stops decompressing when a strip exceeds its size, so that a small file costs no more than its picture.
    It does not check other compressions.

    Args:
        data: The file.
        tags: Its first directory.
        name: Name in error messages.

    Raises:
        ImageError: With the code `truncated_image` or `corrupt_image`.
    """
    if numbers(tags, COMPRESSION, name, (1,))[0] not in DEFLATE:
        return
    layout = parts(tags, name)
    lengths = layout.lengths or (len(data),) * layout.needed
    view = memoryview(data)
    for place, length in zip(layout.places[: layout.needed], lengths, strict=False):
        _check_strip(view[place : place + length], layout.part_bytes, name)


def _check_strip(packed: memoryview, max_bytes: int, name: str) -> None:
    unpacker, unpacked = zlib.decompressobj(), 0
    for start in range(0, len(packed), PIECE_BYTES):
        rest: bytes | memoryview = packed[start : start + PIECE_BYTES]
        while rest and not unpacker.eof:
            try:
                unpacked += len(unpacker.decompress(rest, PIECE_BYTES))
            except zlib.error as error:
                raise _broken(
                    "corrupt_image", name, f"its pixels cannot be decompressed ({error})"
                ) from error
            rest = unpacker.unconsumed_tail
            if unpacked > max_bytes:
                raise _broken("corrupt_image", name, "a strip or tile has too many pixels")
        if unpacker.eof:
            return
    raise _broken("truncated_image", name, "a strip or tile ends early")


def _broken(code: str, name: str, what: str) -> ImageError:
    return ImageError(
        f"{name} is not a complete TIFF file: {what}. Expected a complete image; copy or take it again.",
        code=code,
    )
