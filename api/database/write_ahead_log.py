"""Detects that the WAL of a SQLite database lost commits while no program had it open.

SQLite reads what is left of a WAL without an error. The index of the WAL says how long it was; it stays if
the last program was killed. Format: https://sqlite.org/walformat.html
"""

import struct
from contextlib import suppress
from pathlib import Path

INDEX = struct.Struct("=12xBxHI4x2I8s56xI")
"""Start of the index: whether it is valid, size of a page, number of frames, checksum of the last one, salt,
and the number of frames that are also in the database."""
COPY_BYTES = 48
"""The index begins with two equal copies of most of this."""
LOG_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
SALT = slice(16, 24)
"""In the header of the WAL. It changes when the WAL begins anew, after all commits are in the database."""


def has_lost_commits(database: str) -> bool:
    """Returns whether commits are missing that are neither in the WAL nor in the database."""
    index = _read(f"{database}-shm", 0, INDEX.size)
    if len(index) < INDEX.size or index[:COPY_BYTES] != index[COPY_BYTES : 2 * COPY_BYTES]:
        return False
    is_valid, page_bytes, frames, *checksum, salt, copied = INDEX.unpack(index)
    header = _read(f"{database}-wal", 0, LOG_HEADER_BYTES)
    begun_anew = len(header) == LOG_HEADER_BYTES and header[SALT] != salt
    if not is_valid or copied >= frames or begun_anew:
        return False
    frame_bytes = FRAME_HEADER_BYTES + (2**16 if page_bytes == 1 else page_bytes)
    last = _read(f"{database}-wal", LOG_HEADER_BYTES + (frames - 1) * frame_bytes, frame_bytes)
    is_complete = len(last) == frame_bytes and last[8:FRAME_HEADER_BYTES] == salt + struct.pack(
        ">2I", *checksum
    )
    # Meanwhile another program may have copied all commits into the database and removed both files.
    return not is_complete and _read(f"{database}-shm", 0, INDEX.size) == index


def _read(path: str, offset: int, size: int) -> bytes:
    """Returns bytes of a file; fewer if it is shorter, none if it is missing."""
    with suppress(OSError), Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(size)
    return b""
