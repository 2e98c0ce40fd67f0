"""Delays between attempts to reach a receiver, by station."""

import random
import time
from collections.abc import Callable

FIRST_S, MAX_S = 1.0, 60.0
"""Delay after the first failure, doubled with each further one, and the maximum."""
MAX_RETRY_AFTER_S = 600.0
"""Longest `Retry-After` that is respected."""
MAX_STATIONS = 10_000


class Backoff:
    """Exponential backoff with random jitter."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, uniform: Callable[[], float] = random.random
    ) -> None:
        self._clock, self._uniform = clock, uniform
        self._delays: dict[str, tuple[int, float]] = {}
        """Failures, and the end of the delay, by station."""

    def start(self, station: str, retry_after_s: float = 0.0) -> float:
        """Starts the delay after a failure; returns its seconds."""
        if len(self._delays) >= MAX_STATIONS:  # clients choose the names, so their number is unlimited
            self._delays = {name: delay for name, delay in self._delays.items() if not self.is_over(name)}
        failures = self._delays.get(station, (0, 0.0))[0] + 1
        longest = min(MAX_S, FIRST_S * 2.0 ** min(failures - 1, 30))
        seconds = max(longest * (1 + self._uniform()) / 2, min(retry_after_s, MAX_RETRY_AFTER_S))
        self._delays[station] = failures, self._clock() + seconds
        return seconds

    def is_failing(self, station: str) -> bool:
        """Returns whether the last attempt at a station failed."""
        return station in self._delays

    def is_over(self, station: str) -> bool:
        """Returns whether a station may be tried."""
        return station not in self._delays or self._clock() >= self._delays[station][1]

    def reset(self, station: str) -> None:
        """Ends the delay after a success."""
        self._delays.pop(station, None)
