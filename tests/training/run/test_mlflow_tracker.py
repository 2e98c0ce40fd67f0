import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from segdec.errors import MissingExtraError
from tests.training.fake_mlflow import install
from training.experiment_file import load_experiment
from training.run.run_log import RunLog, open_trackers, read_log
from training.run.tracker import POSITION_KEYS

pytest.importorskip("tensorflow")

from training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("fresh_tracker")


@pytest.fixture
def fresh_tracker(monkeypatch):
    """The tracker imports whichever MLflow the test has put there, and leaves the environment alone."""
    for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"):
        monkeypatch.setenv(name, "0")
    monkeypatch.delitem(sys.modules, "training.run.mlflow_tracker", raising=False)
    yield
    sys.modules.pop("training.run.mlflow_tracker", None)


@pytest.fixture
def server(monkeypatch):
    return install(monkeypatch)


@pytest.fixture
def mlflow(monkeypatch, tmp_path):
    """MLflow where it is installed, otherwise the fake."""
    if not find_spec("mlflow"):
        install(monkeypatch)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "surface")
    return import_module("mlflow")


@pytest.fixture
def config(tiny_experiment, tmp_path):
    return load_experiment(tiny_experiment, ["--runs", str(tmp_path / "runs"), "--tracking", "mlflow"])


@pytest.fixture
def small_run(config):
    """A run folder with its final files, to log into without a training."""
    config.folder.mkdir(parents=True)
    for name in ("config.toml", "result.json"):
        (config.folder / name).write_text("x")
    return config


def tracked(mlflow, config):
    run_id = (config.folder / "mlflow_run.txt").read_text().strip()
    return mlflow.MlflowClient().get_run(run_id)


def history(mlflow, config, key):
    points = mlflow.MlflowClient().get_metric_history(tracked(mlflow, config).info.run_id, key)
    return [(point.step, point.value) for point in points]


@pytest.mark.slow
def test_resumed_run_uses_the_same_mlflow_run(mlflow, config, interrupt_run):
    interrupt_run(config, 9)
    first = tracked(mlflow, config)
    assert first.info.status == "FAILED"
    folder = Trainer(config).run()
    run = tracked(mlflow, config)
    assert (run.info.run_id, run.info.status) == (first.info.run_id, "FINISHED")
    before = (0, 5, 9)
    for kind, key in (("train", "loss"), ("val", "average_precision")):
        logged = [
            (before[record["stage_index"]] + record["step"], record[key])
            for record in read_log(folder.path)
            if record["kind"] == kind
        ]
        assert history(mlflow, config, f"{kind}/{key}") == logged  # each step once
    result = folder.result()
    assert run.data.metrics["result/average_precision"] == result.validation["average_precision"]
    assert run.data.metrics["result/score"] == result.model.thresholds.score
    files = mlflow.MlflowClient().list_artifacts(run.info.run_id)
    assert {file.path for file in files} == {"config.toml", "result.json"}


def test_outage_causes_one_warning_and_loses_no_metric(server, small_run, capsys):
    with RunLog(small_run.folder, stage=0, step=0, trackers=open_trackers(small_run)) as log:
        log.scalars("train", "segment", 0, 1, {"loss": 1.0})
        server.down, server.calls = True, 0
        for step in range(2, 6):
            log.scalars("train", "segment", 0, step, {"loss": step})
        assert server.calls == 1  # an absent server is not asked at each step
        server.down = False
        log.finish({"average_precision": 0.5})
    run = tracked(server, small_run)
    assert history(server, small_run, "train/loss") == [(step, step) for step in range(1, 6)]
    assert (run.info.status, run.data.metrics["result/average_precision"]) == ("FINISHED", 0.5)
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: MLflow cannot be reached (API request to http://host/api failed)")


def test_requests_are_retried_with_increasing_waits(server, small_run, monkeypatch):
    now = [0.0]
    tracker = open_trackers(small_run)[0]
    monkeypatch.setattr(sys.modules["training.run.mlflow_tracker"].time, "monotonic", lambda: now[0])
    record = dict(zip(POSITION_KEYS, ("train", "segment", 0, 1), strict=True)) | {"loss": 1.0}
    server.down = True
    asked = []
    for now[0] in (1.0, 60.0, 61.5, 180.0, 182.0):  # waits of 60 s, then 120 s
        tracker.record(record)
        asked.append(server.calls)
    assert asked == [1, 1, 2, 2, 3]


def test_missing_package_is_reported_before_anything_is_written(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e \. --group mlflow"):
        Trainer(config)
    assert not config.folder.exists()
