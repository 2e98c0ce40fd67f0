"""The line as the record has it: of each station the last inspection, and what today had of each kind."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from api.records.events import verdict_of
from api.records.queries import Filters, id_range, start_of_hour
from api.records.tables import hours, inspections, misses

RECENT = timedelta(days=7)
"""Stations that have inspected nothing for longer are not shown after a start."""
MAX_STATIONS = 200
"""Clients name stations: without an end to it, one could fill the memory."""
PAGE = 1000
Count = tuple[str | None, str, int]
"""Station, kind, how many; stations that are too many have none."""
COLUMNS = tuple(
    inspections.c[name] for name in ("id", "station", "label", "score", "part_id", "inspected_at")
)


@dataclass
class StationState:
    """What is known of a station, or of all.

    Attributes:
        last: The latest inspection, columns of `tables.inspections`; None if there is none.
        counts: Of today: `good`, `defect`, `review` and `missed`, what came and was not inspected.
    """

    last: RowMapping | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def inspected(self) -> int:
        """How many had a verdict today."""
        return self.counts.total() - self.counts["missed"]


class LineState:
    """Follows the record.

    Args:
        zone: Whose midnights begin the days.
        now: The time.
    """

    def __init__(self, zone: tzinfo, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._zone, self._now = zone, now
        self._last: dict[str, RowMapping] = {}
        self._newest: RowMapping | None = None
        self._seen: int | None = None
        self._misses: Counter[str | None] = Counter()
        self._misses_seen = 0
        self._midnight: datetime | None = None

    def read(self, connection: Connection) -> Mapping[str | None, StationState]:
        """Returns the state of each station, and under None of all together."""
        midnight = midnight_of(self._now(), self._zone)
        self._follow_inspections(connection)
        self._follow_misses(connection, midnight)
        states: dict[str | None, StationState] = {None: StationState(self._newest)}
        states |= {station: StationState(last) for station, last in self._last.items()}
        for station, kind, count in self._count(connection, midnight):
            states[None].counts[kind] += count
            if station is None:
                continue
            if station in states:
                states[station].counts[kind] += count
            elif len(states) <= MAX_STATIONS:
                states[station] = StationState(None, Counter({kind: count}))
        return states

    # === The latest ===

    def _follow_inspections(self, connection: Connection) -> None:
        if self._seen is None:
            self._seen = connection.execute(select(func.max(inspections.c.id))).scalar() or 0
            self._look_back(connection)
        while True:
            newer = (
                select(*COLUMNS).where(inspections.c.id > self._seen).order_by(inspections.c.id).limit(PAGE)
            )
            rows = connection.execute(newer).mappings().all()
            for row in rows:
                self._note(row)
            if len(rows) < PAGE:
                return

    def _look_back(self, connection: Connection) -> None:
        recent = select(hours.c.station).distinct().where(hours.c.hour >= start_of_hour(self._now() - RECENT))
        for station in connection.execute(recent).scalars().all():
            of = select(*COLUMNS).where(inspections.c.station == station)
            row = connection.execute(of.order_by(inspections.c.id.desc()).limit(1)).mappings().first()
            if row is not None:
                self._note(row)

    def _note(self, row: RowMapping) -> None:
        assert self._seen is not None
        self._seen = max(self._seen, row["id"])
        if self._newest is None or row["id"] > self._newest["id"]:
            self._newest = row
        if row["station"] in self._last or len(self._last) < MAX_STATIONS:
            self._last[row["station"]] = row

    # === Counts ===

    def _count(self, connection: Connection, midnight: datetime) -> list[Count]:
        """Counts today's verdicts and misses, by station."""
        found: list[Count] = [(station, "missed", count) for station, count in self._misses.items()]
        full = start_of_hour(midnight)
        if full < midnight:  # zones whose midnight is at half past an hour of UTC
            full += timedelta(hours=1)
            ids = id_range(connection, Filters(since=midnight, until=full))
            begun = select(inspections.c.station, inspections.c.label, func.count())
            begun = begun.where(inspections.c.id.between(*ids), inspections.c.inspected_at >= midnight)
            begun = begun.where(inspections.c.inspected_at < full)
            found += _verdicts(connection.execute(begun.group_by(inspections.c.station, inspections.c.label)))
        today = select(hours.c.station, hours.c.label, func.sum(hours.c.count)).where(hours.c.hour >= full)
        return found + _verdicts(connection.execute(today.group_by(hours.c.station, hours.c.label)))

    def _follow_misses(self, connection: Connection, midnight: datetime) -> None:
        if midnight != self._midnight:
            self._midnight, self._misses, self._misses_seen = midnight, Counter(), 0
        newest = connection.execute(select(func.max(misses.c.id))).scalar() or 0
        if newest == self._misses_seen:
            return
        ids = misses.c.id.between(self._misses_seen + 1, newest)
        counted = select(misses.c.station, func.sum(misses.c.count))
        counted = counted.where(ids, misses.c.missed_at >= midnight).group_by(misses.c.station)
        for station, count in connection.execute(counted):
            is_shown = station in self._misses or len(self._misses) < MAX_STATIONS
            self._misses[station if is_shown else None] += int(count)
        self._misses_seen = newest


def _verdicts(rows: Iterable[Any]) -> list[Count]:
    return [(station, verdict_of(label), int(count)) for station, label, count in rows]


def midnight_of(now: datetime, zone: tzinfo) -> datetime:
    """Returns when the day of `now` began in a zone."""
    return datetime.combine(now.astimezone(zone).date(), time(), zone)
