"""Whether the strips or tiles of a deflated TIFF file unpack whole, by their checksums.

libtiff stops unpacking a strip as soon as its picture is full, and then never sees the checksum. Where
the rest of a strip was overwritten by zeros, these often mean a long run: the picture is filled up with
a plain surface, and no decoder complains.

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
    """Refuses a deflated TIFF unless each of its strips or tiles unpacks to its end, and to its checksum.

    Unpacking stops as soon as there is more than a strip may hold, so that a small file costs no more
    than its picture. Of other compressions nothing is checked.

    Args:
        data: The file.
        tags: Its first directory.
        name: What error messages call it.

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


def _check_strip(packed: memoryview, most_bytes: int, name: str) -> None:
    unpacker, unpacked = zlib.decompressobj(), 0
    for start in range(0, len(packed), PIECE_BYTES):
        rest: bytes | memoryview = packed[start : start + PIECE_BYTES]
        while rest and not unpacker.eof:
            try:
                unpacked += len(unpacker.decompress(rest, PIECE_BYTES))
            except zlib.error as error:
                raise _broken("corrupt_image", name, f"its pixels cannot be unpacked ({error})") from error
            rest = unpacker.unconsumed_tail
            if unpacked > most_bytes:
                raise _broken("corrupt_image", name, "a strip or tile holds more pixels than it should")
        if unpacker.eof:
            return
    raise _broken("truncated_image", name, "a strip or tile ends early")


def _broken(code: str, name: str, what: str) -> ImageError:
    return ImageError(
        f"{name} is not whole as a TIFF file: {what}. Expected a whole image; copy or take it again.",
        code=code,
    )
