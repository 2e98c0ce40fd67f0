"""Sends a photograph until the service has inspected and recorded it exactly once, despite outages."""

import errno
import hashlib
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from segdec.command_line.drop_folder import Claim
from segdec.command_line.incoming_files import FileSignature, file_signature
from segdec.errors import ServiceError
from segdec.runtime.identifiers import FORBIDDEN
from segdec.schemas import InspectAnswer

if TYPE_CHECKING:
    from segdec.client import Client

REJECTED_STATUSES = frozenset({413, 415, 422})
"""The service cannot use this photograph."""
BUSY_STATUSES = frozenset({429, 503})
REQUEST_ERROR_STATUSES = frozenset({400, 401, 403, 404, 405})
"""The request is wrong, so the service would reject every photograph."""
FILE_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
"""Errors of one file. Others belong to its disk or network and may pass."""
REPLICA_LOST = "replica_lost"
MAX_FAULTS = 5
"""Failures of a ready service on one photograph, after which the photograph counts as the cause."""
MAX_CHANGES = 5
"""How often a photograph that keeps changing is read again."""
FIRST_WAIT_S = 1.0
MAX_WAIT_S = 30.0
MAX_NAME_CHARACTERS = 128
"""Longest name of a station or a part."""
MAX_FILE_BYTES = 2**28


class StoppedError(Exception):
    """The command is stopping; the photograph stays where it is."""


class InspectionFailedError(Exception):
    """The photograph cannot be inspected; the arguments are those of `ServiceError`."""

    def __init__(
        self, detail: str, code: str, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(detail)
        self.detail, self.code, self.status, self.request_id = detail, code, status, request_id

    def as_json(self, name: str) -> str:
        """Returns the content of the error file for the photograph `name`."""
        error = {"photograph": name, "code": self.code, "detail": self.detail, "status": self.status}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return json.dumps({**error, "request_id": self.request_id, "failed_at": now}, indent=1) + "\n"


@dataclass(frozen=True)
class RecordedInspector:
    """Inspects one photograph after another with a service and waits until each is recorded.

    Attributes:
        client: Client of the service.
        station: Where the photographs are taken.
        part_pattern: Finds the part id in a file name, as its group `part`; None: no part id is sent.
        stable_after_s: Seconds before a photograph that has changed is read again.
        accept_unrecorded: Whether to accept an answer without a record.
        wait: Waits for a number of seconds; returns True if the command is stopping.
        report_wait: Shows what the command waits for; None: it no longer waits.
        random: Returns random numbers from 0 to 1.
    """

    client: "Client"
    station: str
    part_pattern: re.Pattern[str] | None
    stable_after_s: float
    accept_unrecorded: bool
    wait: Callable[[float], bool]
    report_wait: Callable[[str | None], None]
    random: Callable[[], float] = random.random

    def inspect(self, claim: Claim) -> InspectAnswer:
        """Returns the answer, once the service has recorded it.

        Raises:
            InspectionFailedError: If the service rejects this photograph or fails on it alone.
            StoppedError: If the command stops first.
            ServiceError: If the service would reject every photograph.
            OSError: If the photograph cannot be read.
        """
        part = self._part(claim.path.name)
        for _ in range(MAX_CHANGES):
            data, signature = _read(claim.path)
            try:
                if signature is not None:
                    return self._ask(data, part, _idempotency_key(claim, data))
            except InspectionFailedError:
                if _read(claim.path, 0)[1] == signature:
                    raise
            self._wait(self.stable_after_s)  # the camera is still writing it
        raise InspectionFailedError(f"It changed during each of {MAX_CHANGES} reads.", "still_changing")

    def _part(self, name: str) -> str | None:
        if self.part_pattern is None:
            return None
        match = self.part_pattern.search(name)
        part = match and match["part"]
        if part is None or not _is_valid_name(part):
            pattern = self.part_pattern.pattern
            raise InspectionFailedError(
                f"Its name has no part id. Expected a name that matches '{pattern}'.", "no_part"
            )
        return part

    def _ask(self, data: bytes, part: str | None, key: str) -> InspectAnswer:
        waits, faults = self._wait_times(), 0
        while True:
            try:
                answer = self.client.inspect(
                    data, station=self.station, part_id=part, idempotency_key=key, mask="none"
                )
            except ServiceError as error:
                if error.status in REQUEST_ERROR_STATUSES:
                    raise
                faults += error.status not in BUSY_STATUSES
                if error.status in REJECTED_STATUSES or error.code == REPLICA_LOST or faults == MAX_FAULTS:
                    facts = (error.detail, error.code, error.status, error.request_id)
                    raise InspectionFailedError(*facts) from error
                self._wait_until_ready(error.detail, waits)
                continue
            if answer.record_id is not None or self.accept_unrecorded:
                self.report_wait(None)
                return answer
            why = answer.warnings[-1] if answer.warnings else "This inspection is not recorded."
            self._wait_until_ready(f"{why} To accept that, start with --unrecorded", waits)

    def _wait_until_ready(self, why: str, waits: Iterator[float]) -> None:
        self.report_wait(why)
        ready = False
        while not ready:
            self._wait(next(waits))
            with suppress(ServiceError):  # a proxy answered instead
                ready = self.client.ready()

    def _wait_times(self) -> Iterator[float]:
        """Yields seconds that double, reduced at random by up to half: many folders may use one service."""
        longest_s = FIRST_WAIT_S
        while True:
            yield longest_s * (1 - self.random() / 2)
            longest_s = min(2 * longest_s, MAX_WAIT_S)

    def _wait(self, seconds: float) -> None:
        if self.wait(seconds):
            raise StoppedError


def _is_valid_name(text: str) -> bool:
    """Returns whether `text` can name a station or part."""
    return 0 < len(text) <= MAX_NAME_CHARACTERS and not FORBIDDEN.search(text)


def _read(path: Path, max_bytes: int = MAX_FILE_BYTES) -> tuple[bytes, FileSignature | None]:
    """Reads a file and its signature, which is None if the file changed meanwhile."""
    try:
        with path.open("rb") as file:
            before = file_signature(
                os.fstat(file.fileno())
            )  # network file systems may cache old ones of paths
            if before.size > MAX_FILE_BYTES:
                raise InspectionFailedError(
                    f"It has {before.size} bytes. Expected at most {MAX_FILE_BYTES}.", "too_large"
                )
            data = file.read(max_bytes)
            after = file_signature(os.fstat(file.fileno()))
    except OSError as error:
        if error.errno not in FILE_ERRNOS:
            raise
        raise InspectionFailedError(f"It cannot be read: {error.strerror}.", "unreadable_file") from error
    return data, after if after == before else None


def _idempotency_key(claim: Claim, data: bytes) -> str:
    """Identifies this file with this content: an equal file with another claim has another key."""
    identity = [claim.id, ascii(claim.path.name), hashlib.sha256(data).hexdigest()]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()
