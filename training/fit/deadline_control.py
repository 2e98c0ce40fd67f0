"""A pace that keeps a run within its time.

The steps are planned by measured speed, and stay as planned while the run is on time: the same experiment
then gives the same model again. Where the machine turns out slower or faster, which no measurement tells
beforehand, the schedule of the learning rate is gone through faster or slower: it still ends at 0, and the
stage with it. To cut the last steps off instead would leave a network that has not come to rest.
"""

import math
from collections.abc import Callable

from training.fit.training_plan import TrainingPlan
from training.schedule_control import ScheduleControl

Clock = Callable[[], float]

TOLERANCE = 0.04
"""Share of the training's time by which it may end early or late before the schedule is moved."""

REVIEWS = 50
"""As many times a training looks at the clock, about."""

CHANGE = 1.25
"""Factor by which one look at the clock may change what is thought of the machine's speed."""

FASTEST = 8
"""A stage takes so many times its planned steps at most."""


class DeadlineControl(ScheduleControl):
    """Moves through the schedules so that training ends when its time does.

    Args:
        plan: The stages.
        ends_at: When the result of the training has to be there, by `clock`.
        clock: Seconds that pass.

    Attributes:
        taken: Steps of each stage so far.
        moved: Whether the plan was left.
    """

    def __init__(self, plan: TrainingPlan, ends_at: float, clock: Clock) -> None:
        self._plan, self._ends_at, self._clock = plan, ends_at, clock
        self.taken: dict[str, int] = {}
        self.moved = False
        self._rate = 1.0  # places of the schedule that a step goes on
        self._slowness = 1.0  # measured time / planned time
        self._seen_at = clock()
        self._owed = plan.times.start_s  # planned time since then
        self._stage, self._steps, self._place = "", 0, 0.0
        self._validated = False

    @property
    def schedule_offset(self) -> int:
        """Steps by which the schedule is ahead of those taken."""
        return round(self._place) - self.taken.get(self._stage, 0)

    @property
    def expected_steps(self) -> int:
        """Steps of the stage at its end, at the present rate."""
        left = (self._steps - self._place) / self._rate
        steps = self.taken[self._stage] + max(1, math.floor(left + 0.5))
        return min(steps, self.max_steps(self._steps))

    def begin_stage(self, stage: str, steps: int) -> None:
        """Starts the schedule of a stage."""
        self._stage, self._steps, self._place = stage, steps, 0.0
        self.taken[stage] = 0
        self._owed += self._plan.times.compile_s

    def max_steps(self, steps: int) -> int:
        """Returns how many steps a stage planned with `steps` may take at most."""
        return FASTEST * steps

    def is_last(self, step: int) -> bool:
        """Returns whether the schedule is through with this step."""
        return self._place + 1.5 * self._rate > self._steps or step >= self.max_steps(self._steps)

    def step_done(self, step: int) -> None:
        """Goes on in the schedule, and looks at the clock from time to time."""
        plan, images = self._plan, self._images
        validated = step % plan.validate_every == 0 or self.is_last(step)
        self.taken[self._stage] = step
        self._place += self._rate
        seen = plan.sizes.features(self._images) - plan.sizes.features(images)
        self._owed += plan.times.stage_step_s(self._stage) + plan.times.feature_s * seen
        if validated:
            self._owed += plan.validation_s + (0.0 if self._validated else plan.times.first_s)
            self._validated = True
        now = self._clock()
        if now - self._seen_at >= plan.training_s / REVIEWS:
            self._review(now)

    @property
    def _images(self) -> int:
        return sum(self.taken.values()) * self._plan.sizes.batch

    def _review(self, now: float) -> None:
        measured = (now - self._seen_at) / self._owed if self._owed else self._slowness
        # One slow moment is not yet a slow machine: it must not cost a stage.
        self._slowness *= min(max(measured / self._slowness, 1 / CHANGE), CHANGE)
        self._seen_at, self._owed = now, 0.0
        left = self._ends_at - now
        tolerance = TOLERANCE * self._plan.training_s
        if abs(self._slowness * self._needed(self._rate) - left) <= tolerance:
            return
        slow, fast = 1 / FASTEST, 1e6
        for _ in range(60):
            rate = (slow * fast) ** 0.5
            slow, fast = (rate, fast) if self._slowness * self._needed(rate) > left else (slow, rate)
        self._rate, self.moved = fast, True

    def _needed(self, rate: float) -> float:
        """Planned time to the end at this rate, s."""
        plan, images = self._plan, self._images
        names = list(plan.steps)
        later = names[names.index(self._stage) + 1 :]
        places = {
            self._stage: max(self._steps - self._place, 0.0),
            **{name: plan.steps[name] for name in later},
        }
        steps = {name: left / rate for name, left in places.items()}
        seen = images + sum(steps.values()) * plan.sizes.batch
        features = plan.sizes.features(seen) - plan.sizes.features(images)
        return (
            sum(number * plan.step_s(name) for name, number in steps.items())
            + plan.times.feature_s * features
            + len(later) * (plan.times.compile_s + plan.validation_s)
            + (0.0 if self._validated else plan.times.first_s)
            + 2 * plan.validation_s  # the one that ends this stage, and the one that the limits are chosen on
        )
