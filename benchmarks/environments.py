"""Python environments of the peers, apart from the project's own."""

import shutil
import subprocess
import sys
from pathlib import Path

from segdec.errors import RunError

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "peers"


def peer_program(requirements: Path, program: str = "python") -> str:
    """Returns a program of the environment of `requirements`, made first if it is missing or out of date.

    Args:
        requirements: A requirement file within the checkout; the environment is called after it.
        program: Its name.

    Raises:
        RunError: If the packages cannot be installed.
    """
    folder = ENVIRONMENTS / requirements.stem
    installed = folder / "installed.txt"
    if not installed.is_file() or installed.read_bytes() != requirements.read_bytes():
        print(f"Installing {requirements.relative_to(ROOT)} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        run_command(sys.executable, "-m", "venv", str(folder))
        python = str(folder / "bin" / "python")
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run_command(*pip, "-r", str(requirements))
        shutil.copyfile(requirements, installed)
    return str(folder / "bin" / program)


def run_command(*command: str) -> None:
    """Runs a command from the checkout's root, silently.

    Raises:
        RunError: If it fails, with the end of what it said.
    """
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"`{' '.join(command)}` left with {done.returncode}:\n{done.stderr[-2000:]}")
