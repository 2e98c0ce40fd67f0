"""Detects steps of work in a thread that take too long."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

Step = Literal["decode", "infer", "encode", "load", "shadow"]
"""Work of a thread: on a photograph, a batch, a model (self-test, first batches), or a candidate's run."""
THREAD_STEPS: tuple[Step, ...] = get_args(Step)

LOAD_FACTOR = 5
"""Factor on the limits for steps of loading a model: its first batches are also compiled."""
EXIT_AFTER_S = 60.0
"""Time from `needs_restart` to the exit of the process. Meanwhile the client of `/livez` (Kubernetes) can
replace it.
"""

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class RunningStep:
    """A step in a thread, and its start on the watchdog's clock."""

    step: Step
    since: float


class Watchdog:
    """Watches the steps that run in threads. Nothing can end a thread that hangs: only a new process helps.

    A step that runs longer than `stall_s` is stalled: the service is not ready until it ends. After
    `restart_after_s` the process needs to be replaced. Steps of loading have `LOAD_FACTOR` times as long.
    """

    def __init__(
        self, stall_s: float, restart_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.stall_s = stall_s
        self.restart_after_s = restart_after_s
        self._clock = clock
        self._running: set[RunningStep] = set()  # added to, removed from and copied whole: each is atomic
        self._reported: RunningStep | None = None

    @contextmanager
    def watch(self, step: Step) -> Iterator[None]:
        """Watches `step`, which the thread runs in the block."""
        work = RunningStep(step, self._clock())
        self._running.add(work)
        try:
            yield
        finally:
            self._running.remove(work)

    def running_s(self, step: Step) -> float:
        """Returns the age of the oldest running `step` in seconds; 0 if none runs."""
        return max((self._age(work) for work in list(self._running) if work.step == step), default=0.0)

    @property
    def stalled(self) -> bool:
        """Whether a step has run longer than any healthy step."""
        return self._exceeding(self.stall_s) is not None

    @property
    def needs_restart(self) -> bool:
        """Whether a step has run so long that the process should be replaced."""
        return self._exceeding(self.restart_after_s) is not None

    @property
    def should_exit(self) -> bool:
        """Whether a step still runs `EXIT_AFTER_S` after the process should have been replaced."""
        return self._exceeding(self.restart_after_s, EXIT_AFTER_S) is not None

    def describe(self) -> str:
        """Names the step that has run too long, if any."""
        work = self._exceeding(self.stall_s)
        if work is None:
            return "Nothing hangs."
        limit_s = self.stall_s * _factor(work)
        return (
            f"The step '{work.step}' has been running for {self._age(work):.0f} s, longer than {limit_s:g} s."
        )

    def report(self) -> None:
        """Logs the start and the end of a stall, once each; call it regularly."""
        work = self._exceeding(self.stall_s)
        if work is not None and self._reported is None:
            logger.error("Not ready: %s", self.describe())
        if work is None and self._reported is not None:
            logger.warning("The stalled step '%s' has ended", self._reported.step)
        self._reported = work

    def _exceeding(self, limit_s: float, more_s: float = 0.0) -> RunningStep | None:
        """Returns the oldest step that has run longer than its limit plus `more_s`."""
        running = list(self._running)
        over = [work for work in running if self._age(work) > limit_s * _factor(work) + more_s]
        return min(over, key=lambda work: work.since, default=None)

    def _age(self, work: RunningStep) -> float:
        return self._clock() - work.since


def _factor(work: RunningStep) -> int:
    return LOAD_FACTOR if work.step == "load" else 1
