"""Deflated pixels are decompressed within a limit, so that a small file costs no more than its picture."""

import zlib
from collections.abc import Iterable


def inflated_size(packed: Iterable[memoryview], max_bytes: int, piece_bytes: int) -> tuple[int, bool]:
    """Decompresses a zlib stream, at most `piece_bytes` at once, until it has more than `max_bytes`.

    Returns:
        Number of decompressed bytes, and whether the stream has ended.

    Raises:
        zlib.error: If the stream is damaged.
    """
    unpacker, unpacked = zlib.decompressobj(), 0
    for piece in packed:
        rest: bytes | memoryview = piece
        while rest and not unpacker.eof and unpacked <= max_bytes:
            unpacked += len(unpacker.decompress(rest, piece_bytes))
            rest = unpacker.unconsumed_tail
    return unpacked, unpacker.eof
