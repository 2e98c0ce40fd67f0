"""Runs `python -m datasets` as a program: what it reads may need any memory and time."""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from segdec.errors import DatasetError
from segdec.runtime.cli import EXIT_ERROR

ROOT = Path(__file__).parents[2]
"""The folder with the packages `api` and `datasets`."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MEMORY_ERRORS = ("MemoryError", "Insufficient memory", "Cannot allocate memory", "failed to map segment")
"""Of Python, OpenCV, the system, and libraries that are loaded."""
MAX_MESSAGE = 4000
"""Characters of the program's error that are kept."""


@dataclass(frozen=True)
class ProgramLimits:
    """Limits on a program.

    Attributes:
        seconds: Time after which it is killed.
        memory_bytes: Address space.
    """

    seconds: float
    memory_bytes: int


async def run_datasets(folder: Path, limits: ProgramLimits, *arguments: str) -> list[str]:
    """Runs `python -m datasets` in `folder`; returns its notes and warnings. A cancellation kills it.

    Raises:
        DatasetError: If the program reports an error, needs more memory or time, or is missing.
    """
    command = ["-P", "-m", "api.data_sets.limited_program", str(limits.memory_bytes), "datasets", *arguments]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=folder,
        env=_environment(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(limits.seconds):
            assert process.stderr is not None
            printed = await _read_end(process.stderr)
            code = await process.wait()
    except TimeoutError:
        raise DatasetError(
            f"Reading took more than {limits.seconds / 60:g} minutes. Send fewer photographs at once."
        ) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    text = printed.decode(errors="replace")
    if code == 0:
        words = ("note: ", "warning: ")
        return [line.partition(": ")[2] for line in text.splitlines() if line.startswith(words)]
    raise DatasetError(_explain(code, text, limits))


async def _read_end(stream: asyncio.StreamReader) -> bytes:
    """Reads everything, and keeps only the end: a program may print any number of messages."""
    kept = b""
    while chunk := await stream.read(2**16):
        kept = (kept + chunk)[-(2**18) :]
    return kept


def _explain(code: int, text: str, limits: ProgramLimits) -> str:
    if code == EXIT_ERROR and (start := text.rfind("error: ")) >= 0:
        return text[start + len("error: ") :].strip()[:MAX_MESSAGE]
    if code < 0 or any(words in text for words in MEMORY_ERRORS):
        return (
            f"Reading needed more than {limits.memory_bytes / 1e9:.1f} GB of memory, or more than the "
            "machine has. Send fewer or smaller photographs at once."
        )
    if "No module named" in text:
        return (
            "The package 'datasets' or a package that it needs is not installed with the service. Install "
            "the service as the Dockerfile does."
        )
    last = text.strip().splitlines()[-1:] or [f"exit code {code}"]
    return f"Reading failed: {last[0][:MAX_MESSAGE]}. This is an error of the program; please report it."


def _environment(folder: Path) -> dict[str, str]:
    """Variables of the program: no setting of the service, and none of its secrets."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    own = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {
        **own,
        **dict.fromkeys(THREAD_VARIABLES, "1"),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
