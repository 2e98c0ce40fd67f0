"""How long pictures are kept: by what they are worth, their age, and the space that there is.

Rows outlive their pictures. A picture that is to go is said to be `expiring_pictures` first, and its file is deleted
under the lock of the writer: one that comes again meanwhile is stored again.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api.records import queries
from api.records.database import writing
from api.records.record_metrics import RecordMetrics
from api.records.review.review_queue import count_waiting, dequeue_pictures
from api.records.storage.pictures import PictureStore
from api.records.storage.reserved_space import ReservedSpace
from api.records.storage.retention_class import RetentionClass
from api.settings import Settings

DELETE_BATCH = 100
"""Pictures that are deleted in one transaction: a few milliseconds in which no inspection is stored."""
PAUSE_S = 30.0
"""Seconds between two looks at what is due."""
GIGABYTE = 10**9
CLOCK_JUMP_S = 60.0
"""By how much the clock may part from the time that passes before no age is believed."""
EXPIRY_SUSPENSION_S = 86_400.0
"""Seconds for which it is not, after a jump: who put the clock wrong has time to put it right."""
REST_S = 14 * 86_400.0
"""Seconds for which a line may rest before its clock looks as if it had jumped meanwhile."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetentionRules:
    """What is kept.

    Attributes:
        days: By worth, after how many days a picture goes; one that is missing stays.
        most_bytes: Of all pictures together; None = as the disk has room.
        free_share: Share of the disk that stays free, 0…1.
    """

    days: Mapping[RetentionClass, float]
    max_bytes: int | None
    free_share: float

    @classmethod
    def from_settings(cls, settings: Settings) -> "RetentionRules":
        """Reads them from what the operator set."""
        days = {
            RetentionClass.GOOD: settings.record_good_days,
            RetentionClass.GOOD_SAMPLE: settings.record_sample_days,
            RetentionClass.TO_REVIEW: settings.record_sample_days,
            RetentionClass.DEFECT: settings.record_defect_days,
            RetentionClass.REVIEWED: settings.record_reviewed_days,
        }
        budget = settings.record_budget_gb
        return cls(
            {worth: limit for worth, limit in days.items() if limit is not None},
            None if budget is None else int(budget * GIGABYTE),
            settings.record_free_share,
        )


