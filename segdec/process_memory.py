"""How much memory this process may take, takes and took at most, and how it gives back what it uses no more.

psutil tells the machine's memory, not what a container is allowed; it would be a dependency for one number.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

LIMIT_FILES = {"cgroup2": "memory.max", "cgroup": "memory.limit_in_bytes"}
"""By the kind of file system that control groups are shown in: version 2, version 1."""

TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8
"""Parameters of glibc's `mallopt`."""

# === How much there is ===


def memory_limit() -> int:
    """Returns the bytes that this process may take: the machine's, or what its control groups allow."""
    machine = os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES if hasattr(os, "sysconf") else sys.maxsize
    return min([machine, *control_group_limits()])


def control_group_limits(proc: Path = PROC) -> list[int]:
    """Lists the limits on memory, bytes, of this process's control group and all above it, of both versions.

    A container may see its own group as the topmost one. Systems without control groups have none.

    Args:
        proc: Where the kernel tells of processes.
    """
    try:
        mounts = (proc / "self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        groups = (proc / "self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [limit for path in _limit_files(mounts, groups) if (limit := _read_limit(path)) is not None]


def _limit_files(mounts: list[str], groups: list[str]) -> Iterator[Path]:
    own = {}  # kind of file system → path of the process's group
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            own["cgroup2"] = path
        elif "memory" in controllers.split(","):
            own["cgroup"] = path
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, place = before.split()[3:5]
        kind, _, options = after.split(maxsplit=2)
        if kind not in own or (kind == "cgroup" and "memory" not in options.split(",")):
            continue
        group = PurePosixPath(own[kind])
        # Seen from inside a container the group's path may be that of the host, which is not there.
        inner = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
        for part in (inner, *inner.parents):
            yield Path(place) / part / LIMIT_FILES[kind]


def _read_limit(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such group here, or "max"
        return None


# === How much is taken ===


def resident_bytes() -> int | None:
    """Returns the memory that this process has in use; None where the system does not tell."""
    try:
        return int((PROC / "self/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return None


def measure_peak(work: Callable[[], object]) -> int | None:
    """Does `work`.

    Returns:
        The most bytes that the process had in use meanwhile; None where the system does not tell, which
        only Linux does.
    """
    try:
        (PROC / "self/clear_refs").write_text("5")  # forgets the peak so far
    except OSError:
        work()
        return None
    work()
    lines = (PROC / "self/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


# === Giving back ===


def make_memory_returnable() -> None:
    """Lets what large photographs took be given back by `release_free_memory`: for entry points alone.

    Call it before TensorFlow is imported. With oneDNN that keeps all it ever took in an allocator of its own;
    here the C library's gets it. That maps and unmaps large blocks each time they are used, which costs a
    third of a forward pass: so it is told to keep them, in one arena, until asked. Does nothing where the C
    library is not glibc.
    """
    library = _c_library()
    if library is None or not hasattr(library, "mallopt"):
        return
    os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "true")
    for parameter, value in ((MMAP_MAX, 0), (TRIM_THRESHOLD, 2**31 - 1), (ARENA_MAX, 1)):
        library.mallopt(parameter, value)


def release_free_memory() -> None:
    """Gives free memory back to the system; what is in use stays. Costs what the next use of it costs."""
    library = _c_library()
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def _c_library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
