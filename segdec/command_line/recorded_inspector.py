"""Gets a photograph inspected and recorded once, however long the service is away."""

import errno
import hashlib
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

from segdec.command_line.drop_folder import Claim
from segdec.command_line.incoming_files import FileSignature, file_signature
from segdec.errors import ServiceError
from segdec.schemas import InspectAnswer

if TYPE_CHECKING:
    from segdec.client.calls import InspectOptions

REFUSED = frozenset({413, 415, 422})
"""The photograph is none that the service takes."""
UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
"""Errors of one file. Others are those of its disk or network, and pass."""
BUSY = frozenset({429, 503})
WRONG = frozenset({400, 401, 403, 404, 405})
"""Asked wrongly: no photograph would be taken."""
LOST = "replica_lost"
MAX_FAULTS = 5
"""Failures on one photograph by a service that was ready, after which the photograph counts as the reason."""
MAX_CHANGES = 5
"""Times that a photograph is looked at again because it has changed."""
FIRST_WAIT_S = 1.0
MAX_WAIT_S = 30.0
MAX_NAME_CHARACTERS = 128
"""Longest name of a station or a part, letters."""
MAX_FILE_BYTES = 2**28
"""Largest file that is read at all."""


class InspectingClient(Protocol):
    """What is used of `segdec.client.Client`."""

    def inspect(self, image: bytes, **options: Unpack["InspectOptions"]) -> InspectAnswer:
        """Inspects one photograph."""

    def ready(self) -> bool:
        """Returns whether photographs are answered now."""


class StoppedError(Exception):
    """The command is to end: the photograph stays where it is."""


class InspectionFailedError(Exception):
    """The photograph cannot be inspected.

    Args:
        detail: Why.
        code: Stable word for programs.
        status: Of HTTP; None where nobody was asked.
        request_id: Under which the service's log has it.
    """

    def __init__(
        self, detail: str, code: str, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(detail)
        self.detail, self.code, self.status, self.request_id = detail, code, status, request_id

    def as_json(self, name: str) -> str:
        """Says it in the file beside the photograph `name`."""
        told = {"photograph": name, "code": self.code, "detail": self.detail, "status": self.status}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return json.dumps({**told, "request_id": self.request_id, "failed_at": now}, indent=1) + "\n"


@dataclass(frozen=True)
class RecordedInspector:
    """Asks about one photograph after the other.

    Attributes:
        client: Of the service.
        station: Where the photographs are taken.
        part_pattern: Finds the part in a name, as its group `part`; None: no part is named.
        settle_s: Seconds until a photograph that changes is looked at again.
        accept_unrecorded: Whether an answer is enough of which no record is kept.
        rest: Waits for so many seconds; returns True if the command is to end.
        say: Tells people what is waited for; None: it is over.
        draw: Random numbers from 0 to 1.
    """

    client: InspectingClient
    station: str
    part_pattern: re.Pattern[str] | None
    settle_s: float
    accept_unrecorded: bool
    rest: Callable[[float], bool]
    say: Callable[[str | None], None]
    draw: Callable[[], float] = random.random

    def inspect(self, claim: Claim) -> InspectAnswer:
        """Returns the answer, once the service has recorded it.

        Raises:
            InspectionFailedError: If the service refuses the photograph, or fails on it alone.
            StoppedError: If the command is to end before.
            ServiceError: If the service would refuse every photograph.
            OSError: If the photograph cannot be read.
        """
        part = self._part(claim.path.name)
        for _ in range(MAX_CHANGES):
            data, seen = _read(claim.path)
            try:
                if seen is not None:
                    return self._ask(data, part, _key(claim, data))
            except InspectionFailedError:
                if _read(claim.path, 0)[1] == seen:
                    raise
            self._wait(self.settle_s)  # whoever writes it had paused
        raise InspectionFailedError(
            f"It changed whenever it was looked at, {MAX_CHANGES} times.", "still_changing"
        )

    def _part(self, name: str) -> str | None:
        if self.part_pattern is None:
            return None
        found = self.part_pattern.search(name)
        part = found and found["part"]
        if part is None or not is_valid_name(part):
            pattern = self.part_pattern.pattern
            raise InspectionFailedError(
                f"Its name tells no part. Expected one that matches '{pattern}'.", "no_part"
            )
        return part

    def _ask(self, data: bytes, part: str | None, key: str) -> InspectAnswer:
        waits, faults = self._waits(), 0
        while True:
            try:
                answer = self.client.inspect(
                    data, station=self.station, part_id=part, idempotency_key=key, mask="none"
                )
            except ServiceError as error:
                if error.status in WRONG:
                    raise
                faults += error.status not in BUSY
                if error.status in REFUSED or error.code == LOST or faults == MAX_FAULTS:
                    raise InspectionFailedError(
                        error.detail, error.code, error.status, error.request_id
                    ) from error
                self._wait_until_ready(error.detail, waits)
                continue
            if answer.record_id is not None or self.accept_unrecorded:
                self.say(None)
                return answer
            why = answer.warnings[-1] if answer.warnings else "This inspection is not recorded."
            self._wait_until_ready(f"{why} Without a record, start with --unrecorded", waits)

    def _wait_until_ready(self, why: str, waits: Iterator[float]) -> None:
        self.say(why)
        self._wait(next(waits))
        while not self._is_ready():
            self._wait(next(waits))

    def _is_ready(self) -> bool:
        try:
            return self.client.ready()
        except ServiceError:  # a proxy answers in its place
            return False

    def _waits(self) -> Iterator[float]:
        """Yields seconds that double, less up to a half by chance: many folders may wait for one service."""
        longest_s = FIRST_WAIT_S
        while True:
            yield longest_s * (1 - self.draw() / 2)
            longest_s = min(2 * longest_s, MAX_WAIT_S)

    def _wait(self, seconds: float) -> None:
        if self.rest(seconds):
            raise StoppedError


def is_valid_name(text: str) -> bool:
    """Whether `text` can be the name of a part: 1 to 128 letters that print."""
    return 0 < len(text) <= MAX_NAME_CHARACTERS and text.isprintable()


def _read(path: Path, most_bytes: int = MAX_FILE_BYTES) -> tuple[bytes, FileSignature | None]:
    """Reads a file, and looks at it: open, since a network's file system may remember old looks else.

    Returns:
        What it holds, and the look; None in its place if it changed meanwhile.
    """
    try:
        with path.open("rb") as file:
            before = file_signature(os.fstat(file.fileno()))
            if before.size > MAX_FILE_BYTES:
                raise InspectionFailedError(
                    f"It has {before.size} bytes. Expected at most {MAX_FILE_BYTES}.", "too_large"
                )
            data = file.read(most_bytes)
            after = file_signature(os.fstat(file.fileno()))
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        raise InspectionFailedError(f"It cannot be read: {error.strerror}.", "unreadable_file") from error
    return data, after if after == before else None


def _key(claim: Claim, data: bytes) -> str:
    """The Idempotency-Key: of this file, of no other that is equal to it, and of what it holds now."""
    told = [claim.id, ascii(claim.path.name), hashlib.sha256(data).hexdigest()]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
