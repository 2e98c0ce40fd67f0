"""Services whose clock jumps while they run, by Debian's libfaketime.

python -m tests.api.record.jumping_clock FLAGS

runs the server of `recording_server`, which applies the retention rules all the time. Only the wall clock
jumps. `time.sleep` fails under libfaketime 0.9.10, which rejects how Python calls `clock_nanosleep`; the
service does not use it.
"""

from pathlib import Path
from unittest import mock

import pytest

from api.record.storage import retention
from tests.api.conftest import StubPredictor
from tests.api.record.recording_clients import RecordingService
from tests.api.stubbed_server import serve_stub

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
needs_library = pytest.mark.skipif(LIBRARY is None, reason="no libfaketime: Debian's package has this name")


class JumpingService(RecordingService):
    """A recording service; `file` has the difference between its clock and the real one."""

    module = "tests.api.record.jumping_clock"

    def __init__(self, file: Path, folder: Path, database: str, *flags: str) -> None:
        self._file = file
        self.jump(0)
        variables = {"LD_PRELOAD": str(LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(file)}
        once = {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        super().__init__(folder, database, *flags, **variables, **once)

    def jump(self, seconds: int) -> None:
        """Sets the clock to so many seconds after the real one."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.replace(self._file)


if __name__ == "__main__":
    with mock.patch.object(retention, "INTERVAL_S", 0.1):
        serve_stub(StubPredictor())
