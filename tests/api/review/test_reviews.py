"""Leases and reviews in both databases; the tests set the time."""

import itertools
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import Mock

import pytest
from sqlalchemy import select, update

from api.database.database import write_transaction
from api.errors import RequestError
from api.metrics import Metrics
from api.record import queries
from api.record.record_metrics import RecordMetrics
from api.record.review_queue import Priority, enqueue
from api.record.storage.retention import Retention, RetentionRules
from api.record.storage.retention_class import RetentionClass
from api.record.tables import audit, inspections, pictures, review_queue
from api.review import leases
from api.review.leases import LEASE_DURATION, MAX_PER_CLIENT, MAX_PER_PERSON, LeaseHolder, lease
from api.review.review_tasks import next_tasks
from api.review.reviews import ReviewChange, ReviewDecision, set_review, undo_review
from tests.api.record.databases import sqlite_only
from tests.api.record.filled_record import NOW, add_prediction, make_row, stock

SECOND = timedelta(seconds=1)


def take(engine, session="mine", count=1, skip=(), station=None, now=NOW, holder=None):
    with write_transaction(engine) as connection:
        return list(lease(connection, holder or LeaseHolder(session, session), count, skip, station, now))


def review(engine, label, record_id=1, revision=0, session="mine", now=NOW):
    change = ReviewChange(record_id, frozenset({str(revision)}), session, "Ada", now)
    with write_transaction(engine) as connection:
        return set_review(connection, change, ReviewDecision(label, now, "Ada"))


def undo(engine, record_id=1, revision=1, session="mine", now=NOW):
    with write_transaction(engine) as connection:
        return undo_review(
            connection, ReviewChange(record_id, frozenset({str(revision)}), session, "Ada", now)
        )


def fetch(engine, statement):
    with engine.connect() as connection:
        return connection.execute(statement).all()


def waiting(engine):
    ordered = review_queue.c.priority, review_queue.c.record_id
    return fetch(engine, select(review_queue.c.record_id, review_queue.c.priority).order_by(*ordered))


def class_of(engine, number):
    statement = select(pictures.c.worth).where(pictures.c.sha256 == number.to_bytes(32, "big"))
    return fetch(engine, statement)[0][0]


def test_tasks_are_ordered_by_priority_and_age(engine):
    reasons = ["defect", "near", "chance", "review", "chance", "defect"]
    stock(engine, [make_row(number, draw_reason=reason) for number, reason in enumerate(reasons)])
    with write_transaction(engine) as connection:
        enqueue(connection, [(6, Priority.CANDIDATE_DIFFERS)])
        add_prediction(connection, 6)
        tasks = next_tasks(connection, LeaseHolder("mine", "here"), 5, (), None, NOW).tasks
    expected = {6: "candidate_differs", 3: "chance", 5: "chance", 2: "doubtful", 4: "doubtful"}
    assert [(task.record.record_id, task.why) for task in tasks] == list(expected.items())
    assert [(said.version, said.label) for said in tasks[0].shadows] == [("2", "good")]
    assert tasks[1].shadows == []


def test_a_lease_expires_unless_it_is_renewed(engine):
    stock(engine, [make_row(number) for number in range(2)])
    assert take(engine) == [1]
    assert take(engine, "other", count=5) == [2]
    assert take(engine, now=NOW + LEASE_DURATION - SECOND) == [1]
    assert take(engine, "third", count=5, now=NOW + LEASE_DURATION) == [2]
    assert take(engine, "other", count=5, now=NOW + 2 * LEASE_DURATION - SECOND) == [1]
    assert take(engine, now=NOW + 2 * LEASE_DURATION - SECOND) == []


def test_sessions_of_one_reviewer_or_client_do_not_lease_the_whole_queue(engine):
    stock(engine, [make_row(number) for number in range(MAX_PER_CLIENT + 20)])
    leased = select(review_queue.c.leased_to).where(review_queue.c.leased_to.is_not(None))
    for number in range(8):
        holder = LeaseHolder(f"session {number}", "key line", "Ada")
        assert len(take(engine, holder=holder, count=5, now=NOW + number * SECOND)) == 5
    held = Counter(session for (session,) in fetch(engine, leased))
    assert held.total() == MAX_PER_PERSON and held["session 7"] == 5
    for number in range(20):
        holder = LeaseHolder(f"tab {number}", "key line", f"name {number}")
        assert len(take(engine, holder=holder, count=5, now=NOW + 10 * SECOND)) == 5
    assert len(fetch(engine, leased)) == MAX_PER_CLIENT
    assert len(take(engine, holder=LeaseHolder("one", "key other", "Ada"), count=20)) == 20


@sqlite_only
def test_a_lease_made_before_the_clock_was_set_back_expires(engine):
    stock(engine, [make_row(0)])
    assert take(engine, now=NOW + timedelta(days=400)) == [1]
    assert take(engine, "other", now=NOW) == [1]
    assert take(engine, now=NOW - 10 * SECOND) == []  # a lease by a slightly different clock is valid


