"""Predictions of candidates in shadow mode, and how they compare with answers and reviews."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, insert, select, update

from api.inspecting.shadow.schemas import (
    CandidateReport,
    CandidateVerdicts,
    Difference,
    DifferencePage,
    ModelVerdict,
)
from api.record.inspection import Row
from api.record.review_queue import Priority, enqueue
from api.record.storage.retention_class import RetentionClass
from api.record.tables import inspections, pictures, shadows
from segdec.runtime.identifiers import NOT_INSPECTED, UNSURE
from segdec.schemas import ModelIdentity

FACTS = ("part_id", "station", "inspected_at", "version", "label", "score")
"""Columns of an inspection in the list of differences."""


def add_shadow_results(connection: Connection, rows: Sequence[Row]) -> None:
    """Adds rows of the table `shadows`; puts inspections that differ and have no review at the front of the
    review queue.
    """
    connection.execute(insert(shadows), rows)
    differing = select(inspections.c.id, inspections.c.picture).where(
        inspections.c.id.in_([row["record_id"] for row in rows if row["differs"]]),
        inspections.c.reviewed_label.is_(None),
    )
    differing_rows = connection.execute(differing).all()
    enqueue(connection, [(record_id, Priority.CANDIDATE_DIFFERS) for record_id, _ in differing_rows])
    _keep_for_review(connection, [picture for _, picture in differing_rows])


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
    counts = connection.execute(_count(own)).all()
    first = select(func.min(shadows.c.inspected_at)).where(
        own, shadows.c.record_id == min((record_id for *_, record_id in counts), default=0)
    )
    refused = select(func.count()).where(own, shadows.c.differs, shadows.c.label == NOT_INSPECTED)
    return CandidateReport(
        model=candidate,
        serving=serving,
        since=connection.execute(first).scalar(),
        answered=sum(count for _, count, _ in counts),
        differing=sum(count for differs, count, _ in counts if differs),
        not_inspected=connection.execute(refused).scalar_one(),
        skipped=skipped,
        reviewed=CandidateVerdicts(**{str(who): count for who, count in connection.execute(_verdicts(own))}),
    )


def list_differences(
    connection: Connection, candidate: ModelIdentity, before: int | None, limit: int
) -> DifferencePage:
    """Returns up to `limit` inspections with an id below `before` whose label is another one than that of the
    candidate, the newest first.
    """
    columns = inspections.c.id, *(inspections.c[name] for name in FACTS), inspections.c.reviewed_label
    theirs = (shadows.c.label.label("candidate_label"), shadows.c.score.label("candidate_score"))
    statement = select(*columns, *theirs).join_from(shadows, inspections)
    statement = statement.where(_of(candidate), shadows.c.differs)
    if before is not None:
        statement = statement.where(shadows.c.record_id < before)
    statement = statement.order_by(shadows.c.record_id.desc()).limit(limit + 1)
    rows = connection.execute(statement).mappings().all()
    differences = [_make_difference(row, candidate.version) for row in rows[:limit]]
    more = len(rows) > limit
    return DifferencePage(
        model=candidate, differences=differences, next_before=differences[-1].record_id if more else None
    )


def _make_difference(row: Row, version: str) -> Difference:
    return Difference(
        record_id=row["id"],
        **{name: row[name] for name in ("part_id", "station", "inspected_at", "reviewed_label")},
        serving=_make_verdict(row["version"], row["label"], row["score"]),
        candidate=_make_verdict(version, row["candidate_label"], row["candidate_score"]),
    )


def _make_verdict(version: str, label: str, score: float) -> ModelVerdict:
    return ModelVerdict(version=version, label=label, score=None if label == NOT_INSPECTED else score)


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
