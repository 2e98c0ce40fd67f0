"""Leases and reviews in the database itself, on SQLite and PostgreSQL; the time is given."""

import json
import shutil
import threading
from datetime import timedelta
from unittest.mock import Mock

import pytest
from alembic import command
from sqlalchemy import delete, insert, select, text, update

from api.errors import RequestError
from api.metrics import Metrics
from api.records import queries
from api.records.database import migrations, open_database, writing
from api.records.record_metrics import RecordMetrics
from api.records.review import leases
from api.records.review.leases import LEASE_DURATION, lease
from api.records.review.review_queue import Priority, enqueue
from api.records.review.reviews import ReviewChange, ReviewDecision, set_review, undo_review
from api.records.storage.retention import Retention, RetentionRules
from api.records.storage.retention_class import RetentionClass
from api.records.tables import audit, draws, inspections, pictures, review_queue, shadows
from tests.api.records.filled_record import NOW, empty, make_row, open_stocked, stock

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def empty_record(request, tmp_path_factory):
    """The URL of a record that was just made."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('empty')}/record.db"
    else:
        url = request.getfixturevalue("make_database")()
    open_stocked(url).dispose()
    return url


@pytest.fixture
def engine(empty_record, tmp_path):
    if empty_record.startswith("postgresql"):
        engine = open_database(empty_record)
        empty(engine)
    else:
        shutil.copy(empty_record.removeprefix("sqlite:///"), tmp_path / "record.db")
        engine = open_database(f"sqlite:///{tmp_path}/record.db")
    yield engine
    engine.dispose()


def take(engine, session="mine", count=1, skip=(), station=None, now=NOW):
    with writing(engine) as connection:
        return [task.row["id"] for task in lease(connection, session, count, skip, station, now)]


def say(engine, label, record_id=1, revision=0, session="mine", now=NOW):
    with writing(engine) as connection:
        return set_review(
            connection,
            ReviewChange(record_id, revision, session, "Ada", now),
            ReviewDecision(label, now, "Ada"),
        )


def take_back(engine, record_id=1, revision=1, session="mine", now=NOW):
    with writing(engine) as connection:
        return undo_review(connection, ReviewChange(record_id, revision, session, "Ada", now))


def ask(engine, statement):
    with engine.connect() as connection:
        return connection.execute(statement).all()


def waiting(engine):
    ordered = review_queue.c.priority, review_queue.c.record_id
    return ask(engine, select(review_queue.c.record_id, review_queue.c.priority).order_by(*ordered))


def worth_of(engine, number):
    return ask(engine, select(pictures.c.worth).where(pictures.c.sha256 == number.to_bytes(32, "big")))[0][0]


def test_what_is_urgent_comes_first_and_of_that_the_oldest(engine):
    reasons = ["defect", "near", "chance", "review", "chance", "defect"]
    stock(engine, [make_row(number, draw_reason=reason) for number, reason in enumerate(reasons)])
    with writing(engine) as connection:
        enqueue(connection, [(6, Priority.CANDIDATE_DIFFERS)])
        verdict = {"model": "m", "version": "2", "inspected_at": NOW, "label": "good", "score": 0.1}
        connection.execute(insert(shadows), {**verdict, "record_id": 6, "log_odds": -2, "differs": True})
        tasks = lease(connection, "mine", 5, (), None, NOW)
    assert [(task.row["id"], task.priority) for task in tasks] == [(6, 0), (3, 1), (5, 1), (2, 2), (4, 2)]
    assert [(said["version"], said["label"]) for said in tasks[0].shadows] == [("2", "good")]
    assert tasks[1].shadows == []


def test_a_lease_ends_by_itself_and_each_call_renews_it(engine):
    stock(engine, [make_row(number) for number in range(2)])
    assert take(engine) == [1]
    assert take(engine, "other", count=5) == [2]
    assert take(engine, now=NOW + LEASE_DURATION - SECOND) == [1]
    assert take(engine, "third", count=5, now=NOW + LEASE_DURATION) == [2]
    assert take(engine, "other", count=5, now=NOW + 2 * LEASE_DURATION - SECOND) == [1]
    assert take(engine, now=NOW + 2 * LEASE_DURATION - SECOND) == []


def test_a_lease_of_a_clock_that_was_put_back_does_not_last(engine):
    stock(engine, [make_row(0)])
    assert take(engine, now=NOW + timedelta(days=400)) == [1]
    assert take(engine, "other", now=NOW) == [1]
    assert take(engine, now=NOW - 10 * SECOND) == []  # a lease by a slightly different clock is valid


def test_two_sessions_never_get_the_same(engine):
    stock(engine, [make_row(number) for number in range(12)])
    taken, begin, failures = [], threading.Barrier(3), []

    def work(session):
        try:
            begin.wait(timeout=30)
            for _ in range(2):
                taken.extend(take(engine, session, count=2, skip=[]))
                with writing(engine) as connection:
                    done = connection.execute(
                        select(review_queue.c.record_id).where(review_queue.c.leased_to == session)
                    ).scalars()
                    connection.execute(delete(review_queue).where(review_queue.c.record_id.in_(done.all())))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"session {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(taken) == list(range(1, 13))


def test_of_two_at_once_one_is_told_that_it_changed(engine):
    stock(engine, [make_row(0)])
    answers, begin = [], threading.Barrier(2)

    def work(label):
        begin.wait(timeout=30)
        try:
            say(engine, label, session=None)
            answers.append(label)
        except RequestError as error:
            answers.append(error.code)

    threads = [threading.Thread(target=work, args=(label,)) for label in ("good", "scratch")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.remove("changed_meanwhile")
    assert ask(engine, select(inspections.c.reviewed_label)) == [(answers[0],)]
    assert len(ask(engine, select(audit.c.id))) == 1


@pytest.mark.parametrize("gone", [7])
def test_what_has_no_picture_is_taken_out_in_bounded_steps(engine, monkeypatch, gone):
    monkeypatch.setattr(leases, "DELETE_BATCH", 3)
    monkeypatch.setattr(leases, "MAX_STEPS", 3)
    stock(engine, [make_row(number) for number in range(9)])
    lost = [number.to_bytes(32, "big") for number in range(gone)]
    with writing(engine) as connection:
        connection.execute(update(pictures).where(pictures.c.sha256.in_(lost)).values(state="lost"))
    found = take(engine)
    assert found == []
    assert take(engine) == [gone + 1]
    assert [record_id for record_id, _ in waiting(engine)] == list(range(gone + 1, 10))


def test_retention_takes_what_it_deletes_out_of_the_queue(engine):
    stock(engine, [make_row(number) for number in range(3)])
    old = {"stored_at": NOW - timedelta(days=9999)}
    with writing(engine) as connection:
        connection.execute(update(pictures).where(pictures.c.sha256 == (1).to_bytes(32, "big")).values(old))
    metrics = Metrics(lambda: 0, lambda: True)
    store = Mock(space=lambda: None)
    rules = RetentionRules({RetentionClass.DEFECT: 5000}, None, 0.0)
    Retention(engine, store, rules, Mock(), Mock(), RecordMetrics(metrics)).run()
    assert [record_id for record_id, _ in waiting(engine)] == [1, 3]
    assert b"segdec_record_waiting 2.0" in metrics.render()[0]


def test_only_what_can_be_looked_at_and_is_not_reviewed_is_put_up(engine):
    stock(engine, [make_row(number, draw=1.0, draw_probability=0.5) for number in range(3)])
    assert waiting(engine) == []
    say(engine, "good", 1)
    with writing(engine) as connection:
        queries.change_picture_states(connection, [(1).to_bytes(32, "big")], "kept", "expired")
        enqueue(connection, [(number, Priority.CANDIDATE_DIFFERS) for number in (1, 2, 3)])
    assert waiting(engine) == [(3, 0)]


def test_what_is_taken_back_waits_as_it_did_before(engine):
    rows = [make_row(0, draw_reason="near"), make_row(1, draw=1.0, draw_probability=0.0)]
    stock(engine, [*rows, make_row(2, draw_reason="chance", label="good")])
    with writing(engine) as connection:
        verdict = {"model": "m", "version": "2", "inspected_at": NOW, "label": "good", "score": 0.1}
        connection.execute(insert(shadows), {**verdict, "record_id": 3, "log_odds": -2, "differs": True})
    for number in (1, 2, 3):
        say(engine, "good", number)
        assert worth_of(engine, number - 1) == RetentionClass.REVIEWED
    assert waiting(engine) == []
    for number in (1, 2, 3):
        take_back(engine, number)
    assert waiting(engine) == [(3, Priority.CANDIDATE_DIFFERS), (1, Priority.DOUBTFUL), (2, Priority.ASKED)]
    assert [worth_of(engine, number) for number in range(3)] == [
        RetentionClass.DEFECT,
        RetentionClass.DEFECT,
        RetentionClass.TO_REVIEW,
    ]
    assert take(engine, "other", count=5) == []


def test_a_picture_that_another_review_shows_stays_reviewed(engine):
    stock(engine, [make_row(0), make_row(1, picture=bytes(32))])
    say(engine, "good", 1)
    say(engine, "scratch", 2)
    take_back(engine, 1)
    assert worth_of(engine, 0) == RetentionClass.REVIEWED
    take_back(engine, 2)
    assert worth_of(engine, 0) == RetentionClass.DEFECT


def test_undoing_goes_back_word_by_word_whatever_was_said_in_between(engine):
    stock(engine, [make_row(0)])

    def label():
        return ask(engine, select(inspections.c.reviewed_label, inspections.c.revision))[0]

    say(engine, "good", revision=0)
    say(engine, "scratch", revision=1)
    take_back(engine, revision=2)
    assert label() == ("good", 3)
    say(engine, "unsure", revision=3)
    take_back(engine, revision=4)
    assert label() == ("good", 5)
    take_back(engine, revision=5)
    assert label() == (None, 6)
    with pytest.raises(RequestError, match="nothing to undo"):
        take_back(engine, revision=6)
    lines = ask(engine, select(audit.c.what, audit.c.before, audit.c.after).order_by(audit.c.id))
    said = [
        (what, *(json.loads(told)["reviewed_label"] for told in (before, after)))
        for what, before, after in lines
    ]
    assert said == [
        ("review", None, "good"),
        ("review", "good", "scratch"),
        ("undo", "scratch", "good"),
        ("review", "good", "unsure"),
        ("undo", "unsure", "good"),
        ("undo", "good", None),
    ]


def test_a_change_that_fails_leaves_nothing(engine, monkeypatch):
    stock(engine, [make_row(0)])
    monkeypatch.setattr(queries, "add_audit_entry", Mock(side_effect=OSError))
    with pytest.raises(OSError):
        say(engine, "good")
    assert waiting(engine) == [(1, Priority.DEFECT)]
    assert ask(engine, select(inspections.c.reviewed_label, inspections.c.revision)) == [(None, 0)]
    assert worth_of(engine, 0) == RetentionClass.DEFECT


def plan(connection, statement, *without):
    """How the database finds what is asked, in its words; PostgreSQL `without` what few rows allow."""
    sqlite = connection.dialect.name == "sqlite"
    asked = statement.compile(connection, compile_kwargs={"render_postcompile": True})
    explain = "EXPLAIN QUERY PLAN " if sqlite else "EXPLAIN "
    for way in () if sqlite else without:
        connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
    words = tuple(asked.params[name] for name in asked.positiontup) if sqlite else asked.params
    return str(connection.exec_driver_sql(explain + str(asked), words).all())


@pytest.mark.parametrize(
    ("station", "index"), [(None, "review_queue_by_priority"), ("s", "review_queue_by_station")]
)
def test_the_next_is_found_by_the_index_of_the_queue_alone(engine, station, index):
    with engine.connect() as connection:
        found = plan(
            connection, leases.available_ids([7], station, NOW).limit(1), "seqscan", "bitmapscan", "sort"
        )
    assert index in found and "TEMP B-TREE" not in found and "Sort" not in found
    assert "inspections" not in found


def test_a_record_of_before_gets_its_queue_and_its_counts(database_url):
    engine = open_database(database_url)
    with writing(engine) as connection:
        config = migrations()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        there = {"bytes": 1, "format": "png", "worth": 2, "stored_at": NOW}
        states = enumerate(("kept", "kept", "expired"))
        shown = [{**there, "sha256": n.to_bytes(32, "big"), "state": state} for n, state in states]
        connection.execute(insert(pictures), shown)
        rows = [make_row(0), make_row(1, draw=0.9, draw_probability=0.02, draw_reason="chance"), make_row(2)]
        connection.execute(insert(inspections), rows)
        command.upgrade(config, "head")
    assert waiting(engine) == [(1, Priority.DEFECT)]
    counted = ask(engine, select(draws).order_by(draws.c.draw_reason))
    assert [tuple(row) for row in counted] == [(NOW, "", "chance", 0.02, 1), (NOW, "", "defect", 1.0, 2)]
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM draws")).scalar() == 2
    engine.dispose()
