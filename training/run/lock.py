"""One process at a time in a run folder."""

import fcntl
import os
import platform
import sys
import weakref
from contextlib import suppress
from pathlib import Path

from segdec.errors import RunError

LOCK = "lock"


class RunLock:
    """Holds the run folder for this process until it is released; the kernel releases it at its death.

    It lies in the folder's file `lock`, which also names the holder, and moves with the folder.

    Args:
        folder: An existing folder.

    Raises:
        RunError: If another process holds it. Nothing was changed.
        OSError: If the file cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._close = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
            self.release()
            raise RunError(
                f"The run folder '{folder}' is in use by {holder}. Wait until it has ended, or choose "
                "another --name."
            ) from error
        except OSError as error:
            print(
                f"warning: Cannot lock the run folder '{folder}': {error.strerror}. "
                "See to it that no other process uses it.",
                file=sys.stderr,
            )
        with suppress(OSError):  # on a full disk the holder stays unnamed, and the run says what to do
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)

    def release(self) -> None:
        """Lets others in; a second call does nothing."""
        self._close()
