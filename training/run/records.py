"""Records of a run: its environment, the skipped part of its data, and its result."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Self

import numpy as np
import tensorflow as tf

from datasets.problems import format_problem
from datasets.sample import DataSetIssue
from segdec.artifact import OperatingPoint, TrainingPhotographs
from segdec.config import Config, EncoderWeights, ModelConfig
from segdec.runtime.counts import count_of
from segdec.runtime.files import write_text_atomic
from training.metrics.thresholds import ScoredPhotographs

ENVIRONMENT = "environment.json"
IGNORED_FILE = "ignored.txt"
"""Problems of the data set that the run skips, one per line."""

ENCODERS_FILE = "encoders.txt"
"""The comparison by which `fit` chose the encoder, if there was one."""

PACKAGES = ("tensorflow", "keras", "numpy", "opencv-python-headless")

UNTRAINED_DECISION = "No stage trained the decision network: the mask is trained, class and score are not."


class PhotographScores(Config):
    """The images that the thresholds were chosen on: class, log-odds and group of each."""

    labels: tuple[int, ...]
    log_odds: tuple[float, ...]
    groups: tuple[str, ...]

    @classmethod
    def pack(cls, scored: ScoredPhotographs) -> Self:
        """Returns scored images as tuples."""
        odds = scored.log_odds.tolist()
        return cls(labels=tuple(scored.labels.tolist()), log_odds=tuple(odds), groups=scored.groups)

    def unpack(self) -> ScoredPhotographs:
        """Returns them as arrays."""
        labels, odds = np.array(self.labels, np.int64), np.array(self.log_odds, np.float64)
        return ScoredPhotographs(labels, odds, self.groups)


class RunResult(Config):
    """The result of a training, without the weights.

    Attributes:
        validation: Metrics on the validation split.
        chosen_by: The images that the thresholds were chosen on, as text; `scored` are these, if known.
        operating_points: The score threshold, and others to choose from, measured on these images.
        encoder: Origin of the initial encoder weights; None if none were read.
        training_photographs: Their size and depth; None if unknown.
    """

    model: ModelConfig
    validation: dict[str, float | None]
    chosen_by: str = "photographs of validation"
    scored: PhotographScores | None = None
    operating_points: tuple[OperatingPoint, ...] = ()
    warnings: tuple[str, ...]
    data_fingerprint: str
    encoder: EncoderWeights | None = None
    training_photographs: TrainingPhotographs | None = None


def record_environment(folder: Path) -> None:
    """Writes the environment of the run; warns if it differs from that of the first start.
    Raises an `OSError` if the file cannot be written.
    """
    path, present = folder / ENVIRONMENT, describe_environment()
    if path.exists():
        former = json.loads(path.read_text(encoding="utf-8"))
        differences = [
            f"{name}: {former.get(name, 'unknown')}, now {value}"
            for name, value in present.items()
            if former.get(name) != value
        ]
        if differences:
            print(
                f"warning: The run '{folder}' was started in another environment ({'; '.join(differences)}). "
                "Its result may differ in the last digits from an uninterrupted run.",
                file=sys.stderr,
            )
    write_text_atomic(path, json.dumps(present, indent=2) + "\n")


def describe_environment() -> dict[str, str]:
    """Returns what can change rounding on this machine: versions, threads and devices, by name."""
    threads = tf.config.threading
    return {
        **{package: version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpus": str(os.cpu_count()),
        "intra_op_threads": str(threads.get_intra_op_parallelism_threads()),
        "oneDNN": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
        "devices": ", ".join(device.name for device in tf.config.list_logical_devices()),
    }


def record_ignored(folder: Path, problems: Sequence[DataSetIssue]) -> None:
    """Lists the skipped problems of the data set and prints a warning; removes the list if there are none.
    Raises an `OSError` if the file cannot be written.
    """
    path = folder / IGNORED_FILE
    if not problems:
        path.unlink(missing_ok=True)
        return
    write_text_atomic(path, "".join(f"{format_problem(problem)}\n" for problem in problems))
    number = count_of(len(problems), "problem")
    print(f"warning: {number} of the data set skipped, see {path}", file=sys.stderr)
