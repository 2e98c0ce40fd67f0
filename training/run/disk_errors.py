"""Writing into a run folder: what a full disk means for the run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from segdec.errors import RunError


@contextmanager
def explained_disk_errors(path: Path) -> Iterator[None]:
    """Says what to do when Python or TensorFlow cannot write `path`; wrap nothing but the writing.

    Raises:
        RunError: If the disk is full or the place is not writable.
    """
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        raise RunError(
            f"'{path}' could not be written: {_reason(error)}. Checkpoints saved before are whole: free "
            "space or mend what is named here, then give the same command again, without --fresh."
        ) from error


def _reason(error: OSError | tf.errors.OpError) -> str:
    """The cause alone: TensorFlow puts the file before it and its operation around it."""
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else str(error)
    return str(error.message).splitlines()[0].rsplit("; ", 1)[-1].split(" [Op:")[0]