class ClockMonitor:
    """Notices a clock that jumps.

    Args:
        newest: The latest time that is known from before, seconds of the clock; None if none is.
        wall: Seconds of the clock.
        passed: Seconds that never go back.
    """

    def __init__(
        self,
        newest: float | None,
        wall: Callable[[], float] = time.time,
        passed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._passed = wall, passed
        self._apart = wall() - passed()
        self._distrusted_until = float("-inf")
        if newest is not None and not -CLOCK_JUMP_S <= (ahead := wall() - newest) <= REST_S:
            self.suspend_expiry(ahead)

    def is_trusted(self) -> bool:
        """Returns whether the clock has gone as time has, for a day or since the start."""
        apart = self._wall() - self._passed()
        if abs(apart - self._apart) > CLOCK_JUMP_S:
            self.suspend_expiry(apart - self._apart)
        self._apart = apart
        return self._passed() >= self._distrusted_until

    def suspend_expiry(self, jump_s: float) -> None:
        logger.error("The clock jumped by %.0f s: no picture is deleted for its age for a day", jump_s)
        self._distrusted_until = self._passed() + EXPIRY_SUSPENSION_S


class Retention:
    """Deletes the pictures that the rules give up, in a thread of its own.

    Args:
        engine: Of the record's database.
        pictures: Where they lie.
        rules: What is kept.
        clock: Tells whether ages can be believed.
        ballast: Is dropped where a full disk is in the way.
        metrics: Told what is deleted, and how much space there is.
    """

    def __init__(
        self,
        engine: Engine,
        pictures: PictureStore,
        rules: RetentionRules,
        clock: ClockMonitor,
        reserved_space: ReservedSpace,
        metrics: RecordMetrics,
    ) -> None:
        self._engine, self._pictures, self._rules, self._clock = engine, pictures, rules, clock
        self._ballast, self._metrics = reserved_space, metrics
        self._due, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._run_regularly, name="retention", daemon=True)

    def start(self) -> None:
        """Begins to look regularly at what is due."""
        self._thread.start()

    def run_now(self) -> None:
        """Looks at once, because the disk is full."""
        self._ballast.drop()
        self._due.set()

    def close(self) -> None:
        """Ends after the transaction in hand."""
        self._ended = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run_regularly(self) -> None:
        while not self._ended:
            try:
                self.run()
            except Exception as error:  # whatever it is, they are applied again
                expected = isinstance(error, (SQLAlchemyError, OSError))
                logger.error("The rules of retention were not applied: %s", error, exc_info=not expected)
            self._due.wait(PAUSE_S)
            self._due.clear()

    def run(self) -> None:
        """Deletes what is due.

        Raises:
            SQLAlchemyError: If the database cannot be written.
            OSError: If the pictures cannot.
        """
        self._delete_expiring()
        trusted = self._clock.is_trusted()
        if trusted:
            now = datetime.now(UTC)
            for worth, days in self._rules.days.items():
                self._expire_old(worth, now - timedelta(days=days))
        short = self._make_room()
        space = self._pictures.space()
        if space is not None and not short:
            self._ballast.take(space.free)
        with self._engine.connect() as connection:
            stored = queries.stored_bytes(connection)
            self._metrics.set_waiting(count_waiting(connection))
        free = None if space is None else space.free
        self._metrics.set_space(stored, free, short=short, distrusted=not trusted)

    def _expire_old(self, worth: RetentionClass, before: datetime) -> None:
        while not self._ended and self._expire("age", [worth], before):
            pass

    def _make_room(self) -> bool:
        """Deletes what is worth least until there is room; returns whether there is none all the same."""
        while not self._ended and self._is_short():
            if not self._expire(
                "space", [worth for worth in RetentionClass if worth < RetentionClass.REVIEWED], None
            ):
                logger.error("The record is short of space, and has no picture left that it may delete")
                return True
        return False

    def _is_short(self) -> bool:
        space = self._pictures.space()
        if space is not None and space.free < self._rules.free_share * space.total:
            return True
        if self._rules.max_bytes is None:
            return False
        with self._engine.connect() as connection:
            return queries.stored_bytes(connection) > self._rules.max_bytes

    def _expire(self, cause: str, worths: Sequence[RetentionClass], before: datetime | None) -> bool:
        """Deletes a few of these pictures; returns whether there were any."""
        with writing(self._engine) as connection:
            chosen = queries.least_valuable_pictures(connection, worths, before, DELETE_BATCH)
            if not chosen:
                return False
            queries.change_picture_states(connection, chosen, "kept", "expiring")
            dequeue_pictures(connection, chosen)
            queries.add_audit_entry(
                connection, "retention", "delete pictures", after={"cause": cause, "count": len(chosen)}
            )
        self._metrics.count_deleted(cause, len(chosen))
        self._delete_expiring()
        return True

    def delete_picture(self, sha256: bytes, record_id: int, who: str) -> None:
        """Deletes one picture because a person says so; one that is not there is no error.

        Raises:
            SQLAlchemyError: If the database cannot be written.
            OSError: If the pictures cannot.
        """
        with writing(self._engine) as connection:
            state = queries.picture_state(connection, sha256)
            if state == "lost":  # its bytes are forgotten already; its file may have come back
                self._pictures.delete(sha256)
                queries.change_picture_states(connection, [sha256], "lost", "expired")
            elif state == "kept":
                queries.change_picture_states(connection, [sha256], "kept", "expiring")
                dequeue_pictures(connection, [sha256])
            if state in ("lost", "kept"):
                told = {"sha256": sha256.hex()}
                before, after = {**told, "state": state}, {**told, "state": "expired"}
                what = "delete a picture"
                queries.add_audit_entry(
                    connection, who, what, record_id=record_id, before=before, after=after
                )
                self._metrics.count_deleted("person", 1)
        self._delete_expiring()

    def _delete_expiring(self) -> None:
        while True:
            with writing(self._engine) as connection:
                chosen = queries.expiring_pictures(connection, DELETE_BATCH)
                if not chosen:
                    return
                self._pictures.delete(*chosen)
                queries.subtract_stored_bytes(connection, chosen)
                queries.change_picture_states(connection, chosen, "expiring", "expired")
            if len(chosen) < DELETE_BATCH:
                return
