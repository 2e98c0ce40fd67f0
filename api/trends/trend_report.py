"""Defect rate over days, weeks or months, with control limits; counts by class, station and version."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from api.line.control_chart import Baseline, PeriodCount, exceeded_limit
from api.record.events import verdict_of
from api.record.filters import Filters
from api.record.shifts import Span
from api.trends.periods import PeriodKind
from api.trends.schemas import TrendClass, TrendGroup, TrendPeriod, TrendReport
from api.trends.trend_queries import TimeSum, sum_period

MAX_GROUPS = 100
"""Stations, versions and classes in an answer, those with the most inspections."""


def read_trends(
    connection: Connection,
    filters: Filters,
    kind: PeriodKind,
    periods: Sequence[Span],
    zone: ZoneInfo,
    now: datetime,
) -> TrendReport:
    """Returns the trends of consecutive periods; `filters` may have a station, a version and a tag.

    An hour belongs to the period in which it begins.
    """
    whole = replace(filters, since=periods[0].begin, until=periods[-1].end)
    sums = sum_period(connection, whole, periods)
    by_label = [(one.label, one.label, one.count) for one in sums.times if verdict_of(one.label) == "defect"]
    return TrendReport(
        by=kind,
        zone=zone.key,
        periods=_describe_periods(periods, sums.times, now),
        classes=[TrendClass(label=name, count=sum(counts.values())) for name, counts in _largest(by_label)],
        stations=_groups((one.station, one.label, one.count) for one in sums.stations),
        versions=_groups((_model_of(one), one.label, one.count) for one in sums.times),
    )


def _describe_periods(periods: Sequence[Span], sums: Sequence[TimeSum], now: datetime) -> list[TrendPeriod]:
    begins = [period.begin for period in periods]
    by_period: list[list[TimeSum]] = [[] for _ in periods]
    for one in sums:
        place = bisect_right(begins, one.at) - 1
        if place >= 0:
            by_period[place].append(one)
    counted = [_count(own) for own in by_period]
    finished = [
        PeriodCount(period.begin, counts.total(), counts["defect"])
        for period, counts in zip(periods, counted, strict=True)
        if period.end <= now and counts.total()
    ]
    baseline = Baseline.from_periods(finished)
    last = _model_of(max(sums, key=lambda one: one.last)) if sums else None
    return [
        _describe(period, own, counts, baseline, last)
        for period, own, counts in zip(periods, by_period, counted, strict=True)
    ]


def _count(sums: Iterable[TimeSum]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in sums:
        counts[verdict_of(one.label)] += one.count
    return counts


def _describe(
    period: Span,
    sums: Sequence[TimeSum],
    counts: Mapping[str, int],
    baseline: Baseline | None,
    model: str | None,
) -> TrendPeriod:
    counted = PeriodCount(period.begin, sum(counts.values()), counts["defect"])
    limits = None if baseline is None else baseline.limits(counted.inspected)
    low, high = limits or (None, None)
    own = [one for one in sums if _model_of(one) == model]
    measured = sum(one.count for one in own)
    return TrendPeriod(
        begin=period.begin,
        end=period.end,
        inspected=counted.inspected,
        review=counts["review"],
        defective=counted.defective,
        centre=None if baseline is None else baseline.centre,
        low=low,
        high=high,
        out=exceeded_limit(counted, limits),
        log_odds=sum(one.log_odds for one in own) / measured if measured else None,
        versions=sorted({_model_of(one) for one in sums}),
    )


def _model_of(one: TimeSum) -> str:
    return f"{one.model} {one.version}"


def _groups(rows: Iterable[tuple[str, str, int]]) -> list[TrendGroup]:
    return [
        TrendGroup(
            name=name, inspected=sum(counts.values()), review=counts["review"], defective=counts["defect"]
        )
        for name, counts in _largest((name, verdict_of(label), count) for name, label, count in rows)
    ]


def _largest(rows: Iterable[tuple[str, str, int]]) -> list[tuple[str, Counter[str]]]:
    """Returns the counts of each name by kind, those with the largest sums first."""
    counts_of: dict[str, Counter[str]] = {}
    for name, kind, count in rows:
        counts_of.setdefault(name, Counter())[kind] += count
    return sorted(counts_of.items(), key=lambda item: -item[1].total())[:MAX_GROUPS]
