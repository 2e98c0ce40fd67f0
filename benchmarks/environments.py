"""Python environments of peers, and processes in the checkout."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from segdec.errors import RunError

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "peers"


def peer_python(requirements: Path) -> str:
    """Returns Python in the environment of a requirements file, which is created or updated first.

    Raises:
        RunError: If the packages cannot be installed.
    """
    folder = ENVIRONMENTS / requirements.stem
    installed, python = folder / "installed.txt", str(folder / "bin" / "python")
    if not installed.is_file() or installed.read_bytes() != requirements.read_bytes():
        print(f"Installing {requirements.relative_to(ROOT)} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        run_command(sys.executable, "-m", "venv", str(folder))
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run_command(*pip, "-r", str(requirements))
        shutil.copyfile(requirements, installed)
    return python


def run_command(*command: str) -> None:
    """Runs a command in the checkout without output.

    Raises:
        RunError: If it fails, with the end of its stderr.
    """
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"`{' '.join(command)}` exited with {done.returncode}:\n{done.stderr[-2000:]}")


def start_process(
    command: Sequence[str], environment: Mapping[str, str] | None = None, **pipes: Any
) -> "subprocess.Popen[str]":
    """Starts a command in the checkout with additional variables; signals reach its child processes too."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.Popen(command, cwd=ROOT, env=variables, text=True, start_new_session=True, **pipes)


def signal_group(process: "subprocess.Popen[str]", number: int) -> None:
    """Sends a signal to a process of `start_process` and its child processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
