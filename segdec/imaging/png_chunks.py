"""Checks the chunks of a PNG file and keeps those that its pixels need."""

import zlib
from collections.abc import Iterator
from functools import partial

from segdec.errors import ImageError
from segdec.imaging.deflate import check_deflated
from segdec.imaging.integrity import incomplete

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER_BEGIN = SIGNATURE + b"\0\0\0\x0dIHDR"
"""Followed by width and height in the first chunk of 13 bytes."""

MAX_CHUNKS = 100_000
"""More than any encoder writes. Millions of empty chunks would take seconds to decode."""

MAX_RATIO = 1032
"""Highest compression ratio of deflate."""

MAX_UNCHECKED = 2**28
"""Decompressed bytes that need no check in advance: a second of decoding."""

PIECE_BYTES = 2**20
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Channels by colour type."""

LENGTH_BYTES, KIND_BYTES, CHECKSUM_BYTES = 4, 4, 4
PIXELS, TRANSPARENCY, EXIF, ANIMATION = b"IDAT", b"tRNS", b"eXIf", b"acTL"


def read_size(data: bytes) -> tuple[int, int] | None:
    """Returns height and width of a PNG, px, from its first bytes; None for any other file."""
    if data[: len(HEADER_BEGIN)] != HEADER_BEGIN or len(data) < len(HEADER_BEGIN) + 8:
        return None
    return int.from_bytes(data[20:24]), int.from_bytes(data[16:20])


def essential_chunks(data: bytes, name: str) -> tuple[bytes, bool]:
    """Checks a PNG's chunks and drops those that its pixels do not need.

    It drops text and colour profiles because a small one may decompress to a huge one, and animation frames
    because decoders disagree on them. It moves the first EXIF chunk before the pixels, where decoders look
    for it, and drops further ones.

    Returns:
        The file (the same object if nothing changed), and whether it is an animation.

    Raises:
        ImageError: With the code `truncated_image` or `corrupt_image`.
    """
    kept: list[memoryview] = []
    kinds: set[bytes] = set()
    before_pixels, changed = 0, False
    for kind, chunk in _chunks(data, name):
        if (kind == b"IHDR") != (not kinds) or (kind == b"IHDR" and len(chunk) != 25):
            raise _broken(name, "IHDR is not its first chunk, or occurs twice")
        if kind == EXIF and PIXELS in kinds and EXIF not in kinds:
            kept.insert(before_pixels, chunk)
            changed = True
        # Critical chunks start with a capital letter; decoders must reject files with unknown ones.
        elif not kind[0] & 0x20 or kind == TRANSPARENCY or (kind == EXIF and EXIF not in kinds):
            before_pixels += PIXELS not in kinds and kind != PIXELS
            kept.append(chunk)
        else:
            changed = True
        kinds.add(kind)
    whole = b"".join([SIGNATURE, *kept]) if changed else data
    return whole, ANIMATION in kinds


def check_pixels(data: bytes, name: str) -> None:
    """Rejects a PNG (its essential chunks) that unpacks to far more than its pixels: decoders unpack all.

    Raises:
        ImageError: With the code `corrupt_image`.
    """
    chunks = [chunk for kind, chunk in _chunks(data, name, checksums=False) if kind == PIXELS]
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    row_bytes = (width * data[24] * CHANNELS.get(data[25], 4) + 7) // 8 + 1  # the first one is the filter
    largest = 2 * row_bytes * height + PIECE_BYTES  # an interlaced picture has more rows
    if sum(map(len, chunks)) * MAX_RATIO <= largest + MAX_UNCHECKED:
        return
    contents = (chunk[LENGTH_BYTES + KIND_BYTES : -CHECKSUM_BYTES] for chunk in chunks)
    check_deflated(contents, largest, PIECE_BYTES, partial(_broken, name))


def _chunks(data: bytes, name: str, *, checksums: bool = True) -> Iterator[tuple[bytes, memoryview]]:
    """Yields kind and bytes of each chunk, up to the last one."""
    view, start = memoryview(data), len(SIGNATURE)
    for _ in range(MAX_CHUNKS):
        length = int.from_bytes(view[start : start + LENGTH_BYTES])
        body = start + LENGTH_BYTES
        end = body + KIND_BYTES + length + CHECKSUM_BYTES
        if end > len(view):
            raise _broken(name, "its last chunk is missing or truncated", truncated=True)
        kind = bytes(view[body : body + KIND_BYTES])
        if checksums and zlib.crc32(view[body : end - CHECKSUM_BYTES]) != int.from_bytes(
            view[end - CHECKSUM_BYTES : end]
        ):
            raise _broken(name, f"the checksum of its {_describe(kind, start)} is wrong")
        yield kind, view[start:end]
        if kind == b"IEND":
            return
        start = end
    raise _broken(name, f"it has more than {MAX_CHUNKS:,} chunks")


def _describe(kind: bytes, start: int) -> str:
    if start == len(SIGNATURE):
        return "first part"
    name = kind.decode("ascii") if kind.isalpha() else f"bytes {kind.hex(' ')}"
    return f"{'pixels' if kind == PIXELS else 'part'} ({name})"


def _broken(name: str, what: str, *, truncated: bool = False) -> ImageError:
    return incomplete(f"{name} is not a complete PNG file: {what}", truncated=truncated)
