"""How long the parts of a command take."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from training.formatting import format_duration, format_line


class PartDurations:
    """Wall-clock durations of the parts of a command, s, by name; parts of the same name are added.

    Time in a part that begins within another one counts for the inner one only, so that no time counts
    twice.

    Args:
        clock: Monotonic time, s.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._part: str | None = None
        self._since = 0.0
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Adds the duration of the block to a part."""
        outer = self._part
        self._change_to(part)
        try:
            yield
        finally:
            self._change_to(outer)

    def describe(self, total_s: float) -> str:
        """Returns a line with the parts of a command that took `total_s`, the longest first."""
        rest = {"other": max(0.0, total_s - sum(self.seconds.values()))}
        longest = sorted((self.seconds | rest).items(), key=lambda part: -part[1])
        return format_line("parts", ", ".join(f"{part} {format_duration(spent)}" for part, spent in longest))

    def _change_to(self, part: str | None) -> None:
        now = self._clock()
        if self._part is not None:
            self.seconds[self._part] = self.seconds.get(self._part, 0.0) + now - self._since
        self._part, self._since = part, now
