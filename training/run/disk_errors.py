"""Errors while a run folder is written, such as a full disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from segdec.errors import RunError


@contextmanager
def explained_disk_errors(path: Path) -> Iterator[None]:
    """Turns write errors of Python and TensorFlow into a message that says what to do.
    Raises a `RunError` if the disk is full or `path` is not writable.
    """
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        raise RunError(
            f"Cannot write '{path}': {_reason(error)}. Earlier checkpoints are intact: free disk space or "
            "fix the cause, then run the same command again without --fresh."
        ) from error


def _reason(error: OSError | tf.errors.OpError) -> str:
    """The cause alone, without the file and operation that TensorFlow adds."""
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else str(error)
    return str(error.message).splitlines()[0].rsplit("; ", 1)[-1].split(" [Op:")[0]
