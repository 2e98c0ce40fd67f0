"""Errors of the service in German."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from api.data_sets.imports import IMPORT
from api.data_sets.job_schemas import (
    DataSetCheck,
    DataSetImport,
    Finding,
    ImportList,
    ImportProblem,
    ImportResult,
    ProposalRun,
)
from api.messages.causes import Cause, Failure
from api.training.schemas import ProposalOrder, ProposalTraining, TrainingWorker, TrainingWorkerList
from segdec.schemas import AnswerPart
from tests.browser.conftest import serving
from tests.browser.german_page import translate_sentences


@pytest.fixture
def address(tmp_path) -> Iterator[str]:
    with serving(tmp_path) as service:
        yield service.address


def test_errors_are_shown_in_german_and_keep_details_with_values(address, visit):
    page = visit(address, locale="de-DE").open("parts")
    problems = [
        {"code": "name_taken", "detail": "There is already a data set 'A'."},
        {"code": "body_too_large", "detail": "Over 2 GB."},
        {
            "code": "unlike_training",
            "detail": "The photograph is black or almost black (lamp off, lens cap).",
        },
        {"code": "of_another_version", "detail": "Unknown."},
    ]
    name_taken, too_large, black, unknown = translate_sentences(
        page, "problem_text.js", "problemText", problems
    )
    assert name_taken == "Es gibt schon einen Datensatz mit diesem Namen."
    assert too_large == "Die Datei ist zu groß. (Over 2 GB.)"
    assert black.startswith("Das Bild ist schwarz") and unknown == "Unknown."


# === Stored errors ===

TIME = "2026-03-01T08:00:00Z"
PHOTOGRAPH = {"id": 1, "name": "a"}
EMPTY = Cause(code="mask_empty", values={"mask": "masks/a.png"})
STOPPED = Failure("Stopped.", Cause(code="proposals_stopped", values={"times": 5}))
EARLIER = "An error of an earlier version."
STARTED: dict[str, Any] = {
    "id": 1,
    "started_at": TIME,
    "started_by": "unknown person at 10.0.0.1",
    "finished_at": TIME,
    "state": "failed",
}


def dump(answer: AnswerPart) -> Any:
    return answer.model_dump(mode="json")


def imports() -> Any:
    """A failed import with a photograph that was left out, and one of an earlier version."""
    problem = ImportProblem(name="a", text="The mask is empty.", cause=EMPTY)
    failed = {"error": IMPORT.interrupted.text, "error_cause": IMPORT.interrupted.cause}
    earlier = {"error": EARLIER, "error_cause": None}
    other = ImportProblem(name="b", text="Left out.")
    both = [
        DataSetImport(name="a.zip", **STARTED, **why, result=ImportResult(problems=[one]))
        for one, why in ((problem, failed), (other, earlier))
    ]
    return dump(ImportList(imports=both))


def check() -> Any:
    cause = Cause(code="reading_memory", values={"gigabytes": 2.5})
    found = {"photographs": [PHOTOGRAPH], "text": "English."}
    findings = [
        Finding(kind="problem", **found, cause=EMPTY),
        Finding(
            kind="size", **found, cause=Cause(code="unusual_size", values={"size": "1×2", "usual": "3×4"})
        ),
    ]
    answer = {"checked": 2, "findings": findings, "found": 2, "error": "Memory.", "error_cause": cause}
    return dump(DataSetCheck(**STARTED, **answer))


def proposals() -> Any:
    cause = Cause(code="too_many_pixels", values={"name": "a", "detail": "It has 9 pixels."})
    counts = {"photographs": 1, "done": 1, "proposed": 0, "left_out": 1}
    failed = {"error": STOPPED.text, "error_cause": STOPPED.cause}
    problem = {"problem": "a: It has 9 pixels.", "problem_cause": cause}
    return dump(ProposalRun(**STARTED, **counts, **problem, **failed, model="m", version="1"))


def ordered_proposals() -> Any:
    later, used = "2026-03-01T09:00:00Z", {"model": "m", "version": "1", "minutes": 2.0, "training_job": 7}
    states = {"job_state": "done", "reason": None, "state": "failed"}
    failed = {"error": STOPPED.text, "error_cause": STOPPED.cause}
    latest = ProposalOrder(**used, **states, **failed, ordered_at=later, ordered_by="Ada")
    counts = {"needed_parts": 3, "good_parts": 3, "defective_parts": 3, "unlabelled": 1}
    return dump(ProposalTraining(**counts, latest=latest))


def worker() -> Any:
    cause = Cause(code="worker_version", values={"version": "0.1", "service": "0.2"})
    times = {"first_seen_at": TIME, "seen_at": TIME}
    about = {"name": "w", "key": "k", "version": "0.1", "machine": {}, "address": None, "job": None}
    found = TrainingWorker(**about, **times, rank=None, problem="Version.", problem_cause=cause)
    return dump(TrainingWorkerList(workers=[found]))


@pytest.mark.parametrize(
    ("path", "address_part", "answer", "texts"),
    [
        (
            "datasets?id=1",
            "imports",
            imports,
            {
                "#imports li:nth-child(1) .hint": "Unbekannt (10.0.0.1)",
                "#imports": "Der Dienst wurde während des Imports gestoppt.",
                "#imports li:nth-child(1) details": "a: Die Maske masks/a.png markiert keinen Fehler",
                "#imports li:nth-child(2) .problem": EARLIER,
                "#imports li:nth-child(2) details": "Left out.",
            },
        ),
        (
            "datasets?id=1",
            "check",
            check,
            {
                "#check-state": "Fehlgeschlagen: Das Lesen brauchte mehr als 2,5 GB Speicher",
                "#findings li:nth-child(1)": "Die Maske masks/a.png markiert keinen Fehler",
                "#findings li:nth-child(2)": "Es hat 1×2 Pixel, die meisten Bilder 3×4.",
            },
        ),
        (
            "datasets?id=1",
            "proposals",
            proposals,
            {
                "#proposals-state": "Fehlgeschlagen: Der Dienst wurde 5-mal gestoppt",
                "#proposals-problem": "a: Das Bild hat zu viele Pixel. (It has 9 pixels.)",
            },
        ),
        (
            "datasets?id=1",
            "proposals/training",
            ordered_proposals,
            {"#proposals-training": "nichts vorgeschlagen: Der Dienst wurde 5-mal gestoppt"},
        ),
        ("train", "workers", worker, {"#workers": "Der Trainingsrechner hat Version 0.1, der Dienst 0.2."}),
    ],
    ids=["imports", "check", "proposals", "ordered_proposals", "worker"],
)
def test_stored_errors_are_shown_in_german(visit, tmp_path, path, address_part, answer, texts):
    with serving(tmp_path, local_role="engineer") as service:
        httpx.post(
            f"{service.address}v1/data-sets", json={"name": "a", "classes": ["dent"]}
        ).raise_for_status()
        user = visit(service.address, locale="de-DE")
        user.page.route(f"**/{address_part}", lambda route: route.fulfill(json=answer()))
        page = user.open(path)
        for selector, text in texts.items():
            expect(page.locator(selector)).to_contain_text(text)
