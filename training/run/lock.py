"""A lock on a run folder: one process at a time."""

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from segdec.errors import RunError

LOCK = "lock"


def lock_folder(folder: Path) -> FileLock:
    """Locks a run folder for this process until `release`; the kernel releases the lock if the process dies.

    The file `lock` of the folder also names the owner. The lock stays valid if the folder moves. Raises a
    `RunError` if another process holds the lock. Nothing was changed.
    """
    path = folder / LOCK
    lock = FileLock(path, blocking=False, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        owner = path.read_text("utf-8", errors="replace").strip() or "another process"
        raise RunError(
            f"The run folder '{folder}' is in use by {owner}. Wait until it has ended, or choose "
            "another --name."
        ) from error
    except OSError as error:
        print(
            f"warning: Cannot lock the run folder '{folder}': {error.strerror}. "
            "Make sure that no other process uses it.",
            file=sys.stderr,
        )
    with suppress(OSError):  # on a full disk the owner stays unnamed; the run reports the disk itself
        path.write_text(f"process {os.getpid()} on {platform.node()}\n", encoding="utf-8")
    return lock
