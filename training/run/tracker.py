"""The interface of trackers, which receive the records of a run log."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LogRecord = Mapping[str, Any]
"""A line of log.jsonl: `kind` (train or val), `stage`, `stage_index`, `step`, and numbers or None."""

POSITION_KEYS = ("kind", "stage", "stage_index", "step")
"""Keys of a record that are not metrics."""

Pictures = Mapping[str, NDArray[np.uint8]]
"""uint8 [H, W, 3], RGB, by name."""


class Tracker:
    """Receives the log records and stores them elsewhere; the methods of this base class do nothing."""

    def start(self, records: Sequence[LogRecord]) -> None:
        """Receives the records of an interrupted run; none if the run is new."""

    def record(self, record: LogRecord) -> None:
        """Receives a new record."""

    def images(self, kind: str, stage: str, stage_index: int, step: int, images: Pictures) -> None:
        """Receives pictures; `kind` is `train` or `val`."""

    def finish(self, metrics: Mapping[str, float | None]) -> None:
        """Receives the metrics of the finished run; its files are complete."""

    def close(self, error: BaseException | None) -> None:
        """Releases all resources; `error` is what ended the run early, if anything."""
