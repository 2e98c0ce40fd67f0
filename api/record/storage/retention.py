"""Deletes pictures by retention class, age and free space. Rows outlive their pictures.

A picture first gets the state `expiring`; then its file is deleted under the write lock, so that a picture
that arrives during its deletion is stored again.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import write_transaction
from api.record import queries
from api.record.record_metrics import RecordMetrics
from api.record.review_queue import count_waiting, dequeue_pictures
from api.record.settings import RecordSettings
from api.record.storage.pictures import PictureStore
from api.record.storage.reserved_space import ReservedSpace
from api.record.storage.retention_class import RetentionClass

DELETE_BATCH = 100
"""Pictures deleted in one transaction: it blocks storing for a few milliseconds."""
INTERVAL_S = 30.0
"""Seconds between two runs."""
MEGABYTE, GIGABYTE = 10**6, 10**9
CLOCK_JUMP_S = 60.0
"""Difference between wall clock and monotonic clock that counts as a jump."""
EXPIRY_SUSPENSION_S = 86_400.0
"""Seconds without expiry by age after a jump, so that an operator can correct the clock."""
MAX_IDLE_S = 14 * 86_400.0
"""Seconds since the last inspection beyond which a start assumes that the clock jumped."""
DELETABLE_FOR_SPACE = tuple(kind for kind in RetentionClass if kind < RetentionClass.REVIEWED)
FULL = "The disk of the photographs is full, and no photograph is left that may be deleted"
OVER_BUDGET = "The photographs exceed record_budget_gb, and none is left that may be deleted"
FILLED_BY_OTHERS = (
    "Less than {:.0%} of the disk is free (record_free_share), and deleting all photographs that may be "
    "deleted would not suffice: other files or reviewed photographs fill the disk. No photograph is deleted "
    "for that until the disk is full"
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetentionRules:
    """How long pictures are kept.

    Attributes:
        days: Maximum age by retention class; a class without an entry does not expire by age.
        max_bytes: Maximum size of all pictures; None = unlimited.
        free_share: Share of the disk that should stay free, 0…1; pictures are deleted only if that suffices.
        reserved_bytes: Size of the reserved space; on a disk with less free, pictures are always deleted.
    """

    days: Mapping[RetentionClass, float]
    max_bytes: int | None
    free_share: float
    reserved_bytes: int = 0

    @classmethod
    def from_settings(cls, settings: RecordSettings) -> "RetentionRules":
        """Reads the rules from the settings."""
        days = {
            RetentionClass.GOOD: settings.record_good_days,
            RetentionClass.GOOD_SAMPLE: settings.record_sample_days,
            RetentionClass.TO_REVIEW: settings.record_sample_days,
            RetentionClass.DEFECT: settings.record_defect_days,
            RetentionClass.REVIEWED: settings.record_reviewed_days,
        }
        budget = settings.record_budget_gb
        return cls(
            {kind: limit for kind, limit in days.items() if limit is not None},
            None if budget is None else int(budget * GIGABYTE),
            settings.record_free_share,
            int(settings.record_reserved_mb * MEGABYTE),
        )


class ClockMonitor:
    """Detects jumps of the wall clock.

    Args:
        newest: Wall time of the last inspection, seconds; None if there is none.
        wall: Returns seconds of the wall clock.
        monotonic: Returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        newest: float | None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset = wall() - monotonic()
        self._suspended_until = float("-inf")
        if newest is not None and not -CLOCK_JUMP_S <= (ahead := wall() - newest) <= MAX_IDLE_S:
            self.suspend_expiry(ahead)

    def is_trusted(self) -> bool:
        """Returns whether the clock has not jumped in the last day."""
        offset = self._wall() - self._monotonic()
        if abs(offset - self._offset) > CLOCK_JUMP_S:
            self.suspend_expiry(offset - self._offset)
        self._offset = offset
        return self._monotonic() >= self._suspended_until

    def suspend_expiry(self, jump_s: float) -> None:
        """Suspends expiry by age for a day."""
        logger.error("The clock jumped by %.0f s: no picture expires by age for a day", jump_s)
        self._suspended_until = self._monotonic() + EXPIRY_SUSPENSION_S


@dataclass(frozen=True)
class Shortage:
    """What is missing until space suffices.

    Attributes:
        missing: Bytes to delete.
        problem: What to log if deleting does not help.
        is_urgent: Whether pictures are deleted even if that does not suffice.
    """

    missing: int
    problem: str
    is_urgent: bool


