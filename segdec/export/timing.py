"""Measures CPU time, which unlike wall time does not depend on other processes."""

import time
from collections.abc import Callable, Mapping

ROUNDS = 5
"""Rounds that run each function once; the first one is not counted."""
MIN_ROUNDS, MAX_TOTAL_S = 3, 10.0
"""Minimum number of rounds, and CPU time after which no further round starts."""

TICK_S = 1e-6
"""Minimum result, because the clock has a limited resolution."""


def min_cpu_ms(
    works: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Runs each function once per round and returns the minimum CPU time of each, ms.

    Args:
        works: Functions to measure, by name; nothing else may run in this process.
        clock: Returns the CPU time of all threads of the process, seconds.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    begun = clock()
    for number in range(ROUNDS + 1):
        if number >= MIN_ROUNDS and clock() - begun > MAX_TOTAL_S:
            break
        for name, work in works.items():
            start = clock()
            work()
            found[name].append(clock() - start)
    return {name: 1e3 * max(min(seconds[1:]), TICK_S) for name, seconds in found.items()}
