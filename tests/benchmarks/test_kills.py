import hashlib
import re

import numpy as np
import pytest

from benchmarks.serving import joint_kills, kills
from benchmarks.serving.joint_kills import check_joint_jobs
from benchmarks.serving.labeller import JOBS, ConfirmedDataSet, ConfirmedLabel, Labeller
from segdec.errors import RunError
from segdec.images import encode_png

MASK = np.eye(8, dtype=np.uint8)
MANIFEST = b'{"image": "photographs/%s.png"}\n'


class StoredAnswers:
    """Stands for the client: returns what a service has stored."""

    repeated = 0

    def __init__(self, answers):
        self.answers = answers

    def get(self, path):
        return self.answers[path.partition("?")[0]]

    def send(self, method, path):
        if method != "GET":
            if path not in self.answers:
                raise RunError(f"{method} {path}: 409")
            return None
        return type("Answer", (), {"content": self.answers[path]})


def labeller_of(answers):
    labeller = Labeller("http://test", ConfirmedDataSet(1), 8, 0)
    labeller.client.__exit__()
    labeller.client = StoredAnswers(answers)
    return labeller


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_lost_changed_and_repeated_labels_are_counted():
    path = "/v1/data-sets/1/photographs/7"
    stored = [{"id": 1, "label": "good"}, {"id": 2, "label": "dent"}, {"id": 9, "label": "good"}]
    listed = {"annotations": stored, "next_before": None}
    answers = {f"{path}/annotations": listed, f"{path}/mask?annotation=2": encode_png(MASK)}
    client = StoredAnswers(answers)
    right = [
        ConfirmedLabel(1, "good", None),
        ConfirmedLabel(2, "dent", MASK),
        ConfirmedLabel(9, "good", None),
    ]
    faults = ("fault: labels lost or changed", "fault: labels stored twice or by nobody")
    checked = kills.check_labels(client, ConfirmedDataSet(1, {7: right}))
    assert [checked[name] for name in faults] == [0, 0]
    other_mask, lost = ConfirmedLabel(2, "dent", MASK[::-1]), ConfirmedLabel(3, "good", None)
    wrong = [ConfirmedLabel(1, "scratch", None), other_mask, lost]
    checked = kills.check_labels(client, ConfirmedDataSet(1, {7: wrong}))
    assert [checked[name] for name in faults] == [3, 1]


def test_a_changed_manifest_or_file_is_counted():
    path, photograph = "/v1/data-sets/1/versions/1", b"a photograph"
    manifest = MANIFEST % digest(photograph).encode()
    answers = {f"{path}/manifest": manifest, f"{path}/files/{digest(photograph)}": photograph}
    client, data_set = StoredAnswers(answers), ConfirmedDataSet(1, versions={1: digest(manifest)})
    assert kills.check_versions(client, data_set) == {"confirmed versions": 1, "fault: versions changed": 0}
    answers[f"{path}/files/{digest(photograph)}"] = b"another one"
    assert kills.check_versions(client, data_set)["fault: versions changed"] == 1
    answers[f"{path}/files/{digest(photograph)}"] = photograph
    data_set.versions[1] = digest(b"another manifest")
    assert kills.check_versions(client, data_set)["fault: versions changed"] == 1


@pytest.mark.parametrize(
    ("job", "texts", "faults"),
    [
        ({"state": "done"}, ["The worker killed has the job.", "The job is done."], (0, 0)),
        ({"state": "failed", "reason": "No memory."}, ["The job is failed. No memory."], (0, 0)),
        ({"state": "failed", "reason": None}, ["The job is failed."], (0, 1)),
        ({"state": "done"}, ["The job is done.", "The job is done."], (1, 0)),
        ({"state": "running"}, ["The worker killed has the job."], (0, 1)),
        ({"state": "done"}, ["The job is done.", "The worker killed has the job."], (0, 1)),
    ],
)
def test_jobs_that_ended_twice_or_without_an_explanation_are_counted(job, texts, faults):
    events = [{"kind": "state", "content": text} for text in texts]
    labeller = labeller_of({JOBS: {"jobs": [{"id": 1, **job}]}, f"{JOBS}/1/events": {"events": events}})
    labeller.jobs = {1}
    checked = kills.check_jobs(labeller)
    names = ("fault: trainings that ended twice", "fault: states without an explanation")
    assert tuple(checked[name] for name in names) == faults
    assert checked["fault: confirmed trainings lost"] == 0
    labeller.jobs = {1, 2}
    assert kills.check_jobs(labeller)["fault: confirmed trainings lost"] == 1


def test_joint_trainings_without_a_model_are_counted(capsys):
    begins = {"kind": "state", "content": "The workers chief, member have the job."}
    printed = {"kind": "output", "content": ["a line"]}
    answers = {f"{JOBS}/{number}/events": {"events": [begins, printed, begins]} for number in (1, 2)}
    checked = check_joint_jobs(StoredAnswers({**answers, f"{JOBS}/1/use": None}), {1, 2})
    assert checked == {
        "joint trainings": 2,
        "leases of a group": 4,
        "fault: joint trainings without a usable model": 1,
    }
    assert "The model of the joint training 2 cannot be used" in capsys.readouterr().err


@pytest.mark.slow
def test_nothing_is_lost_when_programs_are_killed(tmp_path, capsys, monkeypatch):
    pytest.importorskip("tensorflow")
    monkeypatch.setattr(joint_kills, "MINUTES", 0.05)  # a few steps
    numbers = ["--photographs", "6", "--kills", "2", "--joint-kills", "chief"]
    assert kills.main(["--folder", str(tmp_path / "new"), *numbers]) == 0
    printed = capsys.readouterr().out
    assert "confirmed labels" in printed
    assert re.search(r"joint trainings +1\n", printed)
    assert re.search(r"leases of a group +2\n", printed)
