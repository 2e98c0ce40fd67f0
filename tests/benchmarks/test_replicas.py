import json
from collections import Counter

import pytest

from benchmarks.serving import replicas
from benchmarks.serving.load import generators
from benchmarks.serving.replicas import Attempt, Trial, TrialResult
from benchmarks.untrained_models import photograph

KILLED, OTHER = "127.0.0.1:1", "127.0.0.1:2"
ANSWERED = Attempt(OTHER, 200, connected=True)
LOST = Attempt(KILLED, 502, connected=True)
GONE = Attempt(KILLED, 502, connected=False)
LOADING = Attempt(KILLED, 503, connected=True)
AGAIN = Attempt(KILLED, 200, connected=True)


def test_attempts_are_read_from_the_log(tmp_path):
    line = {"path": "/v1/predict", "replicas": KILLED, "statuses": "502", "connected": "0.000"}
    line["completed"] = "OK"
    passed_on = {**line, "replicas": f"{KILLED}, {OTHER}", "statuses": "502, 200", "connected": "-, 0.001"}
    health = {**line, "path": "/readyz"}
    again = {**line, "replicas": f"{KILLED} : {OTHER}", "statuses": "502 : 200", "connected": "0.001 : 0.001"}
    cut = {**line, "statuses": "200", "completed": ""}
    log = tmp_path / "attempts.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in (health, line, passed_on, again, cut)))
    assert replicas.read_attempts(log) == [[LOST], [GONE, ANSWERED], [LOST, ANSWERED], [LOST]]


def test_photographs_in_progress_and_after_the_restart():
    attempts = [[AGAIN], [LOST, ANSWERED], [LOST], [GONE, ANSWERED], [LOADING, ANSWERED], [AGAIN], [AGAIN]]
    result = TrialResult(6, Counter({"502": 1}), attempts, KILLED)
    assert (result.in_progress, result.retried, result.after_restart) == (2, 3, 2)
    assert TrialResult(1, Counter(), [[AGAIN]], KILLED).after_restart == 0


@pytest.mark.slow
@pytest.mark.skipif(replicas.find_nginx() is None, reason="needs nginx")
@pytest.mark.parametrize("trial", replicas.TRIALS, ids=lambda trial: trial.name)
def test_a_killed_replica_loses_only_requests_in_progress(trial: Trial, quick_artifact, monkeypatch):
    monkeypatch.setenv("SEGDEC_ENGINE", "openvino")  # avoids the import of TensorFlow
    with generators() as pool:
        result = replicas.run(trial, pool, quick_artifact, photograph(256, 256), clients=8, seconds=3)
    assert result.answered > 0
    assert any(not attempt.connected for tried in result.attempts for attempt in tried), "one was killed"
    if trial.name == "no retries":
        # nginx itself retries a request that it had not sent yet
        unanswered = sum(tried[-1].status != 200 for tried in result.attempts)
        assert result.failed.total() == unanswered <= result.in_progress
    else:
        assert result.failed.total() == 0
