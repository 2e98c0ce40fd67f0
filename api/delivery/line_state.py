"""State of the line from the record: the last inspection of each station, and today's counts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, RowMapping, func, select

from api.line.line_queries import COLUMNS, by_hour, count_labels, is_inspected, last_inspection
from api.record.events import verdict_of
from api.record.filters import start_of_hour
from api.record.shifts import ShiftPlan
from api.record.tables import hours, inspections, uninspected

RECENT = timedelta(days=7)
"""After a start, stations without an inspection in this time are not shown; the newest come first."""
MAX_STATIONS = 200
"""Clients choose the names, so their number must be limited."""
PAGE_SIZE = 1000
Count = tuple[str | None, str, int]
"""Station (None: beyond the limit), kind, number."""


@dataclass
class StationState:
    """State of a station, or of all.

    Attributes:
        last: The last inspection, columns of `tables.inspections`; None if there is none.
        stop: The last inspection with the severity `stop`; None: none since the service was started.
        uninspected: The last photograph without a verdict, a row of `tables.uninspected`; None: none today.
        counts: Today's `good`, `defect`, `review`, and `uninspected`.
    """

    last: RowMapping | None = None
    stop: RowMapping | None = None
    uninspected: RowMapping | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def inspected(self) -> int:
        """Number of verdicts today."""
        return self.counts.total() - self.counts["uninspected"]


class LineStateReader:
    """Reads the state; later calls read mainly the rows that are new. Days begin at midnight in `zone`."""

    def __init__(self, zone: ZoneInfo, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.set_zone(zone)
        self._now = now
        self._last: dict[str, RowMapping] = {}
        self._newest: RowMapping | None = None
        self._stops: dict[str | None, RowMapping] = {}
        self._seen: int | None = None
        self._uninspected: Counter[str | None] = Counter()
        self._last_uninspected: dict[str | None, RowMapping] = {}
        self._uninspected_seen = 0
        self._midnight: datetime | None = None

    def set_zone(self, zone: ZoneInfo) -> None:
        """Begins days at midnight in another zone."""
        self._days = ShiftPlan((), zone)

    def read(self, connection: Connection) -> Mapping[str | None, StationState]:
        """Returns the state of each station; the key None has the state of all stations together."""
        midnight = self._days.day_at(self._now()).begin
        self._follow_inspections(connection)
        self._follow_uninspected(connection, midnight)
        states: dict[str | None, StationState] = {None: StationState(self._newest, self._stops.get(None))}
        states |= {name: StationState(last, self._stops.get(name)) for name, last in self._last.items()}
        for station, kind, count in self._count(connection, midnight):
            states[None].counts[kind] += count
            if station is None:
                continue
            if station in states:
                states[station].counts[kind] += count
            elif len(states) <= MAX_STATIONS:
                states[station] = StationState(counts=Counter({kind: count}))
        for station, row in self._last_uninspected.items():
            if station in states:
                states[station].uninspected = row
        return states

    # === Last inspections ===

    def _follow_inspections(self, connection: Connection) -> None:
        if self._seen is None:
            self._seen = connection.execute(select(func.max(inspections.c.id))).scalar() or 0
            self._load_recent(connection)
        while True:
            newer = select(*COLUMNS).where(inspections.c.id > self._seen, is_inspected)
            newer = newer.order_by(inspections.c.id)
            rows = connection.execute(newer.limit(PAGE_SIZE)).mappings().all()
            for row in rows:
                self._add(row)
            if len(rows) < PAGE_SIZE:
                return

    def _load_recent(self, connection: Connection) -> None:
        recent = select(hours.c.station).where(hours.c.hour >= start_of_hour(self._now() - RECENT))
        newest_first = recent.group_by(by_hour(connection)).order_by(func.max(hours.c.last_id).desc())
        for station in connection.execute(newest_first.limit(MAX_STATIONS)).scalars().all():
            row = last_inspection(connection, station)
            if row is not None:
                self._add(row)

    def _add(self, row: RowMapping) -> None:
        assert self._seen is not None
        self._seen = max(self._seen, row["id"])
        if self._newest is None or row["id"] > self._newest["id"]:
            self._newest = row
        is_shown = row["station"] in self._last or len(self._last) < MAX_STATIONS
        if is_shown:
            self._last[row["station"]] = row
        if row["plan_severity"] == "stop":
            self._stops |= {None: row} | ({row["station"]: row} if is_shown else {})

    # === Counts ===

    def _count(self, connection: Connection, midnight: datetime) -> list[Count]:
        """Counts today's verdicts and uninspected photographs by station."""
        rows: list[Count] = [(station, "uninspected", count) for station, count in self._uninspected.items()]
        labels = count_labels(connection, midnight)
        return rows + [(station, verdict_of(label), count) for (station, label), count in labels.items()]

    def _follow_uninspected(self, connection: Connection, midnight: datetime) -> None:
        if midnight != self._midnight:
            self._midnight, self._uninspected, self._uninspected_seen = midnight, Counter(), 0
            self._last_uninspected = {}
        newest = connection.execute(select(func.max(uninspected.c.id))).scalar() or 0
        if newest == self._uninspected_seen:
            return
        ids = uninspected.c.id.between(self._uninspected_seen + 1, newest)
        counted = select(uninspected.c.station, func.sum(uninspected.c.count), func.max(uninspected.c.id))
        counted = counted.where(ids, uninspected.c.at >= midnight).group_by(uninspected.c.station)
        last: list[int] = []
        for station, count, last_id in connection.execute(counted):
            is_shown = station in self._uninspected or len(self._uninspected) < MAX_STATIONS
            self._uninspected[station if is_shown else None] += int(count)
            last.append(last_id)
        self._note_last_uninspected(connection, last)
        self._uninspected_seen = newest

    def _note_last_uninspected(self, connection: Connection, ids: Sequence[int]) -> None:
        rows = select(uninspected).where(uninspected.c.id.in_(ids)).order_by(uninspected.c.id)
        for row in connection.execute(rows).mappings():
            self._last_uninspected[None] = row
            if row["station"] in self._uninspected:
                self._last_uninspected[row["station"]] = row
