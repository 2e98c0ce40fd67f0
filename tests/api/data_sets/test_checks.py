"""The answer about a check."""

import pytest

from api.data_sets.checks import CHECK_JOBS, show_check
from api.data_sets.job_schemas import CheckProgress
from api.jobs.stored_jobs import start_job
from api.messages.causes import Cause
from tests.api.data_sets.filled_data_set import NOW


@pytest.fixture
def show(filled):
    """Stores findings; returns the answer."""

    def show(*findings):
        progress = CheckProgress(checked=3, findings=list(findings))
        filled.write(lambda *of: start_job(of[0], CHECK_JOBS, of[1], progress, "Ada", NOW))
        return filled.read(show_check, NOW)

    return show


def test_only_some_findings_are_shown(show):
    shown = show(*({"kind": "size", "names": ["x"], "text": str(number)} for number in range(501)))
    assert (len(shown.findings), shown.found, shown.checked) == (500, 501, 3)
    assert shown.findings[0].photographs == [] and shown.findings[0].cause is None


def test_findings_have_their_causes_and_photographs(show, filled):
    cause = Cause(code="mask_empty", values={"mask": "'a'"})
    number = filled.add(1).id
    (found,) = show(
        {"kind": "problem", "names": ["1", "gone"], "text": "Empty.", "cause": cause.model_dump()}
    ).findings
    assert found.cause == cause
    assert [(one.id, one.name) for one in found.photographs] == [(number, "1")]
