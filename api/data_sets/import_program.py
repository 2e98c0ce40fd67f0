"""Runs `python -m datasets` as a program: what it reads may need any memory and time."""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from api.messages.causes import Cause, JobError
from segdec.runtime.cli import EXIT_ERROR

ROOT = Path(__file__).parents[2]
"""The folder with the packages `api` and `datasets`."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MEMORY_ERRORS = ("MemoryError", "Insufficient memory", "Cannot allocate memory", "failed to map segment")
"""Of Python, OpenCV, the system, and libraries that are loaded."""
ERROR = "error.json"
"""File for the cause of an error, in the folder of the program."""
MAX_MESSAGE = 4000
"""Characters of the program's error that are kept."""


@dataclass(frozen=True)
class ProgramLimits:
    """Limits on a program.

    After `seconds` it is killed; its address space has at most `memory_bytes`.
    """

    seconds: float
    memory_bytes: int


async def run_datasets(folder: Path, limits: ProgramLimits, *arguments: str) -> list[str]:
    """Runs `python -m datasets` in `folder`; returns its notes and warnings. A cancellation kills it.

    Raises:
        JobError: If the program reports an error, needs more memory or time, or is missing.
    """
    command = ["-P", "-m", "api.data_sets.limited_program", str(limits.memory_bytes), "datasets"]
    command += ["--error", ERROR, *arguments]
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
        minutes = limits.seconds / 60
        raise JobError(
            f"Reading took more than {minutes:g} minutes. Send fewer photographs at once.",
            Cause(code="reading_too_slow", values={"minutes": minutes}),
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
    raise _explain(code, text, limits, await asyncio.to_thread(read_cause, folder / ERROR))


async def _read_end(stream: asyncio.StreamReader) -> bytes:
    """Reads everything, and keeps only the end: a program may print any number of messages."""
    kept = b""
    while chunk := await stream.read(2**16):
        kept = (kept + chunk)[-(2**18) :]
    return kept


def read_cause(path: Path) -> Cause:
    """Returns what the error of a program is about."""
    return Cause.model_validate_json(path.read_bytes()) if path.exists() else Cause(code="unreadable_data")


def _explain(code: int, text: str, limits: ProgramLimits, cause: Cause) -> JobError:
    """Returns the error of a program that failed; `cause` is that of its own error."""
    if code == EXIT_ERROR and (start := text.rfind("error: ")) >= 0:
        message = text[start + len("error: ") :].strip()[:MAX_MESSAGE]
        return JobError(message, cause)
    if code < 0 or any(words in text for words in MEMORY_ERRORS):
        gigabytes = limits.memory_bytes / 1e9
        return JobError(
            f"Reading needed more than {gigabytes:.1f} GB of memory, or more than the machine has. Send "
            "fewer or smaller photographs at once.",
            Cause(code="reading_memory", values={"gigabytes": round(gigabytes, 1)}),
        )
    if "No module named" in text:
        return JobError(
            "The package 'datasets' or a package that it needs is not installed with the service. Install "
            "the service as the Dockerfile does.",
            Cause(code="reading_not_installed"),
        )
    last = text.strip().splitlines()[-1:] or [f"exit code {code}"]
    line = last[0][:MAX_MESSAGE]
    return JobError(
        f"Reading failed: {line}. This is an error of the program; please report it.",
        Cause(code="reading_failed", values={"line": line}),
    )


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
