"""Commands in processes that begin with TensorFlow imported, for importing takes long.

They are forked, by the server of `multiprocessing`, from a process that has imported it and started nothing.
What depends on how a process begins needs a real one.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
PATIENCE_S = 900


def run(
    module: str, *arguments: object, folder: Path = ROOT, before: Callable[[], None] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Does `python -m MODULE ARGUMENTS` in a folder, after a call of `before`; answers as `subprocess.run`.

    Raises:
        TimeoutExpired: If it takes a quarter of an hour.
    """
    with tempfile.TemporaryDirectory() as outputs:
        files = Path(outputs, "printed"), Path(outputs, "errors")
        code = wait(_start([module, *map(str, arguments)], files, folder, {}, before))
        return subprocess.CompletedProcess([module, *arguments], code, *(file.read_text() for file in files))


def start(
    module: str,
    *arguments: object,
    printed: Path,
    before: Callable[[], None] | None = None,
    **environment: str,
) -> ForkServerProcess:
    """Starts it in the checkout, after a call of `before`; all that it prints goes to a file."""
    return _start([module, *map(str, arguments)], (printed, printed), ROOT, environment, before)


def wait(process: ForkServerProcess) -> int:
    """Returns the exit code, or the number of the signal that ended it with a minus.

    Raises:
        TimeoutExpired: If it takes a quarter of an hour; the process is killed.
    """
    process.join(PATIENCE_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise subprocess.TimeoutExpired(process.name, PATIENCE_S)
    return process.exitcode


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.imported_tensorflow"])
    with patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(ROOT)}):
        forkserver.ensure_running()
    return context


def _start(
    words: list[str],
    files: tuple[Path, Path],
    folder: Path,
    changes: Mapping[str, str],
    before: Callable[[], None] | None,
) -> ForkServerProcess:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **changes}
    process = _server().Process(target=_become, args=(words, files, folder, environment, before))
    process.start()
    return process


def _become(
    words: list[str],
    files: tuple[Path, Path],
    folder: Path,
    environment: Mapping[str, str],
    before: Callable[[], None] | None,
) -> None:
    for descriptor, path in enumerate(files, start=1):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = words
    if before:
        before()
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
