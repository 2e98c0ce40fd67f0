"""Files at a path or URL, by TensorFlow's file systems. No other module here imports TensorFlow."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from segdec.errors import DatasetError, MissingExtraError

CHUNK_BYTES = 2**24


def is_url(place: str) -> bool:
    """Returns whether `place` is a URL, `gs://bucket/parts`, and not a path."""
    return "://" in place


def join(folder: str, name: str) -> str:
    """Returns the file `name` in `folder`, a path or a URL."""
    return f"{folder.removesuffix('/')}/{name}"


def tensorflow() -> Any:
    """Imports TensorFlow; raises MissingExtraError if it is not installed."""
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        raise MissingExtraError("tensorflow", "tensorflow") from error
    return tf


def check_scheme(place: str) -> None:
    """Raises DatasetError if TensorFlow has no file system for the URL `place`."""
    scheme = place.partition("://")[0] if is_url(place) else ""
    if scheme not in _schemes():
        with suppress(ImportError):
            import_module("tensorflow_io")  # adds s3 and others to TensorFlow when it is imported
    if scheme not in _schemes():
        known = ", ".join(f"{scheme}://" for scheme in sorted(_schemes() - {"", "file"}))
        raise DatasetError(
            f"{place}: TensorFlow {tensorflow().__version__} has no file system for '{scheme}://', only "
            f"{known} and folders. Install a tensorflow-io for this version (it adds s3:// and others), or "
            "mount the bucket as a folder."
        )


def size(place: str) -> int | None:
    """Returns the size in bytes of the file at `place`, None if there is none; DatasetError if that fails."""
    tf = tensorflow()
    with _dataset_errors(place, "reached"):
        try:
            return int(tf.io.gfile.stat(place).length)
        except tf.errors.NotFoundError:
            return None


def read(place: str) -> bytearray:
    """Reads the file at `place`; raises DatasetError if that fails."""
    data = bytearray()
    with _dataset_errors(place, "read"), tensorflow().io.gfile.GFile(place, "rb") as file:
        for start in range(0, file.size(), CHUNK_BYTES):  # a single read would need the memory twice
            data += file.read(min(CHUNK_BYTES, file.size() - start))
    return data


def read_range(place: str, offset: int, length: int) -> bytes:
    """Reads `length` bytes from `offset`, fewer at the end of the file; raises DatasetError if that fails."""
    tf = tensorflow()
    end = suppress(tf.errors.OutOfRangeError)
    with _dataset_errors(place, "read"), tf.io.gfile.GFile(place, "rb") as file, end:
        file.seek(offset)
        return bytes(file.read(length))
    return b""


def write(place: str, data: bytes) -> None:
    """Writes a file; raises DatasetError if that fails."""
    with _dataset_errors(place, "written"), tensorflow().io.gfile.GFile(place, "wb") as file:
        file.write(data)


@contextmanager
def record_writer(place: str) -> Iterator[Callable[[bytes], None]]:
    """Creates a TFRecord file; yields a function that writes an item. Raises DatasetError if that fails."""
    if size(place) is not None:
        remove(place)  # not every file system truncates a file that it opens for writing
    with _dataset_errors(place, "written"), tensorflow().io.TFRecordWriter(place) as writer:
        yield writer.write


def make_folder(place: str) -> None:
    """Creates a folder and its parents; raises DatasetError if that fails."""
    with _dataset_errors(place, "created"):
        tensorflow().io.gfile.makedirs(place)


def remove(place: str) -> None:
    """Removes a file; raises DatasetError if that fails."""
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
            f"{place} cannot be {done}: {reason}. Check the path, its permissions and the connection."
        ) from error
