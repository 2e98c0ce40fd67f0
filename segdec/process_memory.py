"""Memory of this process: its limit, its use, its peak, and the return of free memory to the system."""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None
TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8
"""Parameters of glibc's `mallopt`."""


def memory_limit(proc: Path = PROC, control_groups: Path = CONTROL_GROUPS) -> int:
    """Returns the bytes that this process may use: the machine's memory, or a lower limit of a control group.

    The limits are those of its own group and of all above it, in version 1 and version 2.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES if hasattr(os, "sysconf") else sys.maxsize]
    for line in (_read(proc / "self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = control_groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = control_groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        texts = [_read(root / folder / name) for folder in (group, *group.parents)]
        limits += [int(text) for text in texts if text and text.strip().isdecimal()]
    return min(limits)


def resident_bytes() -> int | None:
    """Returns the memory that this process uses; None if the system does not report it."""
    text = _read(PROC / "self/statm")
    return None if text is None else int(text.split()[1]) * PAGE_BYTES


def measure_peak_memory(work: Callable[[], object]) -> int | None:
    """Calls `work`; returns the maximum of bytes that the process used meanwhile, None if not on Linux."""
    try:
        (PROC / "self/clear_refs").write_text("5")  # resets the peak
    except OSError:
        work()
        return None
    work()
    lines = (PROC / "self/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def make_memory_returnable() -> None:
    """Configures the allocators so that `release_free_memory` works; for entry points, before TensorFlow.

    Otherwise oneDNN keeps all memory in an allocator of its own, and glibc maps and unmaps large blocks at
    each use, which takes a third of a forward pass. Without glibc, it does nothing.
    """
    if LIBRARY is not None and hasattr(LIBRARY, "mallopt"):
        os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "true")
        for parameter, value in ((MMAP_MAX, 0), (TRIM_THRESHOLD, 2**31 - 1), (ARENA_MAX, 1)):
            LIBRARY.mallopt(parameter, value)


def release_free_memory() -> None:
    """Returns free memory to the system. The next use of such memory is slower."""
    if LIBRARY is not None and hasattr(LIBRARY, "malloc_trim"):
        LIBRARY.malloc_trim(0)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
