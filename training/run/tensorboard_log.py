"""The TensorBoard log: one TensorBoard run per stage."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from segdec.images import encode_png
from training.run.tracker import POSITION_KEYS, LogRecord, Pictures, Tracker

FILE_VERSION = "brain.Event:2"
"""Version in the first event of a file."""

GROUPS = {
    **dict.fromkeys(("learning_rate", "weight_norm", "gradient_norm"), "optimization"),
    **dict.fromkeys(
        ("images_per_s", "s_per_step", "input_wait", "model_flops_per_s", "flop_utilisation"), "speed"
    ),
}

BY_REPLICA = "replica_loss_"
"""Prefix of the losses of single replicas, which share a group."""


class TensorBoardLog(Tracker):
    """Writes events to one folder per stage. Their steps are counted over all stages.

    The first event of each process is a session start with the `step` of the `stage` (an index) at which it
    resumes: TensorBoard then drops the later events of earlier processes.
    """

    def __init__(self, folder: Path, *, stage: int, step: int) -> None:
        self._folder = folder
        self._place = stage, step
        self._writers: dict[str, tf.io.TFRecordWriter] = {}
        self._lengths: dict[int, int] = {}
        """Steps of each stage so far."""

    def start(self, records: Sequence[LogRecord]) -> None:
        """Counts the steps of the stages before the one that continues."""
        for record in records:
            self._count(record["stage_index"], record["step"])

    def record(self, record: LogRecord) -> None:
        """Adds the metrics of one step."""
        values = [
            Summary.Value(tag=_tag(record["kind"], name), simple_value=number)
            for name, number in record.items()
            if name not in POSITION_KEYS and number is not None
        ]
        stage_index, step = record["stage_index"], record["step"]
        self._count(stage_index, step)
        writer = self._writer(record["stage"], stage_index)
        _add(writer, step=self._steps_before(stage_index) + step, summary=Summary(value=values))

    def images(self, kind: str, stage: str, stage_index: int, step: int, images: Pictures) -> None:
        """Adds pictures under `panel/`; those of kind `train` under `training_panel/`."""
        group = "training_panel" if kind == "train" else "panel"
        values = [
            Summary.Value(tag=f"{group}/{name}", image=_encode(image)) for name, image in images.items()
        ]
        place = self._steps_before(stage_index) + step
        _add(self._writer(stage, stage_index), step=place, summary=Summary(value=values))

    def close(self, error: BaseException | None) -> None:  # noqa: ARG002
        """Closes the files."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, stage: str, stage_index: int) -> tf.io.TFRecordWriter:
        if stage not in self._writers:
            resumed_stage, resumed_step = self._place
            first = self._steps_before(stage_index) + 1
            if stage_index == resumed_stage:
                first += resumed_step
            writer = self._writers[stage] = _open(self._folder / stage)
            _add(writer, file_version=FILE_VERSION)
            _add(writer, step=first, session_log=SessionLog(status=SessionLog.START))
        return self._writers[stage]

    def _count(self, stage_index: int, step: int) -> None:
        self._lengths[stage_index] = max(step, self._lengths.get(stage_index, 0))

    def _steps_before(self, stage_index: int) -> int:
        return sum(length for index, length in self._lengths.items() if index < stage_index)


def _open(folder: Path) -> tf.io.TFRecordWriter:
    """A new file whose name sorts after the existing ones: TensorBoard reads files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    return tf.io.TFRecordWriter(str(folder / f"events.out.tfevents.{time.time_ns():019d}.{os.getpid()}"))


def _add(writer: tf.io.TFRecordWriter, **fields: Any) -> None:
    """Writes an event now; TensorBoard's own writer would fail in a thread."""
    writer.write(Event(wall_time=time.time(), **fields).SerializeToString())
    writer.flush()  # after a kill, TensorBoard and log.jsonl hold the same records


def _tag(kind: str, name: str) -> str:
    """The part before the slash groups the curves."""
    if kind == "val":
        return f"validation/{name}"
    if name.startswith(BY_REPLICA):
        return f"replica_loss/{name.removeprefix(BY_REPLICA)}"
    return f"{GROUPS.get(name, 'loss' if name.endswith('loss') else 'train')}/{name}"


def _encode(image: NDArray[np.uint8]) -> Summary.Image:
    height, width, depth = image.shape
    return Summary.Image(height=height, width=width, colorspace=depth, encoded_image_string=encode_png(image))
