"""How many threads work, and on what.

The engine's arithmetic fills the cores: it gets as many threads as the process may use cores, or as many as
the operator says. What stands before and behind it (decoding, fitting, interpreting, writing) takes one
thread a step and is short beside it. OpenCV keeps to the thread that calls it, for its own pool would take
the cores from the engine.
"""

import argparse
import os

MAX_THREADS = 1024
"""Highest number a user can set; more is a slip of the hand."""


def available_cores() -> int:
    """Counts the cores that this process may use, as its affinity (`taskset`, a container's `cpuset`) says.

    A quota of processor time (`docker run --cpus`) limits no thread and is not seen.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # systems without affinity


def limit_opencv_threads() -> None:
    """Keeps OpenCV to the thread that calls it, in the whole process: for entry points alone."""
    import cv2  # not above: its limit on pixels must be set before it is imported

    cv2.setNumThreads(1)


def parse_thread_count(text: str) -> int:
    """Reads the value of a flag `--threads`, for `argparse`.

    Raises:
        ArgumentTypeError: If it is no whole number from 1 to 1024.
    """
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:12]) <= MAX_THREADS:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of threads. Expected a number from 1 to {MAX_THREADS}."
        )
    return int(text)
