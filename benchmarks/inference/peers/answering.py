"""The competitor's end of the pipe: a line when it is ready, then one for each line that it reads.

Imported in the peers' environments, which have NumPy but not what `segdec` needs.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WARM_UPS = 2
"""Times that the work is done before it counts: libraries compile, choose kernels and get their memory."""

Work = Callable[[], Mapping[str, float]]
Answer = tuple[NDArray[Any], NDArray[Any]]


def answer_requests(prepare: Callable[[], tuple[Work, str]]) -> None:
    """Prepares, then does the work once for each line on stdin and answers what it took as JSON.

    That is seconds, processor time of all threads, and the memory peak.

    Args:
        prepare: Returns the work, which returns what else it has to tell, and the version of the library.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print does not get in between

    def tell(**figures: Any) -> None:
        print(json.dumps(figures), file=answers, flush=True)

    work, version = prepare()
    first = work()
    for _ in range(WARM_UPS - 1):
        work()
    tell(version=version, **first)
    for _ in sys.stdin:
        begun, cpu_begun = time.perf_counter(), time.process_time()
        figures = work()
        cpu_seconds = time.process_time() - cpu_begun  # of all threads
        seconds = time.perf_counter() - begun
        tell(seconds=seconds, cpu_seconds=cpu_seconds, peak_mb=peak_memory_mb(), **figures)


def answer_inferences(load: Callable[[Path, str], tuple[Callable[[NDArray[np.uint8]], Answer], str]]) -> None:
    """Runs `answer_requests` with inferences of one batch; its logits are left in a file.

    The command line is: folder with the network, variant of the runtime, file of the images, file for the
    logits.

    Args:
        load: Folder and variant → inference and version. An inference takes uint8 [B, H, W, C] and returns
            mask logits [B, H/8, W/8, 1] and class logits [B, classes].
    """
    parser = argparse.ArgumentParser()
    for name, kind in (("folder", Path), ("variant", str), ("images", Path), ("logits", Path)):
        parser.add_argument(name, type=kind)
    options = parser.parse_args()

    def prepare() -> tuple[Work, str]:
        images = np.load(options.images)
        infer, version = load(options.folder, options.variant)
        mask, classes = infer(images)
        np.savez(options.logits, mask=mask, classes=classes)

        def work() -> Mapping[str, float]:
            infer(images)
            return {}

        return work, version

    answer_requests(prepare)


def peak_memory_mb() -> float:
    """Returns the most memory that this process ever had in use, 10⁶ bytes.

    Not `ru_maxrss`: a process inherits that of the one that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
