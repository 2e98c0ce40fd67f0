"""The process that trains: `python -m training fit` in the folder of a job."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import training
from segdec.runtime.label_names import is_good
from segdec.training_schemas import LeasedJob
from training.distribution.cluster import TF_CONFIG_VARIABLE, Cluster
from training.distribution.task_process import Task, TaskProcess
from training.worker.file_sets import MODEL, RUNS

DATA = "data"
MAX_LINE = 500
"""Characters of a printed line that are reported."""


def fit_command(job: LeasedJob) -> list[str]:
    """Returns the command that trains a job. All paths are relative to the job's folder, so that another
    machine can continue it.
    """
    settings = job.settings
    arguments = ["fit", DATA, "--layout", "manifest", "--resume"]
    classes = [name for name in settings.classes or job.classes if not is_good(name)]
    arguments += [f"--defect={name}" for name in classes]  # also where a name may mean good
    arguments += ["--name", job.model, "--version", job.version]
    arguments += ["--minutes", f"{settings.minutes:g}", "--runs", RUNS, "--out", MODEL]
    arguments += ["--all-steps"] if settings.all_steps else []
    arguments += [] if settings.encoder is None else ["--encoder", settings.encoder]
    arguments += [] if settings.area is None else ["--area", str(settings.area)]
    arguments += ["--strategy", "multi-worker"] if job.addresses else []
    return [sys.executable, "-m", "training", *arguments]


def cluster_variables(job: LeasedJob) -> dict[str, str]:
    """Returns the environment variables with which the processes of a group find each other."""
    if not job.addresses:
        return {}
    cluster = Cluster({"worker": tuple(job.addresses)}, "worker", job.rank)
    return {TF_CONFIG_VARIABLE: cluster.to_tf_config()}


class TrainerProcess:
    """The running command, with additional environment variables; Linux kills it when the worker dies."""

    def __init__(self, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        places = [str(Path(training.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, places)), **variables}
        self._process = TaskProcess(Task("training", command, environment, folder=folder), prefix=b"")
        self._is_interrupted = False
        self.last_lines: list[str] = []

    def read_lines(self) -> list[str]:
        """Returns the lines that it has printed since the last call."""
        lines = self._decode(self._process.read())
        self.last_lines = [*self.last_lines, *lines][-20:]
        return lines

    def poll(self) -> int | None:
        """Returns the exit code, −n after signal n; None while it runs."""
        return self._process.code if self._process.poll() else None

    def finish(self) -> list[str]:
        """Returns its last lines after its end."""
        lines = self._decode(self._process.close())
        self.last_lines = [*self.last_lines, *lines][-20:]
        return lines

    def stop_with_best(self) -> None:
        """Lets it end with the best weights so far; only the first call has an effect."""
        if not self._is_interrupted:
            self._is_interrupted = True
            self._process.interrupt()

    def stop_with_checkpoint(self) -> None:
        """Lets it end after it has saved a checkpoint."""
        self._process.terminate()

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def describe_end(self) -> str:
        """Returns why it ended: its error message, or its exit code."""
        errors = [line for line in self.last_lines if line.startswith("error: ")]
        if errors:
            return errors[-1].removeprefix("error: ")
        last = f" Its last line: {self.last_lines[-1]}" if self.last_lines else ""
        return f"The {self._process.describe_end()}.{last}"

    def _decode(self, output: bytes) -> list[str]:
        lines = output.decode("utf-8", errors="replace").splitlines()
        return [line[:MAX_LINE] for line in lines if line.strip()]
