"""How right the answers of a time were, reckoned from what people said of those that were drawn.

Each inspection was drawn with a probability that depends on its answer alone. Of the inspections of one
reason and one probability, the total is known, and what was reviewed of them is a sample: that of the draw,
as far as it is reviewed yet. Those of which a candidate says something else are reviewed before the others,
and count by their share of what was drawn. Reviews of what was not drawn count for nothing here.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from sqlalchemy import Connection, case, exists, func, select, text

from api.records.queries import Filters
from api.records.review.confidence_intervals import Interval, Sample, estimate_share, estimate_total
from api.records.review.reviews import UNSURE
from api.records.review.sampling_counts import Stratum, count_strata, inspected
from api.records.schemas import Estimate, ReviewStatistics
from api.records.tables import inspections, is_drawn, shadows
from segdec.config import GOOD

CALLED_GOOD, CALLED_DEFECTIVE, FOR_REVIEW = ("near", "chance"), ("defect",), ("review",)
"""Reasons of a draw, by what was answered."""
NAMES = {
    "near": "called good near the threshold",
    "chance": "called good, drawn by chance",
    "defect": "called defective",
    "review": "for review",
}
NOTHING = Estimate(value=None, low=None, high=None)


class ReviewCounts(NamedTuple):
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

    @property
    def judged(self) -> int:
        """Reviewed by somebody who could tell."""
        return self.reviewed - self.unsure


class StratumCounts(NamedTuple):
    """Inspections of one reason and one probability.

    Attributes:
        total: How many there are.
        plain: What was drawn of them.
        differing: The same of those of which a candidate says something else.
    """

    total: int
    plain: ReviewCounts
    differing: ReviewCounts = ReviewCounts()

    @property
    def drawn(self) -> ReviewCounts:
        """All that was drawn."""
        return ReviewCounts(*map(sum, zip(self.plain, self.differing, strict=True)))

    def sample(self) -> Sample:
        """Returns of how many it is known how many are defective.

        Where not the same share of both parts is reviewed, that is taken to be the smaller one.
        """
        parts = [part for part in (self.plain, self.differing) if part.drawn]
        if self.plain.judged and not self.differing.judged:  # which are few
            parts = [self.drawn]
        if not parts or not all(part.judged for part in parts):
            return Sample(self.total, 0, 0)
        drawn = self.drawn.drawn
        size = math.floor(drawn * min(Fraction(part.judged, part.drawn) for part in parts))
        share = sum(Fraction(part.drawn * part.defective, part.judged * drawn) for part in parts)
        return Sample(self.total, size, share * size)


Strata = Mapping[Stratum, StratumCounts]


def query_statistics(connection: Connection, filters: Filters) -> ReviewStatistics:
    """Reckons the statistics of a time and a station, which are all that `filters` may name."""
    totals, reviewed = count_strata(connection, filters), _reviewed(connection, filters)
    kinds = {}
    for by in {*totals, *reviewed}:
        kind = StratumCounts(totals.get(by, 0), **reviewed.get(by, {"plain": ReviewCounts()}))
        # What came between the two questions is drawn, and not among the total.
        kinds[by] = kind._replace(total=max(kind.total, kind.drawn.drawn))
    return compute_statistics(filters, kinds)


def _reviewed(connection: Connection, filters: Filters) -> Mapping[Stratum, Mapping[str, ReviewCounts]]:
    """What was drawn of each kind, by the names of its parts."""
    table = inspections.c
    differs = exists().where(shadows.c.record_id == table.id, shadows.c.differs)
    by = table.draw_reason, table.draw_probability, differs.label("part")
    said = table.reviewed_label
    sums = (said.is_not(None), said == UNSURE, said.not_in((GOOD, UNSURE)))
    counted = (func.sum(case((condition, 1), else_=0)) for condition in sums)
    statement = select(*by, func.count(), *counted).where(is_drawn)
    statement = statement.group_by(table.draw_reason, table.draw_probability, text("part"))
    found: dict[Stratum, dict[str, ReviewCounts]] = {}
    for reason, share, is_differing, *counts in connection.execute(inspected(connection, statement, filters)):
        parts = found.setdefault(Stratum(reason, share), {"plain": ReviewCounts()})
        parts["differing" if is_differing else "plain"] = ReviewCounts(*map(int, counts))
    return found


def compute_statistics(filters: Filters, kinds: Strata) -> ReviewStatistics:
    """Reckons the statistics from what was counted."""
    good, defective, doubtful = (
        _samples(kinds, reasons) for reasons in (CALLED_GOOD, CALLED_DEFECTIVE, FOR_REVIEW)
    )
    found = [kind.drawn for kind in kinds.values()]
    called_good, called_defective, for_review = (
        sum(sample.total for sample in samples) for samples in (good, defective, doubtful)
    )
    asked = called_good + called_defective + for_review
    alarms = estimate_total([sample.others for sample in defective])
    return ReviewStatistics(
        since=filters.since,
        until=filters.until,
        station=filters.station,
        inspected=asked,
        called_good=called_good,
        called_defective=called_defective,
        for_review=for_review,
        drawn=sum(one.drawn for one in found),
        reviewed=sum(one.reviewed for one in found),
        unsure=sum(one.unsure for one in found),
        defect_rate=_estimate(estimate_total([*good, *defective, *doubtful]), asked),
        missed=_estimate(estimate_total(good)),
        miss_rate=_estimate(estimate_share(good, [*defective, *doubtful]), min(asked, 1)),
        false_alarms=_estimate(alarms),
        false_alarm_share=_estimate(alarms, called_defective),
        notes=list(_notes(kinds)),
    )


def _samples(kinds: Strata, reasons: Iterable[str]) -> list[Sample]:
    """Of the defective ones among what was answered so."""
    return [kind.sample() for by, kind in kinds.items() if by.reason in reasons]


def _estimate(interval: Interval, of: int = 1) -> Estimate:
    if not of:
        return NOTHING
    value = None if interval.value is None else interval.value / of
    return Estimate(value=value, low=interval.low / of, high=interval.high / of)


def _notes(kinds: Strata) -> Iterable[str]:
    for by, kind in sorted(kinds.items()):
        name, found = NAMES[by.reason], kind.drawn
        if kind.total and not kind.sample().size:
            yield (
                f"{name}: too little is judged yet to say anything of {kind.total}, of which {found.drawn} "
                f"were drawn, with the probability {by.probability:g}: all or none of them may be defective."
            )
        elif waiting := found.drawn - found.reviewed:
            yield (
                f"{name}: {waiting} of {found.drawn} that were drawn wait. They are taken to be as those "
                "that are reviewed, as they are where the order of the reviews is by time alone."
            )
        if found.unsure:
            yield f"{name}: of {found.unsure} nobody could tell. They count as not reviewed."
