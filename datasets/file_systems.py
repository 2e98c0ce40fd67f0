"""Files behind a path or a URL, through TensorFlow's file systems: what loads TensorFlow in `datasets`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from segdec.errors import DatasetError, MissingExtraError

CHUNK_BYTES = 2**24

LOCAL_SCHEMES = {"", "file"}


def is_url(place: str) -> bool:
    """Returns whether `place` is a URL, `gs://bucket/parts`, and not a path."""
    return "://" in place


def join(folder: str, name: str) -> str:
    """Returns the file `name` in `folder`, a path or a URL."""
    return f"{folder.removesuffix('/')}/{name}"


def tensorflow() -> Any:
    """Returns the module `tensorflow`; MissingExtraError if it is not installed."""
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        raise MissingExtraError("tensorflow", "tensorflow") from error
    return tf


def check_scheme(place: str) -> None:
    """Refuses a URL that this TensorFlow has no file system for.

    Raises:
        DatasetError: If there is none; names the scheme and those that are there.
    """
    scheme = place.partition("://")[0] if is_url(place) else ""
    if scheme not in _schemes():
        with suppress(ImportError):
            import_module("tensorflow_io")  # adds s3 and others to TensorFlow when it is imported
    if scheme not in _schemes():
        there = ", ".join(f"{known}://" for known in sorted(_schemes() - LOCAL_SCHEMES))
        raise DatasetError(
            f"{place}: TensorFlow {tensorflow().__version__} has no file system for '{scheme}://' here. "
            f"It has {there} and plain folders. Install a tensorflow-io that fits this TensorFlow (it adds "
            "s3:// and others), or mount the bucket as a folder."
        )


def size(place: str) -> int | None:
    """Returns the bytes of the file at `place`; None if there is none.

    Raises:
        DatasetError: If that cannot be told.
    """
    tf = tensorflow()
    with _dataset_errors(place, "reached"):
        try:
            return int(tf.io.gfile.stat(place).length)
        except tf.errors.NotFoundError:
            return None


def read(place: str) -> bytearray:
    """Returns all bytes of the file at `place`; DatasetError if it cannot be read."""
    data = bytearray()
    with _dataset_errors(place, "read"), tensorflow().io.gfile.GFile(place, "rb") as file:
        for start in range(0, file.size(), CHUNK_BYTES):  # read whole it would be in memory twice
            data += file.read(min(CHUNK_BYTES, file.size() - start))
    return data


def read_range(place: str, offset: int, length: int) -> bytes:
    """Reads `length` bytes from `offset` on, fewer where the file ends; DatasetError if it cannot be read."""
    tf = tensorflow()
    with _dataset_errors(place, "read"), tf.io.gfile.GFile(place, "rb") as file:
        try:
            file.seek(offset)
            return bytes(file.read(length))
        except tf.errors.OutOfRangeError:
            return b""


def write(place: str, data: bytes) -> None:
    """Writes a file; DatasetError if it cannot be written."""
    with _dataset_errors(place, "written"), tensorflow().io.gfile.GFile(place, "wb") as file:
        file.write(data)


@contextmanager
def record_writer(place: str) -> Iterator[Callable[[bytes], None]]:
    """Opens a new TFRecord file; yields what writes one record. DatasetError if it cannot be written."""
    if size(place) is not None:
        remove(place)  # not every file system cuts a file that it opens for writing
    with _dataset_errors(place, "written"), tensorflow().io.TFRecordWriter(place) as writer:
        yield writer.write


def make_folder(place: str) -> None:
    """Makes a folder and its parents, where it is missing; DatasetError if that fails."""
    with _dataset_errors(place, "made"):
        tensorflow().io.gfile.makedirs(place)


def remove(place: str) -> None:
    """Removes a file; DatasetError if that fails."""
    with _dataset_errors(place, "removed"):
        tensorflow().io.gfile.remove(place)


def _schemes() -> set[str]:
    return set(tensorflow().io.gfile.get_registered_schemes())


@contextmanager
def _dataset_errors(place: str, done: str) -> Iterator[None]:
    try:
        yield
    except tensorflow().errors.OpError as error:
        reason = " ".join(str(error.message).split()) or type(error).__name__
        raise DatasetError(
            f"{place} cannot be {done}: {reason}. Check the path, its permissions and the way to it."
        ) from error
