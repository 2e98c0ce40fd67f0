"""The most memory that this process has held. Linux only.

`resource.getrusage` does not measure that: a process begins with the peak of the one that started it.
"""

from pathlib import Path


def reset_peak() -> None:
    """Forgets the peak so far."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The largest resident memory since the start or `reset_peak`, MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
