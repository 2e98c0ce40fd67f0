"""Estimates error rates from reviews of sampled inspections.

The sampling probability of an inspection depends only on its answer. A stratum contains the inspections with
the same sampling reason and probability: its total is known, and its reviewed inspections are a random
sample. Inspections where a candidate differs are reviewed first; they are weighted by their share of the
sampled ones. Reviews of inspections that were not sampled do not count.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from sqlalchemy import Connection, case, exists, func, select, text

from api.messages.language import ENGLISH, Language
from api.record.filters import Filters, in_period_and_station
from api.record.sampling_counts import Stratum, count_strata
from api.record.tables import inspections, is_sampled, shadows
from api.review.confidence_intervals import Interval, Sample, estimate_share, estimate_total
from api.review.schemas import Estimate, ReviewStatistics
from segdec.config import GOOD
from segdec.runtime.identifiers import UNSURE

CALLED_GOOD, CALLED_DEFECTIVE, FOR_REVIEW = ("near", "tolerated", "chance"), ("defect",), ("review",)
"""Sampling reasons by verdict."""
UNDEFINED = Estimate(value=None, low=None, high=None)


class ReviewCounts(NamedTuple):
    """Counts of sampled and of reviewed inspections; among the latter, `unsure` and defective ones."""

    drawn: int = 0
    reviewed: int = 0
    unsure: int = 0
    defective: int = 0

    @property
    def judged(self) -> int:
        """Reviews with a decision."""
        return self.reviewed - self.unsure


class StratumCounts(NamedTuple):
    """All inspections of a stratum; the sampled ones where no candidate differs, and those where one does."""

    total: int
    plain: ReviewCounts
    differing: ReviewCounts = ReviewCounts()

    @property
    def drawn(self) -> ReviewCounts:
        return ReviewCounts(*map(sum, zip(self.plain, self.differing, strict=True)))

    def sample(self) -> Sample:
        """Returns the reviewed sample.

        If `plain` and `differing` have different shares of reviews, the smaller share determines the sample
        size.
        """
        parts = [part for part in (self.plain, self.differing) if part.drawn]
        if self.plain.judged and not self.differing.judged:  # differing ones are few
            parts = [self.drawn]
        if not parts or not all(part.judged for part in parts):
            return Sample(self.total, 0, 0)
        drawn = self.drawn.drawn
        size = math.floor(drawn * min(Fraction(part.judged, part.drawn) for part in parts))
        share = sum(Fraction(part.drawn * part.defective, part.judged * drawn) for part in parts)
        return Sample(self.total, size, share * size)


Strata = Mapping[Stratum, StratumCounts]


def query_statistics(
    connection: Connection, filters: Filters, language: Language = ENGLISH
) -> ReviewStatistics:
    """Computes the statistics of a period and a station, the only filters that may be set; its notes are in
    `language`.
    """
    totals, reviewed = count_strata(connection, filters), _count_reviews(connection, filters)
    strata = {}
    for stratum in {*totals, *reviewed}:
        counts = StratumCounts(totals.get(stratum, 0), **reviewed.get(stratum, {"plain": ReviewCounts()}))
        # Inspections stored between both queries are sampled but missing in the total.
        strata[stratum] = counts._replace(total=max(counts.total, counts.drawn.drawn))
    return compute_statistics(filters, strata, language)


def _count_reviews(connection: Connection, filters: Filters) -> Mapping[Stratum, Mapping[str, ReviewCounts]]:
    """Returns the counts of each stratum by part, `plain` and `differing`."""
    table = inspections.c
    differs = exists().where(shadows.c.record_id == table.id, shadows.c.differs)
    by = table.draw_reason, table.draw_probability, differs.label("part")
    label = table.reviewed_label
    conditions = (label.is_not(None), label == UNSURE, label.not_in((GOOD, UNSURE)))
    counted = (func.sum(case((condition, 1), else_=0)) for condition in conditions)
    statement = select(*by, func.count(), *counted).where(is_sampled)
    statement = statement.group_by(table.draw_reason, table.draw_probability, text("part"))
    counts_of: dict[Stratum, dict[str, ReviewCounts]] = {}
    statement = in_period_and_station(connection, statement, filters)
    for reason, share, is_differing, *counts in connection.execute(statement):
        parts = counts_of.setdefault(Stratum(reason, share), {"plain": ReviewCounts()})
        parts["differing" if is_differing else "plain"] = ReviewCounts(*map(int, counts))
    return counts_of


def compute_statistics(filters: Filters, strata: Strata, language: Language = ENGLISH) -> ReviewStatistics:
    good, defective, doubtful = (
        _samples(strata, reasons) for reasons in (CALLED_GOOD, CALLED_DEFECTIVE, FOR_REVIEW)
    )
    sampled = [counts.drawn for counts in strata.values()]
    called_good, called_defective, for_review = (
        sum(sample.total for sample in samples) for samples in (good, defective, doubtful)
    )
    inspected = called_good + called_defective + for_review
    alarms = estimate_total([sample.others for sample in defective])
    return ReviewStatistics(
        since=filters.since,
        until=filters.until,
        station=filters.station,
        inspected=inspected,
        called_good=called_good,
        called_defective=called_defective,
        for_review=for_review,
        drawn=sum(counts.drawn for counts in sampled),
        reviewed=sum(counts.reviewed for counts in sampled),
        unsure=sum(counts.unsure for counts in sampled),
        defect_rate=_estimate(estimate_total([*good, *defective, *doubtful]), inspected),
        missed=_estimate(estimate_total(good)),
        miss_rate=_estimate(estimate_share(good, [*defective, *doubtful]), min(inspected, 1)),
        false_alarms=_estimate(alarms),
        false_alarm_share=_estimate(alarms, called_defective),
        notes=list(_notes(strata, language)),
    )


def _samples(strata: Strata, reasons: Iterable[str]) -> list[Sample]:
    """Returns the samples, whose property is `defective`, of the strata with these reasons."""
    return [counts.sample() for stratum, counts in strata.items() if stratum.reason in reasons]


def _estimate(interval: Interval, of: int = 1) -> Estimate:
    if not of:
        return UNDEFINED
    value = None if interval.value is None else interval.value / of
    return Estimate(value=value, low=interval.low / of, high=interval.high / of)


def _notes(strata: Strata, language: Language) -> Iterable[str]:
    for stratum, counts in sorted(strata.items()):
        values = {"parts": _description(stratum.reason, language), "drawn": counts.drawn.drawn}
        if counts.total and not counts.sample().size:
            yield language.translate_count(
                counts.total,
                "{parts}: too few reviews for an estimate of {count} inspection ({drawn} sampled with the "
                "probability {probability}). It may be defective.",
                "{parts}: too few reviews for an estimate of {count} inspections ({drawn} sampled with the "
                "probability {probability}). All or none of them may be defective.",
                probability=language.probability(stratum.probability),
                **values,
            )
        elif waiting := counts.drawn.drawn - counts.drawn.reviewed:
            yield language.translate_count(
                waiting,
                "{parts}: {count} of {drawn} sampled inspections waits for a review. The estimate assumes "
                "that it is like the reviewed ones, which holds if reviews go by time only.",
                "{parts}: {count} of {drawn} sampled inspections wait for a review. The estimate assumes "
                "that they are like the reviewed ones, which holds if reviews go by time only.",
                **values,
            )
        if counts.drawn.unsure:
            yield language.translate_count(
                counts.drawn.unsure,
                "{parts}: {count} review is unsure. It counts as not reviewed.",
                "{parts}: {count} reviews are unsure. They count as not reviewed.",
                **values,
            )


def _description(reason: str, language: Language) -> str:
    descriptions = {
        "near": language.translate("called good near the threshold"),
        "chance": language.translate("called good, drawn by chance"),
        "tolerated": language.translate("called good by the inspection plan"),
        "defect": language.translate("called defective"),
        "review": language.translate("for review"),
    }
    return descriptions[reason]
