"""Writing files and folders so that a reader never meets half of one."""

import glob
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows, where no folder can be locked: age decides
    fcntl = None  # type: ignore[assignment]

ABANDONED_S = 86_400.0
"""Age from which on a half-written folder counts as left behind, where folders cannot be locked."""


def write_bytes_atomic(path: Path, data: bytes) -> None:
    """Writes `data` to `path`: afterwards the file is complete, or it is as it was before.

    Raises:
        OSError: If the folder is missing, full or not writable. Nothing is left behind.
    """
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text_atomic(path: Path, text: str) -> None:
    """Writes `text` as UTF-8, line ends as given; see `write_bytes_atomic`."""
    write_bytes_atomic(path, text.encode("utf-8"))


@contextmanager
def atomic_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Makes `folder`: afterwards it is complete, or it is as it was before.

    Yields an empty folder beside `folder` to fill; missing parents are made. If the block ends well it
    takes the place of `folder`, and what lay there is removed; if the block fails it vanishes. A
    symbolic link is followed. What killed processes left of the same folder is removed, too; what others
    are writing just now stays.

    Raises:
        FileExistsError: If `folder` exists and `overwrite` is false, or it is no folder. Nothing was made.
        OSError: If the place is full or not writable.
    """
    target = folder.resolve()
    if target.exists() and not (overwrite and target.is_dir()):
        raise FileExistsError(f"{folder} exists. Choose another folder or allow to overwrite a folder.")
    if target.exists():  # else what a killed process left may be the last copy
        _remove_abandoned(target)
    with _staged(target) as staged:
        try:
            yield staged
            _put_in_place(staged, target, overwrite)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    _remove_abandoned(target)


def remove_temporary_files(folder: Path, name: str | None = None) -> None:
    """Removes what killed writers left in `folder`; call it where no other process writes.

    Args:
        folder: Where they wrote; it may be missing.
        name: Only what was to become, or had been, the folder of this name.
    """
    for path in folder.glob(".*.tmp" if name is None else _leftovers_of(name)):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _put_in_place(staged: Path, target: Path, overwrite: bool) -> None:
    if not (overwrite and target.exists()):
        staged.rename(target)
        return
    old = _beside(target)
    with folder_lock(target):
        target.rename(old)
        try:
            staged.rename(target)
        except BaseException:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)  # what cannot be removed is no failure: the new one is there


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """Makes an empty folder beside `target` that nobody else takes for abandoned."""
    while True:
        staged = _beside(target)
        staged.mkdir(parents=True)
        with folder_lock(staged):
            if staged.exists():  # else it was taken for abandoned before it was held
                yield staged
                return


@contextmanager
def folder_lock(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Lets one process at a time into a folder; the kernel lets the next one in when the process dies.

    The folder keeps its mark under whatever name it gets.

    Args:
        folder: That is to be held.
        wait: Until nobody else holds it.

    Raises:
        BlockingIOError: If another process holds it, and this one does not wait.
    """
    with ExitStack() as stack:
        if fcntl is not None:
            try:
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:  # it has gone, or lies on a network file system that locks no folders
                pass
        yield


def fsync_folder(folder: Path) -> None:
    """Returns when the names in a folder survive a loss of power.

    Raises:
        OSError: If it cannot be written.
    """
    if fcntl is None:  # Windows opens no folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(target: Path) -> None:
    """Removes the folders beside `target` in which processes were killed that wrote it."""
    for path in target.parent.glob(_leftovers_of(target.name)):
        with suppress(OSError):  # another process removes it, too
            _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    old = time.time() - path.stat().st_mtime > ABANDONED_S
    with ExitStack() as stack:
        if fcntl is not None:
            descriptor = os.open(path, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                old = True
            except BlockingIOError:
                return  # its writer is alive
            except OSError:
                pass
        if old:
            shutil.rmtree(path, ignore_errors=True)


def _leftovers_of(name: str) -> str:
    return f".{glob.escape(name)}.{'[0-9a-f]' * 32}.tmp"


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex}.tmp")
