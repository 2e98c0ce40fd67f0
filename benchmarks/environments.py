"""Python environments for peers and for single extras."""

import shutil
import subprocess
import sys
from pathlib import Path

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
