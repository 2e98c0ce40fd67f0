"""A training worker in a process of its own, with a stub for the training.

python -m tests.training.worker.stub_worker URL KEY_FILE FOLDER NAME ARTIFACT STEPS
"""

import sys
from pathlib import Path

from tests.training.worker.conftest import stub_command
from training.worker import job_run
from training.worker.command import WorkerOptions, work

if __name__ == "__main__":
    url, key_file, folder, name, artifact, steps = sys.argv[1:]
    job_run.HEARTBEAT_S = job_run.POLL_S = job_run.RETRY_S = 0.1
    options = WorkerOptions(url=url, key_file=Path(key_file), folder=Path(folder), name=name, once=True)
    work(options, lambda job: stub_command(job, artifact, steps))
