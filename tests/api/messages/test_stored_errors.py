"""Errors in stored answers, in German."""

from typing import Any

from api.data_sets.imports import IMPORT_JOBS
from api.data_sets.job_schemas import (
    DataSetCheck,
    DataSetImport,
    Finding,
    ImportList,
    ImportProblem,
    ImportResult,
    ProposalRun,
)
from api.messages.answers import translate_answer
from api.messages.causes import Cause, Failure
from api.messages.language import find_language
from api.training.schemas import ProposalOrder, ProposalTraining, TrainingWorker, TrainingWorkerList
from segdec.schemas import AnswerPart

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


def translated(answer: Any) -> Any:
    return translate_answer(answer, find_language("de"))


def imports() -> Any:
    """A failed import with a photograph that was left out, and one of an earlier version."""
    problem = ImportProblem(name="a", text="The mask is empty.", cause=EMPTY)
    failed = {"error": IMPORT_JOBS.interrupted.text, "error_cause": IMPORT_JOBS.interrupted.cause}
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


def test_stored_errors_are_in_german():
    failed, earlier = translated(imports())["imports"]
    assert failed["started_by"] == "Unbekannt (10.0.0.1)"
    assert failed["error"].startswith("Der Dienst wurde während des Imports gestoppt.")
    found = failed["result"]["problems"][0]["text"]
    assert found.startswith("a: Die Maske masks/a.png markiert keinen Fehler")
    assert (earlier["error"], earlier["result"]["problems"][0]["text"]) == (EARLIER, "Left out.")
    checked = translated(check())
    assert checked["error"].startswith("Das Lesen brauchte mehr als 2,5 GB Speicher")
    first, second = (finding["text"] for finding in checked["findings"])
    assert first.startswith("Die Maske masks/a.png markiert keinen Fehler")
    assert second == "Es hat 1×2 Pixel, die meisten Bilder 3×4."
    proposed = translated(proposals())
    assert proposed["error"].startswith("Der Dienst wurde 5-mal gestoppt")
    assert proposed["problem"] == "a: Das Bild hat zu viele Pixel. (It has 9 pixels.)"
    assert translated(ordered_proposals())["latest"]["error"].startswith("Der Dienst wurde 5-mal gestoppt")
    problem = translated(worker())["workers"][0]["problem"]
    assert problem.startswith("Der Trainingsrechner hat Version 0.1, der Dienst 0.2.")
