"""Rows of checks: kept alive, interrupted, repeated."""

from datetime import UTC, datetime, timedelta

import pytest

from api.data_sets.checks import INTERRUPTED, finish_check, keep_check_alive, show_check, start_check
from api.errors import RequestError
from tests.api.data_sets.filled_data_set import NOW


def test_a_check_that_was_not_kept_alive_is_failed_and_can_be_repeated(filled):
    filled.write(start_check, 3, "Ada", NOW)
    soon, late = NOW + timedelta(seconds=59), NOW + timedelta(seconds=61)
    with pytest.raises(RequestError, match="is being checked"):
        filled.write(start_check, 3, "Ada", soon)
    assert filled.read(show_check, soon).state == "running"
    shown = filled.read(show_check, late)
    assert (shown.state, shown.error, shown.finished_at) == ("failed", INTERRUPTED, NOW)
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
    assert shown.findings[0].photographs == []
