"""How often two people who reviewed the same photograph decided alike."""

import json
from collections.abc import Iterable

from sqlalchemy import Connection, select

from api.record.filters import Filters, in_period_and_station
from api.record.tables import audit, inspections
from api.review.reviews import REVIEW
from api.review.schemas import ReviewerAgreement
from segdec.config import GOOD
from segdec.runtime.identifiers import UNSURE

MAX_RECORDS = 10_000
"""The newest inspections that are compared."""
RECORDS_PER_QUERY = 500
"""Inspections whose reviews are read together."""


def query_agreement(connection: Connection, filters: Filters) -> ReviewerAgreement:
    """Compares consecutive reviews of an inspection by different people: good or defective. Reviews without a
    decision do not count. `filters` may have a period and a station.
    """
    changed = select(inspections.c.id).where(inspections.c.revision >= 2)
    changed = in_period_and_station(connection, changed, filters)
    newest = connection.execute(changed.order_by(inspections.c.id.desc()).limit(MAX_RECORDS)).scalars().all()
    pairs = agreed = 0
    for first in range(0, len(newest), RECORDS_PER_QUERY):
        for equal in _compare(connection, newest[first : first + RECORDS_PER_QUERY]):
            pairs, agreed = pairs + 1, agreed + equal
    return ReviewerAgreement(reviewed_twice=pairs, agreed=agreed)


def _compare(connection: Connection, ids: Iterable[int]) -> Iterable[bool]:
    statement = select(audit.c.before, audit.c.after)
    statement = statement.where(audit.c.record_id.in_(ids), audit.c.what == REVIEW)
    for row in connection.execute(statement):
        before, after = (json.loads(state) for state in row)
        labels = before["reviewed_label"], after["reviewed_label"]
        if None not in labels and UNSURE not in labels and before["reviewer"] != after["reviewer"]:
            yield (labels[0] == GOOD) == (labels[1] == GOOD)