def run_together(work, *args):
    """Calls `work` with each argument at the same time, in threads; returns the results."""
    begin = threading.Barrier(len(args))

    def wait_and_work(arg):
        begin.wait(timeout=30)
        return work(arg)

    with ThreadPoolExecutor(len(args)) as threads:
        return list(threads.map(wait_and_work, args))


def test_two_sessions_never_get_the_same_task(engine):
    stock(engine, [make_row(number) for number in range(12)])
    taken = run_together(lambda session: take(engine, session, count=4), "one", "two", "three")
    assert sorted(itertools.chain(*taken)) == list(range(1, 13))


def test_one_of_two_simultaneous_reviews_is_rejected(engine):
    stock(engine, [make_row(0)])

    def work(label):
        try:
            return review(engine, label, session=None)["reviewed_label"]
        except RequestError as error:
            return error.code

    answers = run_together(work, "good", "scratch")
    answers.remove("changed_meanwhile")
    assert fetch(engine, select(inspections.c.reviewed_label)) == [(answers[0],)]
    assert len(fetch(engine, select(audit.c.id))) == 1


@sqlite_only
def test_tasks_without_a_picture_are_removed_in_bounded_steps(engine, monkeypatch):
    monkeypatch.setattr(leases, "DELETE_BATCH", 3)
    monkeypatch.setattr(leases, "MAX_STEPS", 3)
    stock(engine, [make_row(number) for number in range(9)])
    lost = [number.to_bytes(32, "big") for number in range(7)]
    with write_transaction(engine) as connection:
        queries.change_picture_states(connection, lost, "kept", "lost")
    assert take(engine) == []
    assert take(engine) == [8]
    assert [record_id for record_id, _ in waiting(engine)] == [8, 9]


def test_retention_removes_deleted_pictures_from_the_queue(engine):
    stock(engine, [make_row(number) for number in range(3)])
    old = update(pictures).where(pictures.c.sha256 == (1).to_bytes(32, "big"))
    with write_transaction(engine) as connection:
        connection.execute(old.values(stored_at=NOW - timedelta(days=9999)))
    store, rules = Mock(space=lambda: None), RetentionRules({RetentionClass.DEFECT: 5000}, None, 0.0)
    metrics = Metrics(lambda: 0, lambda: True)
    Retention(engine, store, rules, Mock(), Mock(), RecordMetrics(metrics)).run()
    assert [record_id for record_id, _ in waiting(engine)] == [1, 3]
    assert b"segdec_record_waiting 2.0" in metrics.render()[0]


def test_inspections_with_a_review_or_without_a_picture_are_not_queued(engine):
    stock(engine, [make_row(number, draw=1.0, draw_probability=0.5) for number in range(3)])
    assert waiting(engine) == []
    review(engine, "good", 1)
    with write_transaction(engine) as connection:
        queries.change_picture_states(connection, [(1).to_bytes(32, "big")], "kept", "expired")
        enqueue(connection, [(number, Priority.CANDIDATE_DIFFERS) for number in (1, 2, 3)])
    assert waiting(engine) == [(3, 0)]


def test_an_undone_review_restores_priority_and_retention_class(engine):
    rows = [make_row(0, draw_reason="near"), make_row(1, draw=1.0, draw_probability=0.0)]
    stock(engine, [*rows, make_row(2, draw_reason="chance", label="good")])
    with write_transaction(engine) as connection:
        add_prediction(connection, 3)
    for number in (1, 2, 3):
        review(engine, "good", number)
        assert class_of(engine, number - 1) == RetentionClass.REVIEWED
    assert waiting(engine) == []
    for number in (1, 2, 3):
        undo(engine, number)
    assert waiting(engine) == [(3, Priority.CANDIDATE_DIFFERS), (1, Priority.DOUBTFUL), (2, Priority.ASKED)]
    classes = [RetentionClass.DEFECT, RetentionClass.DEFECT, RetentionClass.TO_REVIEW]
    assert [class_of(engine, number) for number in range(3)] == classes
    assert take(engine, "other", count=5) == []


@sqlite_only
def test_a_picture_with_another_review_stays_reviewed(engine):
    stock(engine, [make_row(0), make_row(1, picture=bytes(32))])
    review(engine, "good", 1)
    review(engine, "scratch", 2)
    undo(engine, 1)
    assert class_of(engine, 0) == RetentionClass.REVIEWED
    undo(engine, 2)
    assert class_of(engine, 0) == RetentionClass.DEFECT


@sqlite_only
def test_undo_restores_the_review_before(engine):
    stock(engine, [make_row(0)])
    steps = [("review", "good"), ("review", "scratch"), ("undo", "good")]
    steps += [("review", "unsure"), ("undo", "good"), ("undo", None)]
    for revision, (change, after) in enumerate(steps):
        if change == "review":
            review(engine, after, revision=revision)
        else:
            undo(engine, revision=revision)
        found = fetch(engine, select(inspections.c.reviewed_label, inspections.c.revision))
        assert found == [(after, revision + 1)]
    with pytest.raises(RequestError, match="nothing to undo"):
        undo(engine, revision=6)
    entries = fetch(engine, select(audit.c.what, audit.c.after).order_by(audit.c.id))
    assert [(what, json.loads(after)["reviewed_label"]) for what, after in entries] == steps
