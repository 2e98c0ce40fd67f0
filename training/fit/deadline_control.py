"""A schedule control that ends a training on time.

Steps are planned from measured times. While the run is on time it keeps the plan: equal experiments then give
equal models. If the machine becomes slower or faster, the learning rate schedules advance faster or slower,
and still end at 0.
"""

import math
from collections.abc import Callable

from training.fit.training_plan import TrainingPlan
from training.schedule_control import ScheduleControl

Clock = Callable[[], float]

TOLERANCE = 0.04
"""Tolerated deviation from the planned end, as a share of the training time."""

CLOCK_CHECKS = 50
"""Approximate number of clock checks per training."""

MAX_CHANGE = 1.25
"""Maximum factor by which one clock check changes the estimated speed."""

MAX_FACTOR = 8
"""Maximum ratio of taken to planned steps of a stage."""


class DeadlineControl(ScheduleControl):
    """Adapts the schedules so that the training ends at a given time.

    Args:
        plan: Planned steps and durations.
        ends_at: Time of `clock` at which the training must end.
        clock: Monotonic time, s.

    Attributes:
        taken: Completed steps of each stage.
        moved: Whether the steps deviate from the plan.
    """

    def __init__(self, plan: TrainingPlan, ends_at: float, clock: Clock) -> None:
        self._plan, self._ends_at, self._clock = plan, ends_at, clock
        self.taken: dict[str, int] = {}
        self.moved = False
        self._rate = 1.0  # schedule positions per step
        self._slowdown = 1.0  # measured time / planned time
        self._checked_at = clock()
        self._planned_s = plan.times.start_s  # planned time since the last check
        self._stage, self._steps, self._position = "", 0, 0.0
        self._validated = False

    @property
    def schedule_offset(self) -> int:
        """Steps by which the schedule is ahead of the completed steps."""
        return round(self._position) - self.taken.get(self._stage, 0)

    @property
    def expected_steps(self) -> int:
        """Steps that the stage is expected to take at the current rate."""
        left = (self._steps - self._position) / self._rate
        steps = self.taken[self._stage] + max(1, math.floor(left + 0.5))
        return min(steps, self.max_steps(self._steps))

    def begin_stage(self, stage: str, steps: int) -> None:
        """Starts the schedule of a stage."""
        self._stage, self._steps, self._position = stage, steps, 0.0
        self.taken[stage] = 0
        self._planned_s += self._plan.times.compile_s

    def max_steps(self, steps: int) -> int:
        """Returns the maximum number of steps of a stage of `steps` planned steps."""
        return MAX_FACTOR * steps

    def is_last(self, step: int) -> bool:
        """Returns whether the schedule ends with this step."""
        return self._position + 1.5 * self._rate > self._steps or step >= self.max_steps(self._steps)

    def step_done(self, step: int) -> None:
        """Advances the schedule, and checks the clock from time to time."""
        plan, images = self._plan, self._images
        validated = step % plan.validate_every == 0 or self.is_last(step)
        self.taken[self._stage] = step
        self._position += self._rate
        seen = plan.sizes.features(self._images) - plan.sizes.features(images)
        self._planned_s += plan.times.stage_step_s(self._stage) + plan.times.feature_s * seen
        if validated:
            self._planned_s += plan.validation_s + (0.0 if self._validated else plan.times.first_s)
            self._validated = True
        now = self._clock()
        if now - self._checked_at >= plan.training_s / CLOCK_CHECKS:
            self._adapt(now)

    @property
    def _images(self) -> int:
        return sum(self.taken.values()) * self._plan.sizes.batch

    def _adapt(self, now: float) -> None:
        measured = (now - self._checked_at) / self._planned_s if self._planned_s else self._slowdown
        # One slow moment must not shorten a stage.
        self._slowdown *= min(max(measured / self._slowdown, 1 / MAX_CHANGE), MAX_CHANGE)
        self._checked_at, self._planned_s = now, 0.0
        left = self._ends_at - now
        tolerance = TOLERANCE * self._plan.training_s
        if abs(self._slowdown * self._remaining_s(self._rate) - left) <= tolerance:
            return
        slow, fast = 1 / MAX_FACTOR, 1e6
        for _ in range(60):
            rate = (slow * fast) ** 0.5
            slow, fast = (rate, fast) if self._slowdown * self._remaining_s(rate) > left else (slow, rate)
        self._rate, self.moved = fast, True

    def _remaining_s(self, rate: float) -> float:
        """Planned time to the end of the training at this rate, s."""
        plan, images = self._plan, self._images
        names = list(plan.steps)
        later = names[names.index(self._stage) + 1 :]
        positions = {
            self._stage: max(self._steps - self._position, 0.0),
            **{name: plan.steps[name] for name in later},
        }
        steps = {name: left / rate for name, left in positions.items()}
        seen = images + sum(steps.values()) * plan.sizes.batch
        features = plan.sizes.features(seen) - plan.sizes.features(images)
        return (
            sum(number * plan.step_s(name) for name, number in steps.items())
            + plan.times.feature_s * features
            + len(later) * (plan.times.compile_s + plan.validation_s)
            + (0.0 if self._validated else plan.times.first_s)
            + 2 * plan.validation_s  # at the end of this stage, and for the thresholds
        )
