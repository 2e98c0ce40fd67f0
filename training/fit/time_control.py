"""A training within a time limit: the learning rate follows the elapsed share of the time."""

import math
from collections.abc import Callable, Mapping

from training.export import MAX_COMPARED
from training.metrics.rating import ENOUGH_STEPS
from training.schedule_control import ScheduleControl, ScheduleState

Clock = Callable[[], float]

MAX_STEPS = 2000
"""Maximum number of steps of all stages: more do not improve the model."""

MIN_STEPS = 2 * ENOUGH_STEPS
"""Number of steps that must fit into the time; twice as many as needed, since the estimate is rough."""

MIN_CACHED_STEPS = 30
"""Steps on cached features that each stage takes even if the time is over: they take a few seconds."""

STEP_COST, CACHED_STEP_COST = 3.0, 0.5
"""Duration of a training step and of one on cached features, in forward passes per photograph of its batch.

Measured on two CPU cores: `compact` 1.4 to 6, `mobilenet` with a frozen encoder 0.1 to 0.5.
"""

MAX_VALIDATIONS = 20
VALIDATION_SHARE = 0.1
"""Share of the time for validations, without the one at the end of each stage."""

DRAWING_COST = 16
"""Duration of drawing the pictures of a validation, in forward passes."""

RESERVED_S = 15.0
"""Duration of evaluation and export without their photographs, s."""

BUILDING_S = 5.0
"""Duration of building a memory of good surface from cached features, s."""

MEMORY_TIME_TOLERANCE = 0.25
"""`tolerance` of `largest_area_in_time` for a memory: these estimates are high, and even slight scaling
removes fine texture."""

EVALUATION_COST = 2.0
"""Duration of evaluating a photograph, in forward passes: it is read, measured and drawn as well."""

CACHED_EVALUATION_COST = 1.0
"""Duration of validating and evaluating a photograph on cached features, and of scoring it to combine heads
and memory, in forward passes."""


class TimeControl(ScheduleControl):
    """Ends a training on time, and advances the schedules so that they then are at their end.

    The position in the schedule of a stage is the number of completed steps, or the elapsed share of its time
    if that is ahead. A machine that is fast enough takes all steps, each at its own position. `taken` are the
    completed steps of each stage.

    Args:
        steps: Planned steps of each stage, in order.
        ends_at: Time of `clock` at which the training must end.
        clock: Monotonic time, s.
        min_steps: Steps of each stage that are taken even if the time is over.
        agree: Returns the number of the chief in all processes of a cluster: they then follow its clock and
            its `ends_at`. None for a single process.
    """

    saves_time = True

    def __init__(
        self,
        steps: Mapping[str, int],
        ends_at: float,
        clock: Clock,
        min_steps: int = 1,
        agree: Callable[[float], float] | None = None,
    ) -> None:
        self._agreed_clock = clock
        if agree is not None:
            clock, ends_at = _clock_of_chief(clock, agree), agree(ends_at)
            self._agreed_clock = lambda: agree(clock())
        self._planned, self._ends_at, self._clock = dict(steps), ends_at, clock
        self._min_steps = min_steps
        self._timed_steps, self._timed_s = 0, 0.0
        self._encode_until = (clock() + ends_at) / 2
        self._resumed: ScheduleState | None = None
        self._is_first_step = True
        self.taken: dict[str, int] = {}

    @property
    def schedule_offset(self) -> int:
        """Steps by which the schedule is ahead of the completed steps."""
        return int(self._position) - self.taken[self._stage]

    @property
    def expected_steps(self) -> int:
        """Steps that the stage takes if it continues at this speed."""
        taken = self.taken[self._stage]
        return min(max(round(taken * self._steps / self._position), taken + 1), self._steps)

    @property
    def step_s(self) -> float | None:
        """Mean duration of a step, s, without the first one of a stage; None without a second step."""
        return self._timed_s / self._timed_steps if self._timed_steps else None

    @property
    def may_encode(self) -> bool:
        """Whether there is time to encode further examples: until half of the time has passed."""
        return self._clock() < self._encode_until

    def begin_stage(self, stage: str, steps: int) -> None:
        """Starts a stage; its share of the remaining time is its share of the remaining steps."""
        super().begin_stage(stage, steps)
        names = list(self._planned)
        left = sum(self._planned[name] for name in names[names.index(stage) :])
        resumed = self._resumed if self._resumed is not None and self._resumed.stage == stage else None
        self._start = self._position = min(resumed.position, steps) if resumed else 0.0
        self._stage, self.taken[stage] = stage, resumed.taken.get(stage, 0) if resumed else 0
        self._is_first_step = True
        self._began = self._now = self._done_at = self._agreed_clock()
        own = steps - self._start
        self._stage_s = own / max(left - self._start, 1) * (self._ends_at - self._began)

    def is_last(self, step: int) -> bool:
        """Returns whether the schedule ends with this step."""
        return self._position_after(step) >= self._steps

    def step_done(self, step: int) -> None:
        """Advances the schedule."""
        if not self._is_first_step:  # which compiles
            self._timed_steps += 1
            self._timed_s += self._now - self._done_at  # without validation and checkpoint
        self._is_first_step = False
        self.taken[self._stage], self._position = step, self._position_after(step)
        self._done_at = self._now

    def state_after(self, stage: str, step: int) -> ScheduleState:
        """Returns the position in the schedules, the completed steps and the time left."""
        position, taken = 0.0, self.taken
        if stage and step:
            position, taken = self._position_at(step), {**taken, stage: step}
        return ScheduleState(
            stage=stage, position=position, taken=taken, left_s=self._ends_at - self._clock()
        )

    def resume(self, state: ScheduleState) -> None:
        """Continues from the state of a checkpoint, with the time that was left then or the own time limit,
        whichever ends first.
        """
        now = self._agreed_clock()
        self._resumed, self.taken = state, dict(state.taken)
        self._ends_at = min(self._ends_at, now + state.left_s)
        self._encode_until = (now + self._ends_at) / 2

    def _position_after(self, step: int) -> float:
        self._now = self._agreed_clock()
        return self._position_at(step)

    def _position_at(self, step: int) -> float:
        elapsed_s = self._now - self._began
        share = elapsed_s / self._stage_s if elapsed_s < self._stage_s else 1.0
        share = min(share, step / min(self._min_steps, self._steps))
        return max(float(step), self._start + share * (self._steps - self._start))


