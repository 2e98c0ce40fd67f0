"""An MLflow server in memory, with the few calls that the tracker makes; it can be away."""

import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace
from uuid import uuid4


class MlflowException(Exception):  # noqa: N818
    def __init__(self, message, error_code="INTERNAL_ERROR"):
        super().__init__(message)
        self.error_code = error_code


Metric = namedtuple("Metric", "key value timestamp step")
Param = namedtuple("Param", "key value")


class FakeMlflow:
    """The server and the client's state."""

    def __init__(self):
        self.runs, self.active, self.down, self.calls = {}, None, False, 0

    def MlflowClient(self):  # noqa: N802
        return self

    def answer(self):
        self.calls += 1
        if self.down:
            raise MlflowException("API request to http://user:secret@host/api failed\nlong story")

    def find(self, run_id):
        self.answer()
        if run_id not in self.runs:
            raise MlflowException(f"Run '{run_id}' not found", "RESOURCE_DOES_NOT_EXIST")
        return self.runs[run_id]

    def start_run(self, run_id=None, run_name=None):
        assert self.active is None
        self.answer()
        if run_id is None:
            run_id = uuid4().hex
            self.runs[run_id] = SimpleNamespace(
                info=SimpleNamespace(run_id=run_id, run_name=run_name, status=""), log=[], params={}, files=[]
            )
        run = self.find(run_id)
        run.info.status, self.active = "RUNNING", run
        return run

    def end_run(self, status="FINISHED"):
        run, self.active = self.active, None
        self.answer()
        run.info.status = status

    def log_artifact(self, path):
        self.answer()
        self.active.files.append(SimpleNamespace(path=path.rsplit("/", 1)[-1]))

    def log_batch(self, run_id, metrics=(), params=()):
        assert len(metrics) <= 1000
        assert len(params) <= 100
        run = self.find(run_id)
        run.log += metrics
        for param in params:
            assert run.params.setdefault(param.key, param.value) == param.value

    def get_run(self, run_id):
        run = self.find(run_id)
        metrics = {metric.key: metric.value for metric in run.log}
        return SimpleNamespace(info=run.info, data=SimpleNamespace(metrics=metrics, params=run.params))

    def get_metric_history(self, run_id, key):
        return [metric for metric in self.find(run_id).log if metric.key == key]

    def list_artifacts(self, run_id):
        return self.find(run_id).files


def install(monkeypatch):
    """Puts the fake in the place of `mlflow`; returns it."""
    server = FakeMlflow()
    modules = {name: ModuleType(name) for name in ("mlflow", "mlflow.entities", "mlflow.exceptions")}
    for name in ("start_run", "end_run", "log_artifact", "MlflowClient"):
        setattr(modules["mlflow"], name, getattr(server, name))
    modules["mlflow.entities"].Metric, modules["mlflow.entities"].Param = Metric, Param
    modules["mlflow.exceptions"].MlflowException = MlflowException
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return server
