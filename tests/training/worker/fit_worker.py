"""A training worker in a process of its own, which trains one job with the real `fit`, without an encoder.

python -m tests.training.worker.fit_worker URL KEY_FILE FOLDER NAME ADDRESS
"""

import sys
from pathlib import Path

from training.worker import command
from training.worker.command import WorkerOptions, work
from training.worker.trainer_process import fit_command

if __name__ == "__main__":
    url, key_file, folder, name, address = sys.argv[1:]
    command.IDLE_S = 0.1
    places = {"key_file": Path(key_file), "folder": Path(folder)}
    options = WorkerOptions(url=url, name=name, address=address, once=True, **places)
    work(options, lambda job: [*fit_command(job), "--encoder-weights", "none"])
