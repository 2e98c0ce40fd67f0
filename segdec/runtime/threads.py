"""Numbers of threads: the engine uses one per core that the process may use, the other steps one each.

OpenCV uses only the calling thread, because its own thread pool would compete with the engine.
"""

import os

MAX_THREADS = 1024
"""Highest number that a user can set."""


def available_cores() -> int:
    """Counts the cores that this process may use by its affinity, without quotas (`docker run --cpus`)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # the system has no affinity


def limit_opencv_threads() -> None:
    """Makes OpenCV use only the calling thread, in the whole process; for entry points only."""
    import cv2  # not at the top: its limit on pixels must be set before the import

    cv2.setNumThreads(1)
