"""For how long a station is left alone after a failure."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_S, LONGEST_S = 1.0, 60.0
"""Seconds after the first failure, doubled with each further one, up to the longest."""
LONGEST_ASKED_S = 600.0
"""Most that a receiver may ask for."""

MAX_STATIONS = 10_000


@dataclass(frozen=True)
class _Pause:
    failures: int
    until: float


class Backoff:
    """Doubles the time from failure to failure, and spreads it by chance, so that not all come back at once.

    Args:
        clock: Seconds that never go back.
        uniform: Draws a number 0…1.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, uniform: Callable[[], float] = random.random
    ) -> None:
        self._clock, self._uniform = clock, uniform
        self._pauses: dict[str, _Pause] = {}

    def begin(self, station: str, asked_s: float = 0.0) -> float:
        """Begins a pause, the longer the more failures there were; returns its seconds."""
        if len(self._pauses) >= MAX_STATIONS:  # clients name them, and some never come again
            self._pauses = {name: pause for name, pause in self._pauses.items() if not self.is_over(name)}
        failures = self._pauses[station].failures + 1 if station in self._pauses else 1
        longest = min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 30))
        seconds = max(longest * (1 + self._uniform()) / 2, min(asked_s, LONGEST_ASKED_S))
        self._pauses[station] = _Pause(failures, self._clock() + seconds)
        return seconds

    def has(self, station: str) -> bool:
        """Returns whether the last attempt at a station failed."""
        return station in self._pauses

    def is_over(self, station: str) -> bool:
        """Returns whether a station may be tried."""
        return station not in self._pauses or self._clock() >= self._pauses[station].until

    def forget(self, station: str) -> None:
        """Begins anew after a success."""
        self._pauses.pop(station, None)
