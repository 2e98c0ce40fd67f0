"""The log of a run: log.jsonl, TensorBoard and other trackers."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from segdec.errors import MissingExtraError, RunError
from segdec.images import write_png
from segdec.runtime.files import write_text_atomic
from training.config import ExperimentConfig
from training.run.disk_errors import explained_disk_errors
from training.run.panel import join_pictures
from training.run.tensorboard_log import TensorBoardLog
from training.run.tracker import Pictures, Tracker

PANELS = {"val": "panel.png", "train": "training_panel.png"}
"""Files of the latest pictures of each kind."""


class RunLog:
    """Appends records to `log.jsonl` and sends them to TensorBoard and other trackers.

    A process that is killed while it writes leaves at most one truncated line, which the next start removes.
    When a run resumes at `step` of `stage` (an index), its records of later steps are dropped.
    """

    def __init__(self, folder: Path, *, stage: int, step: int, trackers: Sequence[Tracker] = ()) -> None:
        self._folder = folder
        kept = [
            record for record in read_log(folder) if (record["stage_index"], record["step"]) <= (stage, step)
        ]
        path = folder / "log.jsonl"
        with explained_disk_errors(folder):
            write_text_atomic(path, "".join(json.dumps(record) + "\n" for record in kept))
            self._file = path.open("a", encoding="utf-8")
            self._trackers = [TensorBoardLog(folder / "tensorboard", stage=stage, step=step), *trackers]
            for tracker in self._trackers:
                tracker.start(kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with explained_disk_errors(self._folder), ExitStack() as open_ones:
                open_ones.enter_context(self._file)
                for tracker in self._trackers:
                    open_ones.callback(tracker.close, error)
        except RunError:
            if error is None:  # otherwise the error that ended the run matters more
                raise

    def scalars(self, kind: str, stage: str, stage_index: int, step: int, values: Mapping[str, Any]) -> None:
        """Logs metrics of one step; `kind` is `train` or `val`."""
        numbers = {  # JSON has no NaN or infinity
            name: None if value is None or not np.isfinite(value) else float(value)
            for name, value in values.items()
        }
        record = {"kind": kind, "stage": stage, "stage_index": stage_index, "step": step, **numbers}
        with explained_disk_errors(self._folder):
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
            for tracker in self._trackers:
                tracker.record(record)

    def images(self, kind: str, stage: str, stage_index: int, step: int, images: Pictures) -> None:
        """Writes pictures as `draw` does, and sends them to the trackers."""
        self.draw(kind, images)
        with explained_disk_errors(self._folder):
            for tracker in self._trackers:
                tracker.images(kind, stage, stage_index, step, images)

    def draw(self, kind: str, images: Pictures) -> None:
        """Writes pictures as `panel.png`; those of kind `train` as `training_panel.png`."""
        with explained_disk_errors(self._folder):
            write_png(self._folder / PANELS[kind], join_pictures(list(images.values())))

    def finish(self, metrics: Mapping[str, float | None]) -> None:
        """Sends the metrics of the finished run; call this after all of its files are written."""
        for tracker in self._trackers:
            tracker.finish(metrics)


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Reads the records of a run; skips a line truncated by a crash."""
    path = folder / "log.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def check_tracking(tracking: str) -> None:
    """Raises a `MissingExtraError` if the tracker's package is not installed."""
    if tracking == "mlflow":
        try:
            import_module("mlflow")
        except ImportError as error:
            raise MissingExtraError("mlflow", group="mlflow") from error


def open_trackers(config: ExperimentConfig) -> list[Tracker]:
    """Opens the configured trackers of a run."""
    if config.tracking == "none":
        return []
    from training.run.mlflow_tracker import MlflowTracker

    return [MlflowTracker(config)]
