"""Predictions of candidates in both databases: stored, queued for review, and counted."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from api.database.database import write_transaction
from api.inspecting.shadow import shadow_results
from api.inspecting.shadow.schemas import CandidateVerdicts
from api.record.review_queue import Priority, enqueue
from api.record.storage.retention_class import RetentionClass
from api.record.tables import inspections, pictures, review_queue
from segdec.schemas import ModelIdentity
from tests.api.record.filled_record import make_row, stock

CANDIDATE = ModelIdentity(name="parts", version="2", sha256="aa")
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def inspected(engine):
    """Six inspections with the label `scratch` that are not queued, with a picture each."""
    stock(engine, [make_row(number, draw=1.0, model="parts") for number in range(1, 7)])
    with write_transaction(engine) as connection:
        for number in range(1, 7):
            picture = update(pictures).where(pictures.c.sha256 == number.to_bytes(32, "big"))
            connection.execute(picture.values(worth=RetentionClass(number % 5)))
    return engine


def prediction(record_id, label, candidate=CANDIDATE):
    version = {"model": candidate.name, "version": candidate.version, "manifest_sha256": candidate.sha256}
    answer = {"label": label, "score": 0.1, "log_odds": -2.0, "differs": label != "scratch"}
    return {"record_id": record_id, **version, "inspected_at": BEGIN + timedelta(hours=record_id), **answer}


def review(engine, record_id, label):
    with write_transaction(engine) as connection:
        statement = update(inspections).where(inspections.c.id == record_id)
        connection.execute(statement.values(reviewed_label=label))


def add(engine, *rows):
    with write_transaction(engine) as connection:
        shadow_results.add_shadow_results(connection, rows)


def report(engine, candidate=CANDIDATE):
    with engine.connect() as connection:
        return shadow_results.report_candidate(connection, candidate, "1", {"busy": 3})


def test_differing_predictions_without_a_review_are_queued_first(inspected):
    with write_transaction(inspected) as connection:
        enqueue(connection, [(1, Priority.CHANCE), (5, Priority.CHANCE)])
    review(inspected, 2, "good")
    labels = {1: "good", 2: "good", 3: "spot", 4: "scratch", 6: "good"}
    add(inspected, *(prediction(number, label) for number, label in labels.items()))
    with inspected.connect() as connection:
        order = [review_queue.c.priority, review_queue.c.record_id]
        queued = connection.execute(select(*order).order_by(*order)).all()
        worths = connection.execute(select(pictures.c.worth).order_by(pictures.c.sha256)).scalars().all()
    assert queued == [(0, 1), (0, 3), (0, 6), (1, 5)]
    assert worths == [2, 2, 3, 4, 0, 2]


def test_the_report_counts_the_rows_of_its_candidate(inspected):
    assert report(inspected).since is None and report(inspected).reviewed == CandidateVerdicts()
    other = CANDIDATE.model_copy(update={"sha256": "bb"})
    labels = {2: "good", 3: "good", 4: "good", 5: "scratch", 6: "spot"}
    add(inspected, *(prediction(number, label) for number, label in labels.items()))
    add(inspected, prediction(1, "good", other))
    for record_id, label in ((1, "good"), (2, "good"), (3, "scratch"), (4, "spot"), (6, "unsure")):
        review(inspected, record_id, label)
    found = report(inspected)
    assert (found.model, found.serving, found.skipped) == (CANDIDATE, "1", {"busy": 3})
    assert (found.answered, found.differing, found.since) == (5, 4, BEGIN + timedelta(hours=2))
    assert found.reviewed == CandidateVerdicts(candidate=1, serving=1, neither=1, unsure=1)
    assert report(inspected, other).reviewed == CandidateVerdicts(candidate=1)


def test_differences_are_listed_with_both_verdicts_and_the_review(inspected):
    other = CANDIDATE.model_copy(update={"sha256": "bb"})
    labels = {2: "good", 3: "not_inspected", 4: "scratch", 6: "spot"}
    add(inspected, *(prediction(number, label) for number, label in labels.items()))
    add(inspected, prediction(1, "good", other))
    review(inspected, 6, "spot")

    def list_page(before, limit, candidate=CANDIDATE):
        with inspected.connect() as connection:
            return shadow_results.list_differences(connection, candidate, before, limit)

    page = list_page(None, 2)
    assert page.model == CANDIDATE and page.next_before == 3
    newest, refused = page.differences
    assert (newest.record_id, newest.reviewed_label) == (6, "spot")
    assert (newest.serving.label, newest.candidate.label, newest.candidate.score) == ("scratch", "spot", 0.1)
    assert newest.candidate.version == "2" != newest.serving.version
    assert (refused.candidate.label, refused.candidate.score) == ("not_inspected", None)
    last = list_page(page.next_before, 2)
    assert [each.record_id for each in last.differences] == [2] and last.next_before is None
    assert last.differences[0].reviewed_label is None
    assert list_page(2, 2).differences == []
    assert [each.record_id for each in list_page(None, 9, other).differences] == [1]
