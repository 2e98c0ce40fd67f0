"""Python environments of the peers, apart from the project's own."""

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.serving.server_process import ROOT
from segdec.errors import RunError

REQUIREMENTS = Path(__file__).parent / "peers"
ENVIRONMENTS = ROOT / "build" / "peers"


def peer_program(peer: str, program: str = "python") -> str:
    """A program of the environment of `peer`, which is made first where it is missing or out of date.

    Raises:
        RunError: If its packages cannot be installed.
    """
    folder, wanted = ENVIRONMENTS / peer, REQUIREMENTS / f"{peer}.txt"
    installed = folder / "installed.txt"
    if not installed.is_file() or installed.read_bytes() != wanted.read_bytes():
        print(f"Installing {wanted.relative_to(ROOT)} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(folder))
        python = str(folder / "bin" / "python")
        _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(wanted))
        shutil.copyfile(wanted, installed)
    return str(folder / "bin" / program)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"`{' '.join(command)}` left with {done.returncode}:\n{done.stderr[-2000:]}")