class Retention:
    """Applies the retention rules in a thread of its own, and then calls `after_run`; new `rules` count at
    its next run.

    Attributes:
        rules: The rules.
        problem: Why space is short although the rules were applied; None if it is not.
    """

    def __init__(
        self,
        engine: Engine,
        pictures: PictureStore,
        rules: RetentionRules,
        clock: ClockMonitor,
        reserved_space: ReservedSpace,
        metrics: RecordMetrics,
        after_run: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine, self._pictures, self.rules, self._clock = engine, pictures, rules, clock
        self._reserved_space, self._metrics, self._after_run = reserved_space, metrics, after_run
        self.problem: str | None = None
        self._due, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._run_regularly, name="retention", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def run_now(self) -> None:
        """Runs immediately, because the disk is full."""
        self._reserved_space.release()
        self._due.set()

    def close(self) -> None:
        """Ends after the current transaction."""
        self._ended = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run_regularly(self) -> None:
        while not self._ended:
            try:
                self.run()
                self._after_run()
            except Exception as error:  # the next run tries again
                expected = isinstance(error, (SQLAlchemyError, OSError))
                logger.error("The retention rules were not applied: %s", error, exc_info=not expected)
            self._due.wait(INTERVAL_S)
            self._due.clear()

    def run(self) -> None:
        """Deletes all pictures that are due.

        Raises:
            SQLAlchemyError, OSError: If the database or the pictures cannot be changed.
        """
        self._delete_expiring()
        now = datetime.now(UTC)  # before the clock is checked: it may jump afterwards
        trusted = self._clock.is_trusted()
        for kind, days in self.rules.days.items():
            before = now - timedelta(days=days)
            while trusted and not self._ended and self._expire("age", [kind], before):
                pass
        self._report(self._free_space())
        space = self._pictures.space()
        if space is not None:
            self._reserved_space.reserve(space.free)
        with self._engine.connect() as connection:
            stored = queries.stored_bytes(connection)
            self._metrics.waiting.set(count_waiting(connection))
        free = None if space is None else space.free
        is_short = self.problem is not None
        self._metrics.set_space(stored, free, short=is_short, is_expiry_suspended=not trusted)

    def _report(self, problem: str | None) -> None:
        """Logs a problem of space once, until it ends or another one begins."""
        if problem is not None and problem != self.problem:
            logger.error("%s", problem)
        self.problem = problem

    def _free_space(self) -> str | None:
        """Deletes the least valuable pictures until space suffices; returns the problem if it does not."""
        while not self._ended and (shortage := self._find_shortage()) is not None:
            if not shortage.is_urgent and not self._can_delete(shortage.missing):
                return shortage.problem
            if not self._expire("space", DELETABLE_FOR_SPACE, None):
                return shortage.problem
        return None

    def _find_shortage(self) -> Shortage | None:
        space, rules = self._pictures.space(), self.rules
        if space is not None and (missing := self._reserved_space.missing_bytes(space.free)) > 0:
            return Shortage(missing, FULL, is_urgent=True)
        if rules.max_bytes is not None:
            with self._engine.connect() as connection:
                missing = queries.stored_bytes(connection) - rules.max_bytes
            if missing > 0:
                return Shortage(missing, OVER_BUDGET, is_urgent=True)
        if space is not None and (missing := math.ceil(rules.free_share * space.total) - space.free) > 0:
            return Shortage(missing, FILLED_BY_OTHERS.format(rules.free_share), is_urgent=False)
        return None

    def _can_delete(self, size: int) -> bool:
        """Returns whether the pictures that may be deleted for space have so many bytes."""
        with self._engine.connect() as connection:
            return queries.are_larger_than(connection, DELETABLE_FOR_SPACE, size)

    def _expire(self, cause: str, classes: Sequence[RetentionClass], before: datetime | None) -> bool:
        """Deletes a batch of these pictures; returns whether there were any."""
        with write_transaction(self._engine) as connection:
            chosen = queries.least_valuable_pictures(connection, classes, before, DELETE_BATCH)
            if not chosen:
                return False
            queries.begin_deletion(connection, chosen, "kept", "expiring", None)
            dequeue_pictures(connection, chosen)
            facts = {"cause": cause, "count": len(chosen)}
            queries.add_audit_entry(connection, "retention", "delete pictures", after=facts)
        self._metrics.deleted.labels(cause).inc(len(chosen))
        self._delete_expiring()
        return True

    def delete_picture(self, sha256: bytes, record_id: int, who: str) -> None:
        """Deletes one picture on request, if it exists. Raises as `run`."""
        with write_transaction(self._engine) as connection:
            state = queries.picture_state(connection, sha256)
            if state == "lost":  # its bytes are already subtracted, but its file may have come back
                self._pictures.delete(sha256)
                queries.begin_deletion(connection, [sha256], "lost", "expired", who)
                queries.delete_heat_maps(connection, [sha256])
            elif state == "kept":
                queries.begin_deletion(connection, [sha256], "kept", "expiring", who)
                dequeue_pictures(connection, [sha256])
            if state in ("lost", "kept"):
                before, after = ({"sha256": sha256.hex(), "state": name} for name in (state, "expired"))
                add_entry = partial(queries.add_audit_entry, connection, who, "delete a picture")
                add_entry(record_id=record_id, before=before, after=after)
                self._metrics.deleted.labels("person").inc()
        self._delete_expiring()

    def _delete_expiring(self) -> None:
        while True:
            with write_transaction(self._engine) as connection:
                chosen = queries.expiring_pictures(connection, DELETE_BATCH)
                if not chosen:
                    return
                self._pictures.delete(*chosen)
                queries.subtract_stored_bytes(connection, chosen)
                queries.change_picture_states(connection, chosen, "expiring", "expired")
                queries.delete_heat_maps(connection, chosen)
            if len(chosen) < DELETE_BATCH:
                return
