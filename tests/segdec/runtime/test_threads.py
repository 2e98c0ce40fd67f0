import os
import subprocess
import sys
from pathlib import Path

import pytest

from segdec.runtime.threads import available_cores

ROOT = Path(__file__).parents[3]


def test_cores_are_those_of_the_process() -> None:
    usable = os.sched_getaffinity(0)
    assert available_cores() == len(usable)
    os.sched_setaffinity(0, {min(usable)})
    try:
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, usable)


@pytest.mark.slow
def test_engine_gets_its_threads_once(tiny_artifact: Path) -> None:
    """In a new process, because TensorFlow accepts the number only before it starts."""
    code = f"""
from pathlib import Path
import tensorflow as tf
from segdec.errors import ConfigError
from segdec.predictor import Predictor

folder, threading = Path({str(tiny_artifact)!r}), tf.config.threading
for _ in range(2):  # the same number may be given again
    Predictor.load(folder, threads=3)
    print(threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads())
try:
    Predictor.load(folder, threads=4)
except ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    first, second, refused = done.stdout.splitlines()
    assert (first, second) == ("3 3", "3 3")
    assert refused.startswith("threads=4 is too late: TensorFlow has already started in this process with 3.")
