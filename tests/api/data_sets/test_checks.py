"""Rows of checks: kept alive, interrupted, repeated."""

from datetime import UTC, datetime, timedelta

import pytest

from api.data_sets.checks import INTERRUPTED, finish_check, keep_check_alive, show_check, start_check
from api.errors import RequestError
from api.messages.causes import Cause, Failure
from tests.api.data_sets.filled_data_set import NOW


def test_a_check_that_was_not_kept_alive_is_failed_and_can_be_repeated(filled):
    filled.write(start_check, 3, "Ada", NOW)
    soon, late = NOW + timedelta(seconds=59), NOW + timedelta(seconds=61)
    with pytest.raises(RequestError, match="is being checked"):
        filled.write(start_check, 3, "Ada", soon)
    assert filled.read(show_check, soon).state == "running"
    shown = filled.read(show_check, late)
    assert (shown.state, shown.finished_at) == ("failed", NOW)
    assert (shown.error, shown.error_cause) == (INTERRUPTED.text, INTERRUPTED.cause)
    filled.write(start_check, 4, "Ben", late)
    filled.write(keep_check_alive, late + timedelta(seconds=50))
    shown = filled.read(show_check, late + timedelta(seconds=100))
    assert (shown.state, shown.checked, shown.started_by) == ("running", 4, "Ben")


def test_only_some_findings_are_shown(filled):
    filled.write(start_check, 3, "Ada", NOW)
    found = [{"kind": "size", "names": ["x"], "text": str(number)} for number in range(501)]
    filled.write(finish_check, "done", found, None, NOW)
    shown = filled.read(show_check, datetime.now(UTC))
    assert (len(shown.findings), shown.found) == (500, 501)
    assert shown.findings[0].photographs == [] and shown.findings[0].cause is None


def test_errors_and_findings_are_stored_with_their_causes(filled):
    cause = Cause(code="mask_empty", values={"mask": "'a'"})
    filled.write(start_check, 3, "Ada", NOW)
    found = [{"kind": "problem", "names": ["a"], "text": "Empty.", "cause": cause.model_dump()}]
    failure = Failure("Too slow.", Cause(code="reading_too_slow", values={"minutes": 1.5}))
    filled.write(finish_check, "failed", found, failure, NOW)
    shown = filled.read(show_check, NOW)
    assert (shown.error, shown.error_cause) == (failure.text, failure.cause)
    assert [one.cause for one in shown.findings] == [cause]
