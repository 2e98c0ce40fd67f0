"""Deflated pixels are decompressed within a limit, so that a small file costs no more than its picture."""

import zlib
from collections.abc import Callable, Iterable

from segdec.errors import ImageError


def check_deflated(
    packed: Iterable[memoryview], max_bytes: int, piece_bytes: int, broken: Callable[[str], ImageError]
) -> bool:
    """Decompresses a zlib stream, at most `piece_bytes` at once; returns whether it has ended.

    Raises:
        ImageError: What `broken` makes of the reason, if the stream is damaged or has more than `max_bytes`.
    """
    unpacker, unpacked = zlib.decompressobj(), 0
    try:
        for piece in packed:
            rest: bytes | memoryview = piece
            while rest and not unpacker.eof and unpacked <= max_bytes:
                unpacked += len(unpacker.decompress(rest, piece_bytes))
                rest = unpacker.unconsumed_tail
    except zlib.error as error:
        raise broken(f"its pixels cannot be decompressed ({error})") from error
    if unpacked > max_bytes:
        raise broken("it has far more pixels than its header says")
    return unpacker.eof
