"""The protocol of a competitor process: one JSON line when it is ready, then one for each line on stdin.

This module is imported in the peers' environment, which has NumPy but not `segdec`.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WARM_UPS = 2
"""Uncounted inferences: libraries compile, choose kernels and allocate memory."""

Answer = tuple[NDArray[Any], NDArray[Any]]
Infer = Callable[[NDArray[np.uint8]], Answer]


def answer_requests(prepare: Callable[[], tuple[Callable[[], object], str]]) -> None:
    """Runs the work that `prepare` returns with the library's version once for each line on stdin.

    Writes wall time, CPU time and memory peak as JSON.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # keeps prints of libraries out of the answers
    work, version = prepare()
    for _ in range(WARM_UPS):
        work()
    print(json.dumps({"version": version}), file=answers, flush=True)
    for _ in sys.stdin:
        begun, cpu_begun = time.perf_counter(), time.process_time()
        work()
        figures = {
            "cpu_seconds": time.process_time() - cpu_begun,
            "seconds": time.perf_counter() - begun,
            "peak_mb": peak_memory_mb(),
        }
        print(json.dumps(figures), file=answers, flush=True)


def answer_inferences(load: Callable[[Path, str], tuple[Infer, str]]) -> None:
    """Runs `answer_requests` with inferences of one batch, and saves the logits of the first one.

    The command line is: folder of the network, engine, file of the images, file for the logits. An inference
    takes uint8 [B, H, W, C] and returns mask logits [B, H/s, W/s, 1] and class logits [B, classes].
    """
    parser = argparse.ArgumentParser()
    for name, kind in (("folder", Path), ("engine", str), ("images", Path), ("logits", Path)):
        parser.add_argument(name, type=kind)
    options = parser.parse_args()

    def prepare() -> tuple[Callable[[], object], str]:
        images = np.load(options.images)
        infer, version = load(options.folder, options.engine)
        mask, classes = infer(images)
        np.savez(options.logits, mask=mask, classes=classes)
        return lambda: infer(images), version

    answer_requests(prepare)


def peak_memory_mb() -> float:
    """Returns the memory peak of this process, 10⁶ bytes; `ru_maxrss` would include the parent process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
