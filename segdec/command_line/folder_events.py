"""Waits until something happens in a folder, a while has passed, or the command is to end."""

import threading
from collections.abc import Callable
from pathlib import Path

from segdec.errors import MissingExtraError

try:
    import watchfiles
except ImportError as error:
    raise MissingExtraError("watchfiles", "watch") from error

STOP_TIMEOUT_MS = 500


class FolderEvents:
    """What wakes the command. Any thread, and a signal's handler, may end it.

    Args:
        folder: That is watched; not what lies in folders below it.
        warn: Told if the system has no events of it, as for a network folder or with too many watches.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._came, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="events", daemon=True)

    def start(self) -> None:
        """Begins to listen."""
        self._thread.start()

    def end(self) -> None:
        """Ends each wait, now and later."""
        self._ended.set()
        self._came.set()

    @property
    def ended(self) -> bool:
        """Whether the command is to end."""
        return self._ended.is_set()

    def wait(self, seconds: float) -> None:
        """Waits until something happens, so many seconds at most."""
        self._came.wait(seconds)
        self._came.clear()

    def rest(self, seconds: float) -> bool:
        """Waits for so many seconds; returns at once, and True, if the command is to end."""
        return self._ended.wait(seconds)

    def pause(self, seconds: float) -> None:
        """Rests, for who is not told whether the command is to end."""
        self.rest(seconds)

    def _follow(self) -> None:
        try:
            for _ in watchfiles.watch(
                self._folder,
                watch_filter=None,
                stop_event=self._ended,
                rust_timeout=STOP_TIMEOUT_MS,
                recursive=False,
            ):
                self._came.set()
        except OSError as error:
            self._warn(f"no events of {self._folder} ({error}): it is looked at regularly all the same")
