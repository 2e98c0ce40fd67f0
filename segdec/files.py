"""Writing files so that a reader never meets half of one."""

import os
from pathlib import Path
from uuid import uuid4


def write_bytes_atomic(path: Path, data: bytes) -> None:
    """Writes `data` to `path`: afterwards the file is complete, or it is as it was before.

    Raises:
        OSError: The folder is missing, full or not writable. Nothing is left behind.
    """
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text_atomic(path: Path, text: str) -> None:
    """Writes `text` as UTF-8, line ends as given; see `write_bytes_atomic`."""
    write_bytes_atomic(path, text.encode("utf-8"))
