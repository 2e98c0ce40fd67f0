import json
import shutil
from collections import Counter

import pytest

from benchmarks.serving import replicas
from benchmarks.serving.load import generators
from benchmarks.serving.replicas import Attempt, Trial, TrialResult
from benchmarks.untrained_models import photograph
from segdec.errors import ConfigError

KILLED, OTHER = "127.0.0.1:1", "127.0.0.1:2"
ANSWERED = Attempt(OTHER, 200, connected=True)
LOST = Attempt(KILLED, 502, connected=True)
GONE = Attempt(KILLED, 502, connected=False)
LOADING = Attempt(KILLED, 503, connected=True)
AGAIN = Attempt(KILLED, 200, connected=True)


def test_what_the_log_tells(tmp_path):
    line = {"path": "/v1/predict", "replicas": KILLED, "statuses": "502", "connected": "0.000"}
    passed_on = {
        "path": "/v1/predict",
        "replicas": f"{KILLED}, {OTHER}",
        "statuses": "502, 200",
        "connected": "-, 0.001",
    }
    asked_for_health = {"path": "/readyz", "replicas": OTHER, "statuses": "200", "connected": "0.000"}
    sent_again = passed_on | {"replicas": f"{KILLED} : {OTHER}", "statuses": "502 : 200"}
    sent_again["connected"] = "0.001 : 0.001"
    log = tmp_path / "attempts.jsonl"
    log.write_text(
        "".join(json.dumps(entry) + "\n" for entry in (asked_for_health, line, passed_on, sent_again))
    )
    assert replicas.read_attempts(log) == [[LOST], [GONE, ANSWERED], [LOST, ANSWERED]]


def test_who_was_under_way_and_who_came_back():
    attempts = [[AGAIN], [LOST, ANSWERED], [LOST], [GONE, ANSWERED], [LOADING, ANSWERED], [AGAIN], [AGAIN]]
    result = TrialResult(6, Counter({"502": 1}), attempts, KILLED)
    assert (result.under_way, result.sent_again, result.since_return) == (2, 3, 2)
    assert TrialResult(1, Counter(), [[AGAIN]], KILLED).since_return == 0


def test_a_failure_beyond_those_under_way_is_a_missed_target():
    good = TrialResult(9, Counter(), [[LOST, ANSWERED], [AGAIN]], KILLED)
    bad = TrialResult(7, Counter({"502": 1, "0": 1}), [[LOST], [ANSWERED]], KILLED)
    results = {"as shipped": good, "once": bad, "client": good}
    missed = [target.name for target in replicas.targets(results) if not target.met]
    assert missed == ["nothing sent twice: failed beyond those under way"]
    assert replicas.failures(results)["once"] == {"502": 1, "0": 1}
    assert [row["failed"] for row in replicas.tabulate(results)] == [0, 2, 0]


def test_without_nginx_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(ConfigError, match="nginx is not installed"):
        replicas.balance(tmp_path, (1, 2), replicas.SENT_AGAIN)


needs_nginx = pytest.mark.skipif(replicas.find_nginx() is None, reason="needs nginx")


@pytest.mark.slow
@needs_nginx
@pytest.mark.parametrize("trial", replicas.TRIALS, ids=lambda trial: trial.name)
def test_a_killed_replica_costs_no_more_than_it_had_under_way(trial: Trial, quick_artifact, monkeypatch):
    monkeypatch.setenv("SEGDEC_ENGINE", "openvino")  # so that nothing imports TensorFlow
    with generators() as pool:
        result = replicas.run(trial, pool, quick_artifact, photograph(256, 256), clients=8, seconds=3)
    assert result.answered > 0
    assert any(not attempt.connected for tried in result.attempts for attempt in tried), "one was killed"
    if trial.name == "nothing sent twice, asked once":
        # One that was under way is passed on where nginx had its connection, and had sent nothing on it.
        unanswered = sum(tried[-1].status != 200 for tried in result.attempts)
        assert result.failed.total() == unanswered <= result.under_way
    else:
        assert result.failed.total() == 0
