"""Sees from outside a thread how long it has been at one piece of work, and whether it hangs.

The event loop, which asks, does not see itself: what it decodes of small photographs is not watched.
"""

import logging
import time
from collections.abc import Callable
from typing import Literal, Self, get_args

Step = Literal["decode", "infer", "encode", "load", "shadow"]
"""What a thread does: for a photograph, for a batch, for a model (its self-test, its first batches), or for a
photograph that a candidate sees, too."""
THREAD_STEPS: tuple[Step, ...] = get_args(Step)

LOAD_FACTOR = 5
"""How many times longer than a batch a step of loading a model may take: a first batch is also compiled."""
EXIT_AFTER_S = 60.0
"""Seconds between being lost and leaving, in which whoever asks `/livez` replaces the process in order."""

logger = logging.getLogger(__name__)


class RunningStep:
    """A piece of work in a thread, which its watchdog knows of until the block ends.

    Attributes:
        step: What it is.
        since: When it began, of the watchdog's clock.
    """

    def __init__(self, step: Step, since: float, all_running: "set[RunningStep]") -> None:
        self.step = step
        self.since = since
        self._all = all_running

    def __enter__(self) -> Self:
        """Tells the watchdog."""
        self._all.add(self)
        return self

    def __exit__(self, *failure: object) -> None:
        """Tells it that the work is over."""
        self._all.remove(self)


class Watchdog:
    """Knows what runs in threads. A thread that hangs cannot be ended: only a new process helps.

    Work counts as stalled after `stall_s`: the service is not ready until it ends. After `lost_s` the process
    is given up. Steps of loading a model have `LOAD_FACTOR` times as long.

    Args:
        stall_s: Seconds that a healthy step never takes.
        lost_s: Seconds after which nobody waits for it to end any more.
        clock: Seconds that never go back.
    """

    def __init__(self, stall_s: float, lost_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.stall_s = stall_s
        self.lost_s = lost_s
        self._clock = clock
        self._running: set[RunningStep] = set()  # added to, removed from and copied whole: each is atomic
        self._told: RunningStep | None = None

    def watch(self, step: Step) -> RunningStep:
        """Returns the block in which the thread does `step`, which is to be entered at once."""
        return RunningStep(step, self._clock(), self._running)

    def running_s(self, step: Step) -> float:
        """Returns for how many seconds the oldest `step` has been running; 0 if none runs."""
        return max((self._age(work) for work in list(self._running) if work.step == step), default=0.0)

    @property
    def stalled(self) -> bool:
        """Whether something has been running for longer than any healthy step."""
        return self._exceeds(self.stall_s) is not None

    @property
    def lost(self) -> bool:
        """Whether something has been running for so long that the process should be replaced."""
        return self._exceeds(self.lost_s) is not None

    @property
    def should_exit(self) -> bool:
        """Whether the process has been lost for a while, and nobody has replaced it."""
        return self._exceeds(self.lost_s, EXIT_AFTER_S) is not None

    def describe(self) -> str:
        """Says what has been running for too long, or that nothing has."""
        work = self._exceeds(self.stall_s)
        if work is None:
            return "Nothing hangs."
        limit_s = self.stall_s * _factor(work)
        return (
            f"The step '{work.step}' has been running for {self._age(work):.0f} s, longer than {limit_s:g} s."
        )

    def report(self) -> None:
        """Logs once that something hangs, and once that it has ended after all; asked again and again."""
        work = self._exceeds(self.stall_s)
        if work is not None and self._told is None:
            logger.error("Not ready: %s", self.describe())
        if work is None and self._told is not None:
            logger.warning("The step '%s' has ended after all", self._told.step)
        self._told = work

    def _exceeds(self, limit_s: float, more_s: float = 0.0) -> RunningStep | None:
        """Returns the oldest work that has been running for longer than its limit and `more_s`."""
        running = list(self._running)
        over = [work for work in running if self._age(work) > limit_s * _factor(work) + more_s]
        return min(over, key=lambda work: work.since, default=None)

    def _age(self, work: RunningStep) -> float:
        return self._clock() - work.since


def _factor(work: RunningStep) -> int:
    return LOAD_FACTOR if work.step == "load" else 1
