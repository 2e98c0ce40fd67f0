"""What a run records in its folder: where it was computed, what it left out of its data, how it ended."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import tensorflow as tf

from datasets.checking import format_problem
from datasets.sample import Problem
from segdec.config import Config, EncoderWeights, ModelConfig
from segdec.runtime.files import write_text_atomic

ENVIRONMENT = "environment.json"
LEFT_OUT_FILE = "left_out.txt"
"""What of the data set could not be used, one line each; there where a run goes on without it."""

PACKAGES = ("tensorflow", "keras", "numpy", "opencv-python-headless")


UNTRAINED_DECISION = (
    "No stage trained the decision: class and score are not learnt, however well they do on a few "
    "photographs; the mask is."
)


class RunResult(Config):
    """What training ends with, beside the weights.

    Attributes:
        model: The model, with its limits.
        validation: Metrics on the validation split.
        chosen_by: The photographs that the limits were chosen on.
        warnings: What the user must know about the thresholds.
        data_fingerprint: Digest of the images the run saw.
        encoder: Where the weights come from that its encoder began with; None where none were read.
    """

    model: ModelConfig
    validation: dict[str, float | None]
    chosen_by: str = "photographs of validation"
    warnings: tuple[str, ...]
    data_fingerprint: str
    encoder: EncoderWeights | None = None


def record_environment(folder: Path) -> None:
    """Writes down where a run is computed; warns if it was begun elsewhere, for the last digits may differ.

    Raises:
        OSError: If the file cannot be written.
    """
    path, present = folder / ENVIRONMENT, describe_environment()
    if path.exists():
        former = json.loads(path.read_text(encoding="utf-8"))
        if differences := describe_differences(former, present):
            print(
                f"warning: The run '{folder}' was begun elsewhere ({'; '.join(differences)}). "
                "Its result may differ in the last digits from that of an uninterrupted one.",
                file=sys.stderr,
            )
    write_text_atomic(path, json.dumps(present, indent=2) + "\n")


def describe_environment() -> dict[str, str]:
    """Returns name → value of whatever may change rounding or order of additions on this machine.

    Beside configuration and data that is what decides the last bits of a run: versions, threads, devices.
    """
    threads = tf.config.threading
    return {
        **{package: version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpus": str(os.cpu_count()),
        "intra_op_threads": str(threads.get_intra_op_parallelism_threads()),
        "oneDNN": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
        "devices": ", ".join(device.name for device in tf.config.list_logical_devices()),
    }


def describe_differences(former: dict[str, str], present: dict[str, str]) -> list[str]:
    """Returns one phrase for each value that differs: `cpus: 8, now 2`."""
    return [
        f"{name}: {former.get(name, 'unknown')}, now {value}"
        for name, value in present.items()
        if former.get(name) != value
    ]


def record_left_out(folder: Path, problems: Sequence[Problem]) -> None:
    """Lists what the run goes on without, and says that it does; an old list goes if there is nothing.

    Raises:
        OSError: If the file cannot be written.
    """
    path = folder / LEFT_OUT_FILE
    if not problems:
        path.unlink(missing_ok=True)
        return
    write_text_atomic(path, "".join(f"{format_problem(problem)}\n" for problem in problems))
    what = "1 problem is" if len(problems) == 1 else f"{len(problems)} problems are"
    print(f"warning: {what} left out of the data set, see {path}", file=sys.stderr)
