"""How long pictures are kept: by what they are worth, their age, and the space that there is.

Rows outlive their pictures. A picture that is to go is said to be `expiring` first, and its file is deleted
under the lock of the writer: one that comes again meanwhile is stored again.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from sqlalchemy import Engine

from api.records import queries
from api.records.database import writing
from api.records.pictures import PictureStore

BITE = 200
"""Pictures that are deleted in one transaction: a few milliseconds in which no inspection is stored."""
CLOCK_JUMP_S = 60.0
"""By how much the clock may part from the time that passes before no age is believed."""
DISTRUST_S = 86_400.0
"""Seconds for which it is not, after a jump: who put the clock wrong has time to put it right."""
logger = logging.getLogger(__name__)


class Worth(IntEnum):
    """What a picture is kept for; what is worth least is deleted first."""

    GOOD = 0
    GOOD_SAMPLE = 1
    TO_REVIEW = 2
    DEFECT = 3
    REVIEWED = 4


@dataclass(frozen=True)
class RetentionRules:
    """What is kept.

    Attributes:
        days: By worth, after how many days a picture goes; one that is missing stays.
        most_bytes: Of all pictures together; None = as the disk has room.
        free_bytes: What stays free of the disk.
    """

    days: Mapping[Worth, float]
    most_bytes: int | None
    free_bytes: int


class ClockWatch:
    """Notices a clock that jumps.

    Args:
        wall: Seconds of the clock.
        passed: Seconds that never go back.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._passed = wall, passed
        self._apart = wall() - passed()
        self._distrusted_until = -1.0

    def is_trusted(self) -> bool:
        """Returns whether the clock has gone as time has, for a day."""
        apart = self._wall() - self._passed()
        if abs(apart - self._apart) > CLOCK_JUMP_S:
            logger.error(
                "The clock jumped by %.0f s: no picture is deleted for its age for a day", apart - self._apart
            )
            self._distrusted_until = self._passed() + DISTRUST_S
        self._apart = apart
        return self._passed() >= self._distrusted_until


class Retention:
    """Deletes the pictures that the rules give up.

    Args:
        engine: Of the record's database.
        pictures: Where they lie.
        rules: What is kept.
        clock: Tells whether ages can be believed.
    """

    def __init__(
        self, engine: Engine, pictures: PictureStore, rules: RetentionRules, clock: ClockWatch
    ) -> None:
        self._engine, self._pictures, self._rules, self._clock = engine, pictures, rules, clock

    def run(self) -> int:
        """Deletes what is due; returns how many pictures.

        Raises:
            SQLAlchemyError: If the database cannot be written.
            OSError: If the pictures cannot.
        """
        deleted = self._delete_expiring()
        if self._clock.is_trusted():
            now = datetime.now(UTC)
            for worth, days in self._rules.days.items():
                deleted += self._expire_all(worth=worth, before=now - timedelta(days=days))
        while self._is_short():
            bite = self._expire_bite(worth=None, before=None)
            deleted += bite
            if not bite:
                logger.error("The record is short of space, and has no picture left that it could delete")
                break
        return deleted

    def _is_short(self) -> bool:
        free = self._pictures.free_bytes()
        if free is not None and free < self._rules.free_bytes:
            return True
        if self._rules.most_bytes is None:
            return False
        with self._engine.connect() as connection:
            return queries.stored_bytes(connection) > self._rules.most_bytes

    def _expire_all(self, worth: Worth, before: datetime) -> int:
        deleted = 0
        while bite := self._expire_bite(worth, before):
            deleted += bite
        return deleted

    def _expire_bite(self, worth: Worth | None, before: datetime | None) -> int:
        with writing(self._engine) as connection:
            chosen = queries.least_worthy(connection, worth, before, BITE)
            queries.change_states(connection, chosen, "kept", "expiring")
        return self._delete_expiring() if chosen else 0

    def _delete_expiring(self) -> int:
        deleted = 0
        while True:
            with writing(self._engine) as connection:
                chosen: Sequence[bytes] = queries.expiring(connection, BITE)
                for sha256 in chosen:
                    self._pictures.delete(sha256)
                queries.forget_bytes(connection, chosen)
                queries.change_states(connection, chosen, "expiring", "expired")
            deleted += len(chosen)
            if len(chosen) < BITE:
                return deleted
