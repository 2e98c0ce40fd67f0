"""A training worker in a process of its own, with a stub for the training.

python -m tests.training.worker.stub_worker URL KEY_FILE FOLDER NAME ARTIFACT STEPS [ADDRESS GROUP_FOLDER]
"""

import sys
from pathlib import Path

from tests.training.worker.conftest import stub_command
from training.worker import command, job_run
from training.worker.command import WorkerOptions, work

if __name__ == "__main__":
    url, key_file, folder, name, artifact, steps, *group = sys.argv[1:]
    address, place = group or (None, None)
    job_run.HEARTBEAT_S = job_run.POLL_S = job_run.RETRY_S = command.IDLE_S = 0.1
    places = {"key_file": Path(key_file), "folder": Path(folder)}
    options = WorkerOptions(url=url, name=name, address=address, once=True, **places)

    def command_of(job):
        trainer, *arguments = stub_command(job, artifact, steps)[1:]
        if place is None:
            return [sys.executable, trainer, *arguments]
        return [sys.executable, str(Path(trainer).with_name("stub_group_trainer.py")), *arguments, place]

    work(options, command_of)
