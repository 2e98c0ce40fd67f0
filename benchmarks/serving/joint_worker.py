"""Programs for `benchmarks.serving.joint_kills`: a worker with an address, and `fit` noted in a journal.

python -m benchmarks.serving.joint_worker work URL KEY_FILE FOLDER NAME ADDRESS JOURNAL
python -m benchmarks.serving.joint_worker train JOURNAL TRAINING WORD…
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.serving.stub_training import HEARTBEAT_S, noting_overlaps

MODULE = "benchmarks.serving.joint_worker"


def work(url: str, key_file: str, folder: str, name: str, address: str, journal: str) -> None:
    """Runs a worker until SIGTERM; it trains with the real `fit`, without an encoder."""
    from training.worker import command, job_run
    from training.worker.trainer_process import fit_command

    job_run.HEARTBEAT_S, job_run.POLL_S, job_run.RETRY_S, command.IDLE_S = HEARTBEAT_S, 0.1, 0.5, 0.3
    options = command.WorkerOptions(
        url=url, key_file=Path(key_file), folder=Path(folder), name=name, address=address
    )
    arguments = [sys.executable, "-m", MODULE, "train", journal]
    command.work(
        options,
        lambda job: [*arguments, f"{job.id}-{job.rank}", *fit_command(job)[3:], "--encoder-weights", "none"],
    )


def train(journal: str, name: str, arguments: Sequence[str]) -> None:
    """Runs `python -m training` with these arguments."""
    from training.__main__ import main as run_training

    with noting_overlaps(Path(journal), name):
        run_training(arguments)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", *arguments]:
            work(*arguments)
        case ["train", journal, name, *arguments]:
            train(journal, name, arguments)
