"""Writing files and folders so that a reader never meets half of one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


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
def new_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Makes `folder`: afterwards it is complete, or it is as it was before.

    Yields an empty folder beside `folder` to fill; missing parents are made. If the block ends well it
    takes the place of `folder`, and what lay there is removed; if the block fails it vanishes. A
    symbolic link is followed.

    Raises:
        FileExistsError: If `folder` exists and `overwrite` is false, or it is no folder. Nothing was made.
        OSError: If the place is full or not writable.
    """
    target = folder.resolve()
    if target.exists() and not (overwrite and target.is_dir()):
        raise FileExistsError(f"{folder} exists. Choose another folder or allow to overwrite a folder.")
    staged = _beside(target)
    staged.mkdir(parents=True)
    try:
        yield staged
        _put_in_place(staged, target, overwrite)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Removes what killed writers left in `folder`; call it where no other process writes.

    Args:
        folder: Where they wrote; it may be missing.
        name: Only what was to become, or had been, the folder of this name.
    """
    pattern = ".*.tmp" if name is None else f".{name}.{'[0-9a-f]' * 32}.tmp"
    for path in folder.glob(pattern):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _put_in_place(staged: Path, target: Path, overwrite: bool) -> None:
    if not (overwrite and target.exists()):
        staged.rename(target)
        return
    old = _beside(target)
    target.rename(old)
    try:
        staged.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new folder is in place: what cannot be removed is no failure


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex}.tmp")
