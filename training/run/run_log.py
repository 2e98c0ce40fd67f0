"""The record of a run: log.jsonl for programs, TensorBoard and others for people."""

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
"""The latest pictures of each kind, in the run folder."""


class RunLog:
    """Appends records to `log.jsonl`, which is the truth, and passes them on.

    A process killed while it writes leaves at most one cut line, which the next one removes.

    Args:
        folder: The run folder.
        stage: Index of the stage and
        step: its step where the run goes on; later records of an interrupted run are dropped.
        trackers: What else gets the records, beside TensorBoard.
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
            if error is None:  # otherwise what ended the run is what the user must know
                raise

    def scalars(self, kind: str, stage: str, stage_index: int, step: int, values: Mapping[str, Any]) -> None:
        """Records numbers of one step; `kind` is `train` or `val`."""
        numbers = {name: None if value is None else _finite(float(value)) for name, value in values.items()}
        record = {"kind": kind, "stage": stage, "stage_index": stage_index, "step": step, **numbers}
        with explained_disk_errors(self._folder):
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
            for tracker in self._trackers:
                tracker.record(record)

    def images(self, kind: str, stage: str, stage_index: int, step: int, images: Pictures) -> None:
        """Writes pictures as `draw` does, and passes them on."""
        self.draw(kind, images)
        with explained_disk_errors(self._folder):
            for tracker in self._trackers:
                tracker.images(kind, stage, stage_index, step, images)

    def draw(self, kind: str, images: Pictures) -> None:
        """Writes pictures as `panel.png`, those of `train` as `training_panel.png`."""
        with explained_disk_errors(self._folder):
            write_png(self._folder / PANELS[kind], join_pictures(list(images.values())))

    def finish(self, metrics: Mapping[str, float | None]) -> None:
        """Passes on the metrics of the finished run; call it when all of its files are written."""
        for tracker in self._trackers:
            tracker.finish(metrics)


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Reads the records of a run so far; a line cut off by a crash is left out."""
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
    """Refuses, before anything is written, a tracker that cannot be had.

    Raises:
        MissingExtraError: If the tracker's package is not installed.
    """
    if tracking == "mlflow":
        try:
            import_module("mlflow")
        except ImportError as error:
            raise MissingExtraError("mlflow", group="mlflow") from error


def open_trackers(config: ExperimentConfig) -> list[Tracker]:
    """Opens the trackers of a run, beside log.jsonl and TensorBoard."""
    if config.tracking == "none":
        return []
    from training.run.mlflow_tracker import MlflowTracker

    return [MlflowTracker(config)]


def _finite(number: float) -> float | None:
    """JSON knows no NaN and no infinity."""
    return number if np.isfinite(number) else None
