"""How much processor time work takes: unlike that of a clock it is the same beside other work."""

import time
from collections.abc import Callable, Mapping

ROUNDS = 5
"""In which each work is done once; the first one is not counted."""
MIN_ROUNDS, MAX_TOTAL_S = 3, 10.0
"""Rounds that are gone through in any case, and processor time after which no further one is begun."""

TICK_S = 1e-6
"""The least that is told; some clocks stand still between two ticks."""


def min_cpu_ms(
    works: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Does each work once a round, in turn, and returns the least processor time of each, ms.

    Args:
        works: What is measured, by name; the only work of this process meanwhile.
        clock: Seconds of processor time of all threads of the process.
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
