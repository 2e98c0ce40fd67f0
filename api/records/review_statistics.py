"""How right the answers of a time were, reckoned from what people said of those that were drawn.

Each inspection was drawn with a probability that depends on its answer alone. Of the inspections of one
reason and one probability, the total is known, and what was reviewed of them is a sample: that of the draw,
as far as it is reviewed yet. Reviews of what was not drawn count for nothing here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select

from api.records.draw_counts import DrawnBy, inspected, total_draws
from api.records.queries import Filters
from api.records.reviews import GOOD, UNSURE
from api.records.sample_intervals import Interval, Sample, share_of, total_of
from api.records.tables import inspections, is_drawn
from segdec.schemas import Estimate, ReviewStatistics

CALLED_GOOD, CALLED_DEFECTIVE, FOR_REVIEW = ("near", "chance"), ("defect",), ("review",)
"""Reasons of a draw, by what was answered."""
NAMES = {
    "near": "called good near the threshold",
    "chance": "called good, drawn by chance",
    "defect": "called defective",
    "review": "for review",
}
NOTHING = Estimate(value=None, low=None, high=None)


@dataclass(frozen=True)
class Reviewed:
    """What was drawn of one kind, and what became of it.

    Attributes:
        drawn: How many were.
        reviewed: How many of them somebody has looked at.
        unsure: How many of these he could not tell.
        defective: How many of these are.
    """

    drawn: int = 0
    reviewed: int = 0
    unsure: int = 0
    defective: int = 0


Counts = Mapping[DrawnBy, tuple[int, Reviewed]]
"""By kind: how many there are, and what is known of them."""


def make_statistics(connection: Connection, filters: Filters) -> ReviewStatistics:
    """Reckons the statistics of a time and a station, which are all that `filters` may name."""
    totals, reviewed = total_draws(connection, filters), _reviewed(connection, filters)
    # The total is asked first: what has come since then is none of it.
    counts = {
        kind: (max(totals.get(kind, 0), found.drawn), found)
        for kind in {**totals, **reviewed}
        for found in [reviewed.get(kind, Reviewed())]
    }
    return reckon(filters, counts)


def _reviewed(connection: Connection, filters: Filters) -> Mapping[DrawnBy, Reviewed]:
    table = inspections.c
    by, said = (table.draw_reason, table.draw_probability), table.reviewed_label
    sums = (said.is_not(None), said == UNSURE, said.not_in((GOOD, UNSURE)))
    counted = (func.sum(case((condition, 1), else_=0)) for condition in sums)
    statement = select(*by, func.count(), *counted).where(is_drawn).group_by(*by)
    rows = connection.execute(inspected(connection, statement, filters))
    return {DrawnBy(reason, share): Reviewed(*map(int, counts)) for reason, share, *counts in rows}


def reckon(filters: Filters, counts: Counts) -> ReviewStatistics:
    """Reckons the statistics from what was counted."""
    good, defective, doubtful = (
        _samples(counts, reasons) for reasons in (CALLED_GOOD, CALLED_DEFECTIVE, FOR_REVIEW)
    )
    found = [reviewed for _, reviewed in counts.values()]
    called_good, called_defective, for_review = (
        sum(sample.total for sample in samples) for samples in (good, defective, doubtful)
    )
    inspected = called_good + called_defective + for_review
    alarms = total_of([sample.others for sample in defective])
    return ReviewStatistics(
        since=filters.since,
        until=filters.until,
        station=filters.station,
        inspected=inspected,
        called_good=called_good,
        called_defective=called_defective,
        for_review=for_review,
        drawn=sum(one.drawn for one in found),
        reviewed=sum(one.reviewed for one in found),
        unsure=sum(one.unsure for one in found),
        defect_rate=_estimate(total_of([*good, *defective, *doubtful]), inspected),
        missed=_estimate(total_of(good)),
        miss_rate=_estimate(share_of(good, [*defective, *doubtful]), min(inspected, 1)),
        false_alarms=_estimate(alarms),
        false_alarm_share=_estimate(alarms, called_defective),
        notes=list(_notes(counts)),
    )


def _samples(counts: Counts, reasons: Iterable[str]) -> list[Sample]:
    """Of the defective ones among what was answered so."""
    return [
        Sample(total, found.reviewed - found.unsure, found.defective)
        for kind, (total, found) in counts.items()
        if kind.reason in reasons
    ]


def _estimate(interval: Interval, of: int = 1) -> Estimate:
    if not of:
        return NOTHING
    value = None if interval.value is None else interval.value / of
    return Estimate(value=value, low=interval.low / of, high=interval.high / of)


def _notes(counts: Counts) -> Iterable[str]:
    for kind, (total, found) in sorted(counts.items()):
        name, waiting = NAMES[kind.reason], found.drawn - found.reviewed
        judged = found.reviewed - found.unsure
        if total and not judged:
            yield (
                f"{name}: none of {total} is judged yet ({found.drawn} were drawn, with the probability "
                f"{kind.probability:g}), so that all or none of them may be defective."
            )
        elif waiting:
            yield (
                f"{name}: {waiting} of {found.drawn} that were drawn wait. They are taken to be as "
                "those that are reviewed, as they are where the order of the reviews is by time alone."
            )
        if found.unsure:
            yield f"{name}: of {found.unsure} nobody could tell. They count as not reviewed."
