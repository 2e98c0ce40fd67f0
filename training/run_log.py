"""The record of a run: log.jsonl for programs, TensorBoard for people."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.files import write_text_atomic
from training.writing import explained_writing


class RunLog:
    """Appends records to `log.jsonl` and shows the same numbers in TensorBoard.

    Args:
        folder: The run folder.
        stage: Index of the stage and
        step: its step where the run goes on; later records of an interrupted run are dropped.
    """

    def __init__(self, folder: Path, *, stage: int, step: int) -> None:
        self._path = folder / "log.jsonl"
        kept = [
            record for record in read_log(folder) if (record["stage_index"], record["step"]) <= (stage, step)
        ]
        with explained_writing(folder):
            write_text_atomic(self._path, "".join(json.dumps(record) + "\n" for record in kept))
            self._file = self._path.open("a", encoding="utf-8")
            self._writer = tf.summary.create_file_writer(str(folder / "tensorboard"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with explained_writing(self._path.parent), self._file:
            self._writer.close()

    def scalars(self, kind: str, stage: str, stage_index: int, step: int, values: Mapping[str, Any]) -> None:
        """Records numbers of one step; `kind` is `train` or `val`."""
        numbers = {name: _finite(float(value)) for name, value in values.items()}
        record = {"kind": kind, "stage": stage, "stage_index": stage_index, "step": step, **numbers}
        with explained_writing(self._path):
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        with explained_writing(self._path.parent / "tensorboard"), self._writer.as_default(step=step):
            for name, number in numbers.items():
                if number is not None:
                    tf.summary.scalar(f"{stage}/{kind}/{name}", number)

    def images(self, stage: str, step: int, images: Mapping[str, NDArray[np.uint8]]) -> None:
        """Shows each of `images` [H, W, C] in TensorBoard under stage and name."""
        with explained_writing(self._path.parent / "tensorboard"), self._writer.as_default(step=step):
            for name, image in images.items():
                tf.summary.image(f"{stage}/{name}", image[None])


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The records of a run so far; a line cut off by a crash is left out."""
    path = folder / "log.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def _finite(number: float) -> float | None:
    """JSON knows no NaN and no infinity."""
    return number if np.isfinite(number) else None
