"""Writes files and folders atomically: readers never see a partial one."""

import glob
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows cannot lock folders
    fcntl = None  # type: ignore[assignment]

ABANDONED_S = 86_400.0
"""Age of an abandoned partial folder, on systems that cannot lock folders."""
DIGITS = "[0-9a-f]" * 32
"""Pattern of the number in the name of a temporary folder."""
REPLACED = ".replaced"
"""Marks the name of a temporary folder as the former content of its target."""


def write_bytes_atomic(path: Path, data: bytes) -> None:
    """Writes `data` to `path` atomically: on an error, the file stays as it was."""
    _write_temporary(path, data, lambda temporary: temporary.replace(path))


def create_bytes_atomic(path: Path, data: bytes) -> None:
    """As `write_bytes_atomic`, for a new file: raises a FileExistsError if there is one.

    The file system must have hard links.
    """
    _write_temporary(path, data, lambda temporary: os.link(temporary, path))


def _write_temporary(path: Path, data: bytes, put_in_place: Callable[[Path], object]) -> None:
    """Writes a temporary file beside `path`, which is removed unless `put_in_place` moves it."""
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomic(path: Path, text: str) -> None:
    """Writes `text` as UTF-8 with its line ends unchanged; see `write_bytes_atomic`."""
    write_bytes_atomic(path, text.encode("utf-8"))


@contextmanager
def atomic_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Writes `folder` atomically: on an error, it stays as it was.

    Yields an empty temporary folder in the same parent, which is created if missing. If the block succeeds,
    the temporary folder replaces `folder`; if the block raises, it is removed. Symbolic links are followed.
    Temporary folders that killed processes left in the parent are removed as well.

    Raises:
        FileExistsError: If `folder` exists and `overwrite` is false, or it is not a folder.
        OSError: If the disk is full or the parent is not writable.
    """
    target = folder.resolve()
    if target.exists() and not (overwrite and target.is_dir()):
        raise FileExistsError(f"{folder} exists. Choose another folder or allow to overwrite a folder.")
    _remove_abandoned(target.parent)
    with _staged(target) as staged:
        try:
            yield staged
            _put_in_place(staged, target, overwrite)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    _remove_abandoned(target.parent)


def remove_temporary_files(folder: Path, name: str | None = None) -> None:
    """Removes the temporary files and folders of killed writers, but not the last copy of a replaced folder.

    No other process may write in `folder`, which may be missing. With a `name`, only temporary folders of the
    target with this name.
    """
    for path in folder.glob(".*.tmp" if name is None else f".{glob.escape(name)}.{DIGITS}*.tmp"):
        if _is_last_copy(path):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _put_in_place(staged: Path, target: Path, overwrite: bool) -> None:
    if not (overwrite and target.exists()):
        staged.rename(target)
        return
    old = _beside(target, REPLACED)
    with folder_lock(target):
        target.rename(old)
        try:
            staged.rename(target)
        except BaseException:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)  # the new folder is in place, so errors do not matter


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """Creates a locked temporary folder next to `target`."""
    while True:
        staged = _beside(target)
        staged.mkdir(parents=True)
        with folder_lock(staged):
            if staged.exists():  # else another process removed it before it was locked
                yield staged
                return


@contextmanager
def folder_lock(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Locks a folder for one process; the lock ends with the process and survives a rename of the folder.

    Yields whether it is locked: not if it was removed, or the system has no locks for folders.

    Raises:
        BlockingIOError: If another process has the lock and `wait` is false.
    """
    with ExitStack() as stack:
        locked = False
        if fcntl is not None:
            try:
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except BlockingIOError:
                raise
            except OSError:
                pass
        yield locked


def fsync_folder(folder: Path) -> None:
    """Flushes a folder's entries to disk, so that they survive a power loss."""
    if fcntl is None:  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(parent: Path) -> None:
    """Removes the temporary folders that killed writers left, but not the last copy of a replaced folder."""
    for path in parent.glob(f".?*.{DIGITS}*.tmp"):
        if _is_last_copy(path):
            continue
        with suppress(OSError):  # its writer is running, or another process is removing it
            old = time.time() - path.stat().st_mtime > ABANDONED_S
            with folder_lock(path, wait=False) as locked:
                if locked or old:
                    shutil.rmtree(path, ignore_errors=True)


def _is_last_copy(temporary: Path) -> bool:
    """Returns whether it is the former content of a folder whose writer was killed while replacing it."""
    name = temporary.name.removesuffix(f"{REPLACED}.tmp")
    return name != temporary.name and not temporary.with_name(name[1:-33]).exists()


def _beside(path: Path, kind: str = "") -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex}{kind}.tmp")
