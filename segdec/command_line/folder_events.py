"""Waits for changes in a folder, for a time, or for the command to stop."""

import threading
from collections.abc import Callable
from pathlib import Path

from segdec.command_line.drop_folder import INSPECTING, RESULTS
from segdec.errors import MissingExtraError

try:
    import watchfiles
except ImportError as error:
    raise MissingExtraError("watchfiles", "watch") from error


class FolderEvents:
    """Wakes the command. `stop` may be called from any thread or signal handler.

    It watches the folder with its subfolders but without the results. `warn` is called if the system has no
    events for it: a network folder, or too many watches.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._results = {folder.absolute() / name for name in (INSPECTING, *RESULTS)}
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="events", daemon=True)

    def start(self) -> None:
        """Starts watching."""
        self._thread.start()

    def stop(self) -> None:
        """Ends all current and later waits."""
        self._stopped.set()
        self._changed.set()

    @property
    def stopped(self) -> bool:
        """Whether the command is stopping."""
        return self._stopped.is_set()

    def wait_for_change(self, seconds: float) -> None:
        """Waits until the folder changes, at most `seconds`."""
        self._changed.wait(seconds)
        self._changed.clear()

    def wait(self, seconds: float) -> bool:
        """Waits for `seconds`; returns True early if the command is stopping."""
        return self._stopped.wait(seconds)

    def _follow(self) -> None:
        try:
            changes = watchfiles.watch(
                self._folder, watch_filter=self._is_input, stop_event=self._stopped, rust_timeout=500
            )
            for _ in changes:
                self._changed.set()
        except OSError as error:
            self._warn(f"no change events for {self._folder} ({error}); it is scanned at regular intervals")

    def _is_input(self, _: watchfiles.Change, path: str) -> bool:
        """Whether a change is not one of the command itself."""
        return self._results.isdisjoint((Path(path), *Path(path).parents))
