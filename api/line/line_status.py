"""The status of a line: last verdict, uninspected photographs, counts, defect chart, drift."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping

from api.errors import RequestError
from api.line import line_queries
from api.line.control_chart import Baseline, PeriodCount, exceeded_limit
from api.line.schemas import (
    ChartHour,
    DefectChart,
    LastUninspected,
    LineCounts,
    LineInspection,
    LineStatus,
    QuietStation,
    ScoreDrift,
)
from api.line.score_drift import DRIFT_HOURS, HourScores, find_drift
from api.line.shared_answers import SharedAnswers
from api.line.silent_stations import StationActivity, find_silent
from api.line.training_distance import TrainingDistances
from api.line.unlike_photographs import FindLimits, find_unlike
from api.record.events import verdict_of
from api.record.filters import start_of_hour
from api.record.record import Record
from api.record.shifts import ShiftPlan, Span
from api.record.uninspected_photograph import UninspectedPhotograph
from segdec.config import GOOD
from segdec.runtime.identifiers import NOT_INSPECTED, REVIEW

HOUR = timedelta(hours=1)
CHART_HOURS = 24
"""Hours of the chart, the current one included."""
BASELINE_HOURS = 7 * 24
"""Hours before the chart, as its baseline."""
UNINSPECTED_LOOKBACK = timedelta(hours=12)
"""Uninspected photographs of this time before the shift are also reported: an unresolved alarm
must continue in the next shift.
"""
MAX_DEFECTS = 8
OTHERS = GOOD, REVIEW, NOT_INSPECTED
"""Labels that are not defects."""
SHOWN = ("inspected_at", "station", "part_id", "label", "score", "threshold")


class LineMonitor:
    """Answers requests of the line screen from the record; `plan` and `find_limits` can be replaced."""

    def __init__(self, record: Record, plan: ShiftPlan) -> None:
        self._record, self.plan, self._distances = record, plan, TrainingDistances()
        self.find_limits: FindLimits = lambda _: None
        self._answers = SharedAnswers(self._answer, lambda: record.changes)

    async def answer(self, station: str | None) -> bytes:
        """Returns the JSON of the present status, as `status`; many screens may ask at the same time."""
        return await self._answers.get(station)

    async def _answer(self, station: str | None) -> bytes:
        return (await self.status(station, datetime.now(UTC))).model_dump_json().encode()

    async def status(self, station: str | None, now: datetime) -> LineStatus:
        """Returns the status of a station; None = of all.

        If the record cannot be read, the status has only what this process remembers.
        """
        try:
            return await self._record.read(self._query, station, now)
        except RequestError as error:
            return self._without_record(station, now, str(error))

    def _without_record(self, station: str | None, now: datetime, why: str) -> LineStatus:
        since = self.plan.shift_at(now).begin - UNINSPECTED_LOOKBACK
        uninspected = _newest(_matching(self._record.uninspected.in_memory(), since, station), [])
        unknown = dict.fromkeys(("last", "shift", "day", "chart", "drift"))
        return LineStatus(
            at=now,
            zone=self.plan.zone.key,
            station=station,
            uninspected=_line_uninspected(uninspected, {}),
            unavailable=why,
            **unknown,
            **{"stations": [], "defects": [], "quiet": []},
        )

    def _query(self, connection: Connection, station: str | None, now: datetime) -> LineStatus:
        # Entered before the first read: an entry written meanwhile would be missing in both sources.
        with self._record.uninspected.unwritten() as unwritten:
            return self._read(connection, station, now, unwritten)

    def _read(
        self,
        connection: Connection,
        station: str | None,
        now: datetime,
        unwritten: Sequence[UninspectedPhotograph],
    ) -> LineStatus:
        hour = start_of_hour(now)
        week = hour - (CHART_HOURS - 1 + BASELINE_HOURS) * HOUR
        last = line_queries.last_inspection(connection, station)
        sums = line_queries.hour_sums(connection, week, station)
        newest = line_queries.stations_since(connection, week)
        days = line_queries.station_activity(connection, hour - 24 * HOUR, newest)
        defects = line_queries.last_defects(connection, week, station, OTHERS, MAX_DEFECTS)
        shift, day = self.plan.shift_at(now), self.plan.day_at(now)
        scores = _scores(sums, last)
        training = self._distances.read(connection, newest, station, now)
        recent = self._distances.recent(station)
        return LineStatus(
            at=now,
            zone=self.plan.zone.key,
            station=station,
            stations=sorted(newest),
            last=None if last is None else _line_inspection(last),
            uninspected=self._uninspected(connection, station, shift.begin - UNINSPECTED_LOOKBACK, unwritten),
            shift=self._count(connection, station, shift, unwritten),
            day=self._count(connection, station, day, unwritten),
            chart=_chart(_hours(sums), scores, hour),
            drift=_drift(scores, hour),
            training=training,
            unlike=list(find_unlike(connection, recent, self.find_limits)),
            defects=[_line_inspection(row) for row in defects],
            quiet=_quiet(days, station, now),
            unavailable=None,
        )

    def _count(
        self,
        connection: Connection,
        station: str | None,
        span: Span,
        unwritten: Sequence[UninspectedPhotograph],
    ) -> LineCounts:
        labels: Counter[str] = Counter()
        for (_, label), count in line_queries.count_labels(connection, span.begin, station).items():
            labels[label] += count
        uninspected = line_queries.count_uninspected(connection, span.begin, station)
        uninspected += sum(photograph.count for photograph in _matching(unwritten, span.begin, station))
        return _counts(span, labels, uninspected)

    def _uninspected(
        self,
        connection: Connection,
        station: str | None,
        since: datetime,
        unwritten: Sequence[UninspectedPhotograph],
    ) -> list[LastUninspected]:
        written = line_queries.last_uninspected(connection, since, station)
        newest = _newest(_matching(unwritten, since, station), written)
        return _line_uninspected(newest, self._last_times(connection, newest, station))

    def _last_times(
        self, connection: Connection, uninspected: Iterable[Mapping[str, Any]], station: str | None
    ) -> dict[str, datetime]:
        """Returns the last inspection time of these stations; under the empty name, of any."""
        named = {photograph["station"] for photograph in uninspected}
        times = line_queries.last_inspection_times(connection, named - {""})
        if "" in named and (last := line_queries.last_inspection(connection, station)) is not None:
            times[""] = last["inspected_at"]
        return times


# === Inspections ===


def _line_inspection(row: RowMapping) -> LineInspection:
    return LineInspection(
        record_id=row["id"], verdict=verdict_of(row["label"]), **{name: row[name] for name in SHOWN}
    )


def _counts(span: Span, labels: Counter[str], uninspected: int) -> LineCounts:
    return LineCounts(
        begin=span.begin,
        end=span.end,
        inspected=labels.total(),
        good=labels[GOOD],
        review=labels[REVIEW],
        defective={label: labels[label] for label in sorted(labels) if verdict_of(label) == "defect"},
        not_inspected=uninspected,
    )


# === Hours ===


def _hours(sums: Sequence[RowMapping]) -> dict[datetime, PeriodCount]:
    inspected: Counter[datetime] = Counter()
    defective: Counter[datetime] = Counter()
    for row in sums:
        inspected[row["hour"]] += int(row["count"])
        if verdict_of(row["label"]) == "defect":
            defective[row["hour"]] += int(row["count"])
    return {hour: PeriodCount(hour, count, defective[hour]) for hour, count in inspected.items()}


def _scores(sums: Sequence[RowMapping], last: RowMapping | None) -> dict[datetime, HourScores]:
    """Sums the log-odds per hour of the model that inspected last."""
    scores: dict[datetime, HourScores] = {}
    for row in sums:
        if last is None or (row["model"], row["version"]) != (last["model"], last["version"]):
            continue
        known = scores.get(row["hour"], HourScores(0, 0.0, 0.0))
        added = int(row["count"]), row["log_odds_sum"], row["log_odds_squares"]
        scores[row["hour"]] = HourScores(*map(sum, zip(known, added, strict=True)))
    return scores


def _chart(
    hours: Mapping[datetime, PeriodCount], scores: Mapping[datetime, HourScores], running: datetime
) -> DefectChart:
    shown = [running - shift * HOUR for shift in reversed(range(CHART_HOURS))]
    baseline = Baseline.from_periods([hour for begin, hour in hours.items() if begin < shown[0]])
    if baseline is None:  # a new line: the chart's own hours without the current one
        baseline = Baseline.from_periods([hours[begin] for begin in shown[:-1] if begin in hours])
    return DefectChart(
        centre=None if baseline is None else baseline.centre,
        spread=None if baseline is None else baseline.spread,
        hours=[
            _chart_hour(hours.get(begin, PeriodCount(begin, 0, 0)), scores.get(begin), baseline)
            for begin in shown
        ],
    )


def _chart_hour(hour: PeriodCount, scores: HourScores | None, baseline: Baseline | None) -> ChartHour:
    limits = None if baseline is None else baseline.limits(hour.inspected)
    low, high = limits or (None, None)
    return ChartHour(
        hour=hour.begin,
        inspected=hour.inspected,
        defective=hour.defective,
        low=low,
        high=high,
        out=exceeded_limit(hour, limits),
        log_odds=None if scores is None else scores.mean,
    )


def _drift(scores: Mapping[datetime, HourScores], running: datetime) -> ScoreDrift | None:
    begin = running - (DRIFT_HOURS - 1) * HOUR
    before = [hour for at, hour in scores.items() if begin - BASELINE_HOURS * HOUR <= at < begin]
    return find_drift([hour for at, hour in scores.items() if at >= begin], before)


# === Stations and uninspected photographs ===


def _quiet(days: Mapping[str, StationActivity], station: str | None, now: datetime) -> list[QuietStation]:
    asked = [day for day in days.values() if station in (None, day.station)]
    return [
        QuietStation(station=day.station, last_at=day.last_at, usual_gap_s=day.usual_gap.total_seconds())
        for day in find_silent(asked, now)
    ]


def _matching(
    photographs: Iterable[UninspectedPhotograph], since: datetime, station: str | None
) -> Iterator[UninspectedPhotograph]:
    """Yields those since a time at the station, or at an unknown one."""
    for photograph in photographs:
        if photograph.at >= since and (station is None or photograph.station in (station, "")):
            yield photograph


def _newest(
    unwritten: Iterable[UninspectedPhotograph], written: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    newest: dict[str, Mapping[str, Any]] = {}
    for photograph in (*written, *map(asdict, unwritten)):
        known = newest.setdefault(photograph["station"], photograph)
        if photograph["at"] >= known["at"]:
            newest[photograph["station"]] = photograph
    ordered = sorted(newest.values(), key=lambda photograph: photograph["at"], reverse=True)
    return ordered[: line_queries.MAX_STATIONS]


def _line_uninspected(
    uninspected: Iterable[Mapping[str, Any]], last_times: Mapping[str, datetime]
) -> list[LastUninspected]:
    return [
        LastUninspected(
            **{name: photograph[name] for name in LastUninspected.model_fields if name != "followed"},
            followed=last_times.get(photograph["station"], photograph["at"]) > photograph["at"],
        )
        for photograph in uninspected
    ]
