"""A data set is deleted with all that belongs to it; what others have stays."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import DBAPIError

from api.data_sets.annotations import list_annotations
from api.data_sets.definitions import create_data_set, find_data_set
from api.data_sets.deletion import delete_data_set, delete_unused_files
from api.data_sets.imports import IMPORT_JOBS
from api.data_sets.job_schemas import ImportProgress
from api.data_sets.tables import (
    data_set_annotations,
    data_set_files,
    data_set_photographs,
    data_set_versions,
    deleted_data_sets,
)
from api.database.database import write_transaction
from api.errors import RequestError
from api.jobs.stored_jobs import KEEP_ALIVE_TIMEOUT_S, finish_job, start_job
from api.record.tables import audit
from api.training.job_deletion import delete_job
from api.training.jobs import cancel_job, check_no_training, create_job
from api.training.schemas import NewTrainingJob
from tests.api.data_sets.filled_data_set import NOW, mask_of, photograph_file
from tests.api.record.databases import both_databases

TABLES = (data_set_photographs, data_set_annotations, data_set_versions)


@pytest.fixture
def other(filled):
    """A second data set, which has the first photograph too."""
    with write_transaction(filled.engine) as connection:
        number = create_data_set(connection, "Plates", ["scratch", "dent"], "Ada", NOW)
    return replace(filled, id=number)


@pytest.fixture
def labelled(filled):
    """A data set with two photographs, a mask that was replaced, and a version."""
    filled.annotate(filled.add(1).id, "good")
    number = filled.add(2).id
    first = filled.annotate(number, "scratch", mask_of((1, 4, 4)))
    filled.make_version()
    filled.annotate(number, "dent", mask_of((2, 4, 4)), based_on=first)
    return filled


def delete(filled, name="Brackets", now=NOW):
    filled.write(check_no_training)
    filled.write(delete_data_set, name, "Eve", now)


def sweep(filled):
    while (last := delete_unused_files(filled.engine, filled.stored)) is not None:
        assert last


def counts(filled):
    with filled.engine.connect() as connection:
        return [connection.execute(select(func.count()).select_from(table)).scalar() for table in TABLES]


def files(filled):
    with filled.engine.connect() as connection:
        return {bytes(sha256) for sha256 in connection.execute(select(data_set_files.c.sha256)).scalars()}


def code_of(change):
    with pytest.raises(RequestError) as caught:
        change()
    return caught.value.status, caught.value.code


@both_databases
def test_nothing_is_left_but_its_name_and_an_audit_entry(labelled):
    stored = files(labelled)
    delete(labelled)
    assert files(labelled) == stored and all(labelled.stored.contains(one) for one in stored)
    sweep(labelled)
    assert counts(labelled) == [0, 0, 0] and files(labelled) == set()
    assert not any(labelled.stored.contains(one) for one in stored)
    assert code_of(lambda: labelled.read(find_data_set)) == (404, "data_set_not_found")
    with labelled.engine.connect() as connection:
        (deleted,) = connection.execute(select(deleted_data_sets)).all()
        last = select(audit).order_by(audit.c.id.desc()).limit(1)
        entry = connection.execute(last).mappings().one()
    assert (deleted.id, deleted.name, deleted.who) == (labelled.id, "Brackets", "Eve")
    assert (entry["who"], entry["what"]) == ("Eve", "delete a data set")
    assert '"name": "Brackets", "photographs": 2' in entry["before"]


@both_databases
def test_what_another_data_set_has_stays(labelled, other):
    number = other.add(1).id
    other.annotate(number, "scratch", mask_of((1, 4, 4)))
    other.make_version()
    delete(labelled)
    sweep(labelled)
    assert counts(other) == [1, 1, 1]
    assert len(files(other)) == 3  # photograph, mask and manifest
    assert all(other.stored.contains(one) for one in files(other))
    assert other.add(2).outcome == "added"
    assert other.stored.get(photograph_file(2).sha256) == photograph_file(2).data


def test_the_name_is_free_and_the_id_is_not_given_again(labelled):
    delete(labelled)
    with write_transaction(labelled.engine) as connection:
        assert create_data_set(connection, "Brackets", ["dent"], "Ada", NOW) > labelled.id
    assert code_of(lambda: delete(labelled)) == (404, "data_set_not_found")


def test_a_data_set_of_trainings_is_not_deleted(labelled):
    with write_transaction(labelled.engine) as connection:
        job_id = create_job(
            connection,
            NewTrainingJob(data_set=labelled.id, data_set_version=1, model="brackets"),
            (),
            "Ada",
            NOW,
        )
    with pytest.raises(
        RequestError, match=rf"brackets 1 \(training {job_id}\). Delete the trainings"
    ) as caught:
        delete(labelled)
    assert (caught.value.status, caught.value.code) == (409, "data_set_used")
    with write_transaction(labelled.engine) as connection:
        cancel_job(connection, job_id, "Ada", NOW)
    assert code_of(lambda: delete(labelled)) == (409, "data_set_used")
    with write_transaction(labelled.engine) as connection:
        delete_job(connection, job_id, (), "Ada")
    delete(labelled)


def test_a_running_import_comes_first_and_an_abandoned_one_does_not_prevent_it(labelled, other):
    parts = ImportProgress(name="parts.zip")
    for filled, name in ((labelled, "Brackets"), (other, "Plates")):
        with write_transaction(filled.engine) as connection:
            number = start_job(connection, IMPORT_JOBS, filled.id, parts, "Ada", NOW)
        assert code_of(lambda filled=filled, name=name: delete(filled, name)) == (409, "data_set_busy")
        if filled is labelled:
            with write_transaction(filled.engine) as connection:
                finish_job(connection, number, "done", parts, None, NOW)
            delete(filled, name)
        else:
            delete(filled, name, NOW + timedelta(seconds=KEEP_ALIVE_TIMEOUT_S + 1))


@both_databases
@pytest.mark.parametrize("table", ["data_set_annotations", "data_set_versions"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET id = id + 100"])
def test_only_the_rows_of_a_deleted_data_set_may_be_deleted(labelled, other, table, change):
    """Even with another data set in the table of deleted ones, and changes are never allowed."""
    deleted = {"id": other.id, "name": "Plates", "at": NOW, "who": "Eve"}
    with pytest.raises(DBAPIError, match="append-only"), write_transaction(labelled.engine) as connection:
        connection.execute(insert(deleted_data_sets), deleted)
        connection.execute(text(change.format(table)))
    if change.startswith("UPDATE"):
        with pytest.raises(DBAPIError, match="append-only"), write_transaction(labelled.engine) as connection:
            connection.execute(insert(deleted_data_sets), {**deleted, "id": labelled.id})
            connection.execute(text(change.format(table)))


@both_databases
def test_labels_of_other_people_are_complete_or_rejected(labelled):
    """While one deletes, seven label: each label was stored before, or its author gets an error."""
    number = labelled.add(3).id

    def attempt(person):
        try:
            if person == 3:
                delete(labelled)
                return "deleted"
            labelled.annotate(number, "dent", mask_of((2, person, person)), author=f"person {person}")
            return "labelled"
        except RequestError as refusal:
            return refusal.code

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(attempt, range(8)))
    assert outcomes[3] == "deleted"
    others = {outcome for place, outcome in enumerate(outcomes) if place != 3}
    known = {"labelled", "annotation_changed", "photograph_not_found", "data_set_not_found"}
    assert others <= known and outcomes.count("labelled") <= 1
    sweep(labelled)
    assert counts(labelled) == [0, 0, 0] and files(labelled) == set()
    assert not list(labelled.stored.marked())
    assert code_of(lambda: labelled.read(list_annotations, number)) == (404, "data_set_not_found")


def test_a_deletion_that_fails_deletes_nothing(labelled, monkeypatch):
    def fail(*_args, **_facts):
        raise OSError("the disk failed")

    monkeypatch.setattr("api.data_sets.deletion.add_audit_entry", fail)
    with pytest.raises(OSError, match="the disk failed"):
        delete(labelled)
    assert counts(labelled) == [2, 3, 1]
    assert all(labelled.stored.contains(one) for one in files(labelled))
    labelled.read(find_data_set)


@both_databases
def test_unused_files_are_found_in_batches_and_after_a_failure(labelled, monkeypatch):
    monkeypatch.setattr("api.data_sets.deletion.BATCH", 2)
    delete(labelled)
    stored = files(labelled)
    with monkeypatch.context() as patch:

        def fail(*_digests):
            raise OSError("the disk failed")

        patch.setattr(labelled.stored, "delete", fail)
        with pytest.raises(OSError, match="the disk failed"):
            delete_unused_files(labelled.engine, labelled.stored)
    assert files(labelled) == stored  # found again
    after, calls = b"", 0
    while after is not None:
        after, calls = delete_unused_files(labelled.engine, labelled.stored, after), calls + 1
    assert calls == len(stored) // 2 + 1 and files(labelled) == set()
