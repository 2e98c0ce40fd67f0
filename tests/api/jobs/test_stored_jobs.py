"""Rows of jobs: kept alive, interrupted, replaced."""

from dataclasses import replace
from datetime import timedelta

import pytest

from api.data_sets.definitions import create_data_set
from api.errors import RequestError
from api.jobs.stored_jobs import (
    find_job,
    find_latest_job,
    finish_job,
    list_jobs,
    list_running,
    save_progress,
    start_job,
)
from api.messages.causes import Cause, Failure
from tests.api.data_sets.filled_data_set import NOW
from tests.api.jobs.trial_job import TRIAL, Steps

ONLY = replace(TRIAL, name="only", only_latest=True)


def after(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def start(record, data_set):
    """Starts a job; returns its id."""
    return lambda kind=TRIAL, now=NOW: record.change(start_job, kind, data_set, Steps(), "Ada", now)


@pytest.fixture
def show(record, data_set):
    """Returns the latest job of a kind."""
    return lambda now, kind=TRIAL: record.query(find_latest_job, kind, data_set, now)


@pytest.mark.parametrize("later", [61, -61])
def test_a_job_that_was_not_kept_alive_is_failed_also_if_the_clock_was_set_back(
    record, data_set, start, show, later
):
    number = start()
    assert show(after(59)).state == show(after(-59)).state == "running"
    assert record.query(list_running, data_set, after(59)) == ["trial"]
    shown = show(after(later))
    assert (shown.id, shown.state, shown.started_by, shown.finished_at) == (number, "failed", "Ada", NOW)
    assert (shown.error, shown.error_cause) == (TRIAL.interrupted.text, TRIAL.interrupted.cause)
    assert record.query(list_running, data_set, after(later)) == []
    record.change(save_progress, number, Steps(done=7), after(later))
    assert (show(after(later)).state, show(after(later)).done) == ("running", 7)


def test_an_end_is_stored_with_its_progress_and_cause(record, start, show):
    failure = Failure("Too slow.", Cause(code="reading_too_slow", values={"minutes": 1.5}))
    record.change(finish_job, start(), "failed", Steps(done=2), failure, after(5))
    shown = show(after(1000))
    assert (shown.state, shown.done, shown.finished_at) == ("failed", 2, after(5))
    assert (shown.error, shown.error_cause) == (failure.text, failure.cause)


def test_only_the_latest_job_is_kept_and_a_replaced_one_changes_nothing(record, start, show):
    first = start(ONLY)
    with pytest.raises(RequestError, match=r"is running: only\. Wait") as caught:
        start(ONLY, after(59))
    assert (caught.value.status, caught.value.code) == (409, "job_running")
    assert start() > first, "another kind"
    second = start(ONLY, after(61))
    with pytest.raises(RequestError, match="Another job has replaced"):
        record.change(save_progress, first, Steps(done=7), after(61))
    record.change(finish_job, first, "failed", Steps(), None, after(61))
    shown = show(after(61), ONLY)
    assert (shown.id, shown.state, shown.done) == (second, "running", 0)


def test_jobs_of_other_kinds_and_data_sets_are_not_shown(record, data_set, start):
    other = record.change(create_data_set, "Plates", ["dent"], "Ada", NOW)
    assert record.query(find_latest_job, TRIAL, data_set, NOW) is None
    numbers = [start() for _ in range(3)]
    start(ONLY)
    record.change(start_job, TRIAL, other, Steps(), "Ben", NOW)
    shown = record.query(list_jobs, TRIAL, data_set, NOW, 2)
    assert [one.id for one in shown] == [numbers[2], numbers[1]]
    assert record.query(find_job, TRIAL, data_set, numbers[0], NOW).id == numbers[0]
    assert record.query(find_job, TRIAL, other, numbers[0], NOW) is None
