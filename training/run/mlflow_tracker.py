"""Logs a run to an MLflow server, which may be unreachable for a while."""

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mlflow
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from tqdm import tqdm

from segdec.runtime.files import write_text_atomic
from training.config import ExperimentConfig
from training.distribution.interruption import RunInterruptedError
from training.run.tracker import POSITION_KEYS, LogRecord, Tracker
from training.stages import STAGES

REQUEST_LIMITS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
"""Environment variables that bound a request; MLflow's defaults would delay the training for minutes."""

FIRST_WAIT_S = 60.0
"""Delay of the next attempt after the server did not answer; doubled each time."""

METRICS_PER_CALL, PARAMS_PER_CALL, MAX_PARAM_LENGTH = 1000, 100, 6000
"""Limits of the MLflow API."""

ARTIFACTS = ("config.toml", "result.json")


class MlflowTracker(Tracker):
    """Logs configuration, metrics over the steps of all stages, result and final files.

    `MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME` and MLflow's other variables configure it. A resumed run
    continues the same MLflow run, whose id is stored in the run folder as `mlflow_run.txt`. If the server
    does not answer, one warning is printed; missing records are sent once it answers, or at the next start.
    """

    def __init__(self, config: ExperimentConfig) -> None:
        for name, value in REQUEST_LIMITS.items():
            os.environ.setdefault(name, value)
        self._config = config
        self._id_path = config.folder / "mlflow_run.txt"
        self._run_id: str | None = None
        self._described = False
        self._sent: dict[str, int] = {}
        self._pending: list[Metric] = []
        self._retry_at, self._wait_s, self._warned = 0.0, FIRST_WAIT_S, False

    def start(self, records: Sequence[LogRecord]) -> None:
        """Sends the records that the server does not have yet."""
        for record in records:
            self._queue_record(record)
        self._attempt(self._send)

    def record(self, record: LogRecord) -> None:
        """Sends the metrics of one step as `train/…` or `val/…`."""
        self._queue_record(record)
        self._attempt(self._send)

    def finish(self, metrics: Mapping[str, float | None]) -> None:
        """Sends the final metrics as `result/…`, configuration and result as files."""
        self._queue("result", self._global_step(len(STAGES), 0), metrics)
        self._retry_at = 0.0
        self._attempt(self._send_result)

    def close(self, error: BaseException | None) -> None:
        """Ends the MLflow run as finished, killed or failed."""
        self._retry_at = 0.0
        if self._pending:
            self._attempt(self._send)
        if self._run_id is not None:
            self._retry_at = 0.0
            self._attempt(lambda: mlflow.end_run(_status(error)))

    def _queue_record(self, record: LogRecord) -> None:
        numbers = {name: number for name, number in record.items() if name not in POSITION_KEYS}
        self._queue(record["kind"], self._global_step(record["stage_index"], record["step"]), numbers)

    def _queue(self, kind: str, step: int, numbers: Mapping[str, float | None]) -> None:
        now = int(time.time() * 1000)
        self._pending += [
            Metric(f"{kind}/{name}", number, now, step)
            for name, number in numbers.items()
            if number is not None
        ]

    def _global_step(self, stage_index: int, step: int) -> int:
        """Step of the run, counted over all stages."""
        return step + sum(self._config.stages[stage.name].steps for stage in STAGES[:stage_index])

    # === Server ===

    def _attempt(self, action: Callable[[], Any]) -> None:
        """Runs `action`, unless a recent attempt failed."""
        if time.monotonic() < self._retry_at:
            return
        try:
            action()
        except (MlflowException, OSError, ImportError) as error:
            self._retry_at = time.monotonic() + self._wait_s
            self._wait_s *= 2
            if self._warned:
                return
            self._warned = True
            reason = re.sub(r"//[^/@\s]+@", "//", str(error).splitlines()[0] if str(error) else repr(error))
            tqdm.write(
                f"warning: MLflow cannot be reached ({reason}). The run continues and log.jsonl is complete; "
                "missing records are sent once MLflow answers. Check MLFLOW_TRACKING_URI.",
                file=sys.stderr,
            )
        else:
            self._wait_s = FIRST_WAIT_S

    def _send(self) -> None:
        run_id = self._open()
        while self._pending:
            batch = self._pending[:METRICS_PER_CALL]
            new = [metric for metric in batch if metric.step > self._sent.get(metric.key, -1)]
            if new:
                mlflow.MlflowClient().log_batch(run_id, metrics=new)
            del self._pending[:METRICS_PER_CALL]

    def _send_result(self) -> None:
        self._send()
        for name in ARTIFACTS:
            mlflow.log_artifact(str(self._config.folder / name))

    def _open(self) -> str:
        """Starts the MLflow run, or resumes the one of the run folder."""
        if self._run_id is None:
            known = self._id_path.read_text(encoding="utf-8").strip() if self._id_path.exists() else None
            self._run_id = self._start(known)
            write_text_atomic(self._id_path, self._run_id + "\n")
        if not self._described:
            self._describe(self._run_id)
            self._described = True
        return self._run_id

    def _start(self, known: str | None) -> str:
        if known is not None:
            try:
                return str(mlflow.start_run(run_id=known).info.run_id)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
        return str(mlflow.start_run(run_name=self._config.name).info.run_id)

    def _describe(self, run_id: str) -> None:
        """Sends the configuration to a new run; asks the server for the last step of a resumed one."""
        client = mlflow.MlflowClient()
        data = client.get_run(run_id).data
        for key in data.metrics:
            self._sent[key] = max(metric.step for metric in client.get_metric_history(run_id, key))
        fields = self._config.flatten().items()
        params = [
            Param(name, str(value)[:MAX_PARAM_LENGTH]) for name, value in fields if name not in data.params
        ]
        for first in range(0, len(params), PARAMS_PER_CALL):
            client.log_batch(run_id, params=params[first : first + PARAMS_PER_CALL])


def _status(error: BaseException | None) -> str:
    if error is None:
        return "FINISHED"
    return "KILLED" if isinstance(error, RunInterruptedError | KeyboardInterrupt) else "FAILED"
