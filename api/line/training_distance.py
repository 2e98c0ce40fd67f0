"""How far the photographs of each station are from those of the training: medians, now and at the start."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Select, func, select

from api.line.schemas import MeasureDistance, TrainingDistance
from api.record.tables import hours, inspections
from segdec.photograph_check import Vector, decode_measures
from segdec.runtime.identifiers import REVIEW
from segdec.schemas import ModelIdentity

PHOTOGRAPHS, MIN_PHOTOGRAPHS = 100, 20
"""Photographs of a median, and the fewest."""
NEAR_LIMIT = 0.7
"""Median, as a multiple of the limit, that is reported: single photographs are beyond the limit already. That
of usual photographs is at most 0.54 on the data sets of `benchmarks.unlike_training`."""

REFRESH_INTERVAL = timedelta(seconds=10)
"""Minimum time between two reads of a station: screens ask every second."""

Medians = Mapping[str, float]
ModelVersion = tuple[str, str]


class RecentPhotographs(NamedTuple):
    """The last photographs of a station that its model inspected or refused.

    Attributes:
        unlike: Record id → measures beyond their limits, of those for review with the warning, which a defect
            can cause as well; the newest first.
    """

    station: str
    model: ModelIdentity
    total: int
    unlike: Mapping[int, Mapping[str, Vector]]


class _Known(NamedTuple):
    """What is known about a station. `start` is None until the model has inspected enough photographs."""

    newest_id: int
    read_at: datetime
    distance: TrainingDistance | None
    model: ModelVersion
    start: Medians | None
    recent: RecentPhotographs


class TrainingDistances:
    """Reads the distances of stations; again after a new photograph, and not too often."""

    def __init__(self) -> None:
        self._stations: dict[str, _Known] = {}

    def read(
        self, connection: Connection, newest: Mapping[str, int], station: str | None, now: datetime
    ) -> list[TrainingDistance]:
        """Returns the distances of a station (None = of all), the highest first.

        `newest`: id of the newest row of each station.
        """
        before = self._stations
        known = {name: before[name] for name in newest if name in before}
        for name in newest if station is None else {station} & newest.keys():
            if name not in known or _is_outdated(known[name], newest[name], now):
                known[name] = _read_station(connection, name, newest[name], known.get(name), now)
        self._stations = known
        asked = [known[name].distance for name in known if station in (None, name)]
        distances = [distance for distance in asked if distance is not None]
        return sorted(distances, key=lambda distance: -distance.measures[0].now)

    def recent(self, station: str | None) -> list[RecentPhotographs]:
        """Returns the last photographs of a station (None = of all), as `read` has found them."""
        return [each.recent for name, each in self._stations.items() if station in (None, name)]


def _is_outdated(known: _Known, newest_id: int, now: datetime) -> bool:
    return known.newest_id != newest_id and abs(now - known.read_at) >= REFRESH_INTERVAL


def _read_station(
    connection: Connection, station: str, newest_id: int, before: _Known | None, now: datetime
) -> _Known:
    """Reads the last rows, and the first ones of their model."""
    newest_first = _select(station).order_by(inspections.c.id.desc()).limit(PHOTOGRAPHS)
    rows = connection.execute(newest_first).mappings().all()
    model = (rows[0]["model"], rows[0]["version"])
    recent = _recent(station, rows)
    last = _medians([row for row in rows if (row["model"], row["version"]) == model])
    if last is None:
        return _Known(newest_id, now, None, model, None, recent)
    start = before.start if before is not None and before.model == model else None
    first = start
    if first is None:
        rows = _read_first(connection, station, model)
        first = _medians(rows)
        start = first if len(rows) == PHOTOGRAPHS else None
    measures = [
        MeasureDistance(measure=name, now=value, start=None if first is None else first.get(name))
        for name, value in sorted(last.items(), key=lambda item: -item[1])
    ]
    near = measures[0].now >= NEAR_LIMIT
    named = {"station": station, "model": model[0], "version": model[1]}
    distance = TrainingDistance(**named, measures=measures, near_limit=near)
    return _Known(newest_id, now, distance, model, start, recent)


def _recent(station: str, rows: Sequence[RowMapping]) -> RecentPhotographs:
    """Returns those of the newest row's model."""
    model = _identity(rows[0])
    own = [row for row in rows if _identity(row) == model]
    unlike = {row["id"]: decode_measures(json.loads(row["unlike"])) for row in own if _is_unlike(row)}
    return RecentPhotographs(station, model, len(own), unlike)


def _is_unlike(row: RowMapping) -> bool:
    return row["unlike"] is not None and (row["model_label"] or row["label"]) == REVIEW


def _identity(row: RowMapping) -> ModelIdentity:
    return ModelIdentity(name=row["model"], version=row["version"], sha256=row["manifest_sha256"])


def _read_first(connection: Connection, station: str, model: ModelVersion) -> Sequence[RowMapping]:
    of_model = hours.c.station == station, hours.c.model == model[0], hours.c.version == model[1]
    first_id = connection.execute(select(func.min(hours.c.first_id)).where(*of_model)).scalar()
    table = inspections.c
    statement = _select(station).where(table.model == model[0], table.version == model[1])
    first = statement.where(table.id >= first_id).order_by(table.id).limit(PHOTOGRAPHS)
    return connection.execute(first).mappings().all()


def _select(station: str) -> Select[Any]:
    table = inspections.c
    model = table.model, table.version, table.manifest_sha256
    return select(table.id, *model, table.label, table.model_label, table.distances, table.unlike).where(
        table.station == station
    )


def _medians(rows: Sequence[RowMapping]) -> Medians | None:
    """Returns the median of each measure; None with too few photographs that have distances."""
    measured = [json.loads(row["distances"]) for row in rows if row["distances"] is not None]
    if len(measured) < MIN_PHOTOGRAPHS:
        return None
    names = dict.fromkeys(name for each in measured for name in each)
    return {name: round(median(each[name] for each in measured if name in each), 3) for name in names}
