"""Predictions of candidates in shadow mode, and how they compare with answers and reviews."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, insert, select, update

from api.records.inspection import Row
from api.records.review.review_queue import Priority, enqueue
from api.records.schemas import CandidateReport, CandidateVerdicts
from api.records.storage.retention_class import RetentionClass
from api.records.tables import inspections, pictures, shadows
from segdec.runtime.identifiers import NOT_INSPECTED, UNSURE
from segdec.schemas import ModelIdentity


def add_shadow_results(connection: Connection, rows: Sequence[Row]) -> None:
    """Adds rows of the table `shadows`; puts inspections that differ and have no review at the front of the
    review queue.
    """
    connection.execute(insert(shadows), rows)
    differing = select(inspections.c.id, inspections.c.picture).where(
        inspections.c.id.in_([row["record_id"] for row in rows if row["differs"]]),
        inspections.c.reviewed_label.is_(None),
    )
    found = connection.execute(differing).all()
    enqueue(connection, [(record_id, Priority.CANDIDATE_DIFFERS) for record_id, _ in found])
    _keep_for_review(connection, [picture for _, picture in found])


def _keep_for_review(connection: Connection, digests: Sequence[bytes]) -> None:
    """Raises the retention class of pictures to that of queued inspections."""
    statement = update(pictures).where(
        pictures.c.sha256.in_(digests),
        pictures.c.state == "kept",
        pictures.c.worth < RetentionClass.TO_REVIEW,
    )
    connection.execute(statement.values(worth=RetentionClass.TO_REVIEW))


def report_candidate(
    connection: Connection, candidate: ModelIdentity, serving: str, skipped: dict[str, int]
) -> CandidateReport:
    """Summarises the results of a candidate; reads only rows of this candidate.

    Args:
        connection: To the database.
        candidate: The version.
        serving: The version that answers now.
        skipped: Photographs without a prediction, by reason.
    """
    own = _of(candidate)
    found = connection.execute(_count(own)).all()
    first = select(func.min(shadows.c.inspected_at)).where(
        own, shadows.c.record_id == min((record_id for *_, record_id in found), default=0)
    )
    refused = select(func.count()).where(own, shadows.c.differs, shadows.c.label == NOT_INSPECTED)
    return CandidateReport(
        model=candidate,
        serving=serving,
        since=connection.execute(first).scalar(),
        answered=sum(count for _, count, _ in found),
        differing=sum(count for differs, count, _ in found if differs),
        not_inspected=connection.execute(refused).scalar_one(),
        skipped=skipped,
        reviewed=CandidateVerdicts(**{str(who): count for who, count in connection.execute(_verdicts(own))}),
    )


def _count(own: ColumnElement[bool]) -> Select[Any]:
    counts = select(shadows.c.differs, func.count(), func.min(shadows.c.record_id))
    return counts.where(own).group_by(shadows.c.differs)


def _verdicts(own: ColumnElement[bool]) -> Select[Any]:
    label = inspections.c.reviewed_label
    right = case(
        (label == UNSURE, UNSURE),
        (label == shadows.c.label, "candidate"),
        (label == inspections.c.label, "serving"),
        else_="neither",
    ).label("who_is_right")
    joined = select(right, func.count()).join_from(shadows, inspections)
    return joined.where(own, shadows.c.differs, label.is_not(None)).group_by(right)


def _of(candidate: ModelIdentity) -> ColumnElement[bool]:
    return and_(
        shadows.c.model == candidate.name,
        shadows.c.version == candidate.version,
        shadows.c.manifest_sha256 == candidate.sha256,
    )