def _clock_of_chief(clock: Clock, agree: Callable[[float], float]) -> Clock:
    """The clock of this process, set to that of the chief."""
    now = clock()
    offset_s = agree(now) - now
    return lambda: clock() + offset_s


def needed_s(forward_s: float, batch_size: int, encoded: int | None) -> float:
    """Returns the estimated duration of a training with `MIN_STEPS` steps, s.

    `forward_s` is that of a forward pass of one photograph, s. The features of `encoded` photographs are
    computed once; None without cached features.
    """
    cost = STEP_COST if encoded is None else CACHED_STEP_COST
    return forward_s * ((encoded or 0) + MIN_STEPS * batch_size * cost)


def largest_area_in_time(
    area: int, left_s: float, fixed_s: float, scaled_s: float, *, tolerance: float = 0.0
) -> int:
    """Returns the area of the input for which the time is sufficient, px.

    Work of `fixed_s` does not depend on the area, work of `scaled_s` at `area` is proportional to it. A share
    `tolerance` of `scaled_s` may be missing before the area becomes smaller.
    """
    share = (left_s - fixed_s) / scaled_s
    return area if 1 - tolerance <= share < 1 else int(area * share)


def reserved_s(
    forward_s: float, validated: int, evaluated: int, *, in_folds: int = 0, rotated: int = 0
) -> float:
    """Returns the estimated duration of everything after the last step, s.

    Args:
        forward_s: Duration of a forward pass of one photograph, s.
        validated: Photographs of the validation, at the end of the last stage and to choose thresholds.
        evaluated: Photographs of the evaluation.
        in_folds: Photographs that are validated and evaluated on cached features, with a memory.
        rotated: Rotated copies that the memory remembers.
    """
    compared = min(validated + in_folds, MAX_COMPARED)
    passes = 2 * validated + 3 * compared + EVALUATION_COST * evaluated + CACHED_EVALUATION_COST * in_folds
    passes += rotated
    return RESERVED_S + (BUILDING_S if in_folds else 0.0) + forward_s * passes


def minutes_for_steps(steps: int, step_s: float, fixed_s: float) -> float:
    """Returns a time limit, in minutes, for so many steps of `step_s` besides `fixed_s` of other work.

    It is a multiple of half a minute.
    """
    return math.ceil((fixed_s + steps * step_s) / 30) / 2


def validation_interval(forward_s: float, validated: int, left_s: float) -> int:
    """Returns the steps between validations, so that they take at most `VALIDATION_SHARE` of the time."""
    affordable = int(VALIDATION_SHARE * left_s / (forward_s * (validated + DRAWING_COST)))
    return math.ceil(MAX_STEPS / min(max(affordable, 1), MAX_VALIDATIONS))


def planned_steps(shares: Mapping[str, float]) -> dict[str, int]:
    """Returns the maximum number of steps of each stage from its share."""
    return {stage: max(1, round(share * MAX_STEPS)) for stage, share in shares.items()}
