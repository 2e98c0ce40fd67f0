"""Rows of trainings for proposals: which labels they need, and which are due."""

from dataclasses import replace

import pytest

from api.data_sets.definitions import create_data_set
from api.data_sets.names import IGNORE
from api.data_sets.photographs import remove_photograph
from api.database.database import write_transaction
from api.errors import RequestError
from api.record.storage.pictures import FolderPictures
from api.training.jobs import cancel_job, change_job
from api.training.proposal_orders import (
    LabelCounts,
    change_order,
    check_labels,
    count_labels,
    create_order,
    list_due,
    show_training,
)
from api.training.schemas import NewTrainingJob
from tests.api.data_sets.filled_data_set import CLASSES, NOW
from tests.api.record.databases import both_databases
from tests.api.training.conftest import fill


@pytest.fixture
def filled(engine, tmp_path):
    """A data set without photographs."""
    first = fill(engine, FolderPictures(tmp_path / "data_sets"))
    with write_transaction(engine) as connection:
        return replace(first, id=create_data_set(connection, "Others", CLASSES, "Ada", NOW))


def order(jobs, model="brackets"):
    new = NewTrainingJob(data_set=jobs.data_set, data_set_version=1, model=model, minutes=2.0)
    return jobs.do(create_order, new, (), "Ada", NOW)


@both_databases
def test_parts_are_counted_and_a_defect_makes_a_part_defective(filled):
    assert filled.read(count_labels) == LabelCounts(0, 0, 0)
    labels = [("a", "good"), ("a", "scratch"), ("b", "good"), ("b", "good"), ("", "good"), ("", "good")]
    labels += [("", "dent"), ("c", IGNORE), ("d", None)]
    for number, (part, label) in enumerate(labels):
        added = filled.add(number, part=part).id
        if label is not None:
            filled.annotate(added, label)
    removed = filled.add(99).id
    filled.annotate(removed, "good")
    filled.write(remove_photograph, removed, "Ada", NOW)
    assert filled.read(count_labels) == LabelCounts(good_parts=3, defective_parts=2, unlabelled=1)
    with pytest.raises(RequestError, match="3 good and 2 defective parts for training have a label"):
        filled.read(check_labels)
    filled.annotate(filled.add(100).id, "dent")
    filled.read(check_labels)


@both_databases
def test_parts_that_do_not_train_are_not_counted(filled):
    placed = [("a", "test"), ("a", None), ("b", "test"), ("b", "train"), ("c", "left_out"), ("c", None)]
    placed += [("", "test"), ("", "fold_1"), ("", "val"), ("", None)]
    for number, (part, split) in enumerate(placed):
        filled.annotate(filled.add(number, part=part, split=split).id, "good")
    # Of a: none; b: one in train; c: the one without a split is in train; then fold_1, val and none.
    assert filled.read(count_labels) == LabelCounts(good_parts=5, defective_parts=0, unlabelled=0)


def test_without_an_unlabelled_photograph_there_is_nothing_to_propose(filled):
    for number in range(6):
        filled.annotate(filled.add(number).id, "good" if number < 3 else "dent")
    with pytest.raises(RequestError, match="All photographs of the data set are labelled"):
        filled.read(check_labels)


def test_one_training_for_proposals_at_a_time(jobs):
    first = order(jobs)
    with pytest.raises(RequestError, match=f"training job {first} runs already for proposals"):
        order(jobs)
    jobs.do(cancel_job, first, "Ada", NOW)
    second = order(jobs)
    shown = jobs.read(show_training, jobs.data_set).latest
    assert (shown.training_job, shown.job_state, shown.state) == (second, "queued", "waiting")
    assert (shown.model, shown.version, shown.minutes, shown.ordered_by) == ("brackets", "2", 2.0, "Ada")


@both_databases
def test_orders_are_due_when_their_training_is_done_until_they_end(jobs):
    first = order(jobs)
    assert jobs.read(list_due) == []
    jobs.do(change_job, first, state="done")
    assert [row["job_id"] for row in jobs.read(list_due)] == [first]
    jobs.do(change_order, first, state="started")
    assert [row["job_id"] for row in jobs.read(list_due)] == [first]
    jobs.do(change_order, first, state="ended")
    assert jobs.read(list_due) == []
    assert jobs.read(show_training, jobs.data_set).latest.state == "ended"
