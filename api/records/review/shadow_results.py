"""What candidates say of the photographs that others answered, and how that falls out."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, insert, select, update

from api.records.inspection import Row
from api.records.review.review_queue import Priority, enqueue
from api.records.schemas import CandidateReport, CandidateVerdicts
from api.records.storage.retention_class import RetentionClass
from api.records.tables import inspections, pictures, shadows
from segdec.schemas import ModelIdentity

UNSURE = "unsure"


def add_shadow_results(connection: Connection, rows: Sequence[Row]) -> None:
    """Adds rows of the table `shadows`; what differs and is not reviewed yet is put up before all others."""
    connection.execute(insert(shadows), rows)
    waiting = select(inspections.c.id, inspections.c.picture).where(
        inspections.c.id.in_([row["record_id"] for row in rows if row["differs"]]),
        inspections.c.reviewed_label.is_(None),
    )
    found = connection.execute(waiting).all()
    enqueue(connection, [(record_id, Priority.CANDIDATE_DIFFERS) for record_id, _ in found])
    _keep_for_review(connection, [picture for _, picture in found])


def _keep_for_review(connection: Connection, digests: Sequence[bytes]) -> None:
    """Keeps pictures for as long as what waits for a person is kept."""
    statement = update(pictures).where(
        pictures.c.sha256.in_(digests),
        pictures.c.state == "kept",
        pictures.c.worth < RetentionClass.TO_REVIEW,
    )
    connection.execute(statement.values(worth=RetentionClass.TO_REVIEW))


def report_candidate(
    connection: Connection, candidate: ModelIdentity, serving: str, skipped: dict[str, int]
) -> CandidateReport:
    """Counts what a candidate answered; reads its own rows of an index, and no other inspections.

    Args:
        connection: To the database.
        candidate: The version.
        serving: The version that answers now.
        skipped: Photographs that it did not see, by reason.
    """
    own = _of(candidate)
    found = connection.execute(_count(own)).all()
    first = select(func.min(shadows.c.inspected_at)).where(
        own, shadows.c.record_id == min((record_id for *_, record_id in found), default=0)
    )
    return CandidateReport(
        model=candidate,
        serving=serving,
        since=connection.execute(first).scalar(),
        answered=sum(count for _, count, _ in found),
        differing=sum(count for differs, count, _ in found if differs),
        skipped=skipped,
        reviewed=CandidateVerdicts(**{str(who): count for who, count in connection.execute(_verdicts(own))}),
    )


def _count(own: ColumnElement[bool]) -> Select[Any]:
    counts = select(shadows.c.differs, func.count(), func.min(shadows.c.record_id))
    return counts.where(own).group_by(shadows.c.differs)


def _verdicts(own: ColumnElement[bool]) -> Select[Any]:
    said = inspections.c.reviewed_label
    right = case(
        (said == UNSURE, UNSURE),
        (said == shadows.c.label, "candidate"),
        (said == inspections.c.label, "serving"),
        else_="neither",
    ).label("who_is_right")
    joined = select(right, func.count()).join_from(shadows, inspections)
    return joined.where(own, shadows.c.differs, said.is_not(None)).group_by(right)


def _of(candidate: ModelIdentity) -> ColumnElement[bool]:
    return and_(
        shadows.c.model == candidate.name,
        shadows.c.version == candidate.version,
        shadows.c.manifest_sha256 == candidate.sha256,
    )
