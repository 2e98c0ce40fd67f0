"""Reads batches with op determinism switched on, which is for good and for the whole process.

    python -m tests.training.data.op_determinism_driver EXPERIMENT OUT [FLAGS]

Each read waits until a second one is under way. Leaves the batches in OUT.
"""

import sys
import threading
from pathlib import Path

import numpy as np
import tensorflow as tf

from training.data.input_pipeline import InputPipeline
from training.data.reading_pool import ReadingPool
from training.data.run_data import load_run_data
from training.experiment_file import load_experiment

PATIENCE_S = 120.0


class Together:
    """Examples that are only read two at a time."""

    def __init__(self, source):
        self._source = source
        self._meeting = threading.Barrier(2, timeout=PATIENCE_S)

    def __getattr__(self, name):
        return getattr(self._source, name)

    def __len__(self):
        return len(self._source)

    def __getitem__(self, index):
        self._meeting.wait()
        return self._source[index]


if __name__ == "__main__":
    tf.config.experimental.enable_op_determinism()
    config = load_experiment(Path(sys.argv[1]), sys.argv[3:])
    data = load_run_data(config)
    pipeline = InputPipeline(Together(data.examples), data.shape, config, ReadingPool(2))
    batches = list(pipeline.batches(0, 0, 3).as_numpy_iterator())
    np.savez(sys.argv[2], **{name: np.stack([batch[name] for batch in batches]) for name in batches[0]})
