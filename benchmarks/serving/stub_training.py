"""Programs for `benchmarks.serving.kills`: a service with short leases, a worker, and a stub that trains.

python -m benchmarks.serving.stub_training service FLAG…
python -m benchmarks.serving.stub_training worker URL KEY_FILE FOLDER ARTIFACT JOURNAL
python -m benchmarks.serving.stub_training train NAME JOB ARTIFACT JOURNAL
"""

import fcntl
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

LEASE_S, HEARTBEAT_S = 4.0, 0.3
STEPS, STEP_S = 20, 0.15
OVERLAPS = "overlaps.txt"
"""In the journal: a line for each training that began while another one of its job ran."""
MODULE = "benchmarks.serving.stub_training"


def serve(flags: Sequence[str]) -> None:
    """Runs the service; a lost worker's job waits again after `LEASE_S`."""
    from api.training import workers

    workers.LEASE_DURATION = timedelta(seconds=LEASE_S)  # before other modules import it
    from api.__main__ import main as run_service

    sys.argv = ["api", *flags]
    run_service()


def work(url: str, key_file: str, folder: str, artifact: str, journal: str) -> None:
    """Runs a worker until SIGTERM."""
    from training.worker import command, job_run

    job_run.HEARTBEAT_S, job_run.POLL_S, job_run.RETRY_S, command.IDLE_S = HEARTBEAT_S, 0.1, 0.5, 0.3
    options = command.WorkerOptions(url=url, key_file=Path(key_file), folder=Path(folder), name="killed")
    arguments = [sys.executable, "-m", MODULE, "train"]
    command.work(options, lambda job: [*arguments, job.model, str(job.id), artifact, journal])


def train(name: str, job: str, artifact: str, journal: str) -> None:
    """Stands for `python -m training fit --resume`: saves a checkpoint at each step, then copies a model."""
    with noting_overlaps(Path(journal), job):
        _take_steps(Path("runs") / name)
        shutil.copytree(artifact, "model", dirs_exist_ok=True)
        (Path("runs") / name / "metrics.json").write_text("{}")


@contextmanager
def noting_overlaps(journal: Path, name: str) -> Iterator[None]:
    """Notes in the journal if another training of this name runs at the same time."""
    with (journal / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with (journal / OVERLAPS).open("a") as overlaps:
                overlaps.write(f"{name}\n")
        yield


def _take_steps(run: Path) -> None:
    checkpoints = run / "checkpoints"
    checkpoints.mkdir(parents=True, exist_ok=True)
    first = max((int(path.name.rpartition("-")[2]) for path in checkpoints.glob("ckpt-2-*")), default=0)
    for step in range(first + 1, STEPS + 1):
        time.sleep(STEP_S)
        with (run / "log.jsonl").open("a") as log:
            record = {"kind": "train", "stage": "joint", "stage_index": 2, "step": step, "loss": 1 / step}
            log.write(f"{json.dumps(record)}\n")
        staged = checkpoints / f".{step}.tmp"
        staged.mkdir(exist_ok=True)
        (staged / "state.index").write_bytes(step.to_bytes(4, "little"))
        staged.rename(checkpoints / f"ckpt-2-{step}")
        shutil.rmtree(checkpoints / f"ckpt-2-{step - 2}", ignore_errors=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["service", *flags]:
            serve(flags)
        case ["worker", url, key_file, folder, artifact, journal]:
            work(url, key_file, folder, artifact, journal)
        case ["train", name, job, artifact, journal]:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
            train(name, job, artifact, journal)
