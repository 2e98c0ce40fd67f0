"""Measures CPU time, which unlike wall time does not depend on other processes."""

import time
from collections.abc import Callable, Mapping

ROUNDS, MIN_ROUNDS = 5, 3
"""Rounds after the first one, which is not counted, and their minimum."""
MAX_TOTAL_S = 10.0
"""CPU time after which no further round starts."""


def min_cpu_ms(
    works: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Runs each function once per round and returns the minimum CPU time (all threads) of each, ms."""
    measured: dict[str, list[float]] = {name: [] for name in works}
    begun = clock()
    for number in range(ROUNDS + 1):
        if number >= MIN_ROUNDS and clock() - begun > MAX_TOTAL_S:
            break
        for name, work in works.items():
            start = clock()
            work()
            measured[name].append(clock() - start)
    # The clock has a limited resolution.
    return {name: max(1e3 * min(seconds[1:]), 1e-3) for name, seconds in measured.items()}
