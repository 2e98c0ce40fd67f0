"""Where a run log passes its records on to."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Record = Mapping[str, Any]
"""A line of log.jsonl: `kind` (train or val), `stage`, `stage_index`, `step`, and numbers or None."""

POSITION_KEYS = ("kind", "stage", "stage_index", "step")
"""What in a record is no number of the run."""

Pictures = Mapping[str, NDArray[np.uint8]]
"""uint8 [H, W, 3], RGB, by name."""


class Tracker:
    """A copy of the log in another form; what a tracker has no use for, it leaves as it is here."""

    def start(self, records: Sequence[Record]) -> None:
        """Takes the records that an interrupted run has left; none if the run is new."""

    def record(self, record: Record) -> None:
        """Takes a new record."""

    def images(self, kind: str, stage: str, stage_index: int, step: int, images: Pictures) -> None:
        """Takes pictures; `kind` is `train` or `val`."""

    def finish(self, metrics: Mapping[str, float | None]) -> None:
        """Takes the metrics of the finished run; its files are complete."""

    def close(self, error: BaseException | None) -> None:
        """Lets go of everything; `error` is what ended the run early."""
