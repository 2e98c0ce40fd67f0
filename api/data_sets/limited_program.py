"""Limits its own process, then runs a Python module as a program.

`python -P -m api.data_sets.limited_program MEMORY_BYTES MODULE ARGUMENT…`
"""

import ctypes
import os
import resource
import runpy
import signal
import sys
from contextlib import suppress
from pathlib import Path

SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2), Linux."""
OOM_SCORE, MAX_SCORE = Path("/proc/self/oom_score_adj"), "1000"
"""When memory is short, the system ends this process, not the service."""
NICENESS = 10
"""Inspections come first."""


def main() -> None:
    """Runs the module; the process ends with the one that started it."""
    memory_bytes, module, *arguments = sys.argv[1:]
    limit_process(int(memory_bytes))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def limit_process(memory_bytes: int) -> None:
    """Limits the address space of this process; it gets less CPU time, and a SIGKILL when its parent ends."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the signal was set
        raise SystemExit(1)
    with suppress(OSError):  # not Linux
        OOM_SCORE.write_text(MAX_SCORE)
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
