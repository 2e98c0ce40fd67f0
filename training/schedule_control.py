"""Number of steps of each stage, and the position of a step in the stage's schedules."""

from pydantic import BaseModel, ConfigDict


class ScheduleState(BaseModel):
    """The progress of a run with a time limit at one of its checkpoints.

    Attributes:
        stage: Name of the stage; empty after the last one.
        position: Position in the schedules of this stage, in steps.
        taken: Completed steps of each stage that has begun.
        left_s: Time left to train, s.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    stage: str
    position: float
    taken: dict[str, int]
    left_s: float


class ScheduleControl:
    """The default control: it takes the planned steps, each at its own position in the schedules.

    With `saves_time`, what changes no weights and thresholds is omitted.
    """

    saves_time = False

    @property
    def schedule_offset(self) -> int:
        """Position in the schedules minus the number of steps taken in the stage."""
        return 0

    @property
    def expected_steps(self) -> int:
        """Expected number of steps of the current stage."""
        return self._steps

    @property
    def may_encode(self) -> bool:
        """Whether there is time to encode further examples before the stage."""
        return False

    def begin_stage(self, stage: str, steps: int) -> None:  # noqa: ARG002 - for subclasses
        """Starts or resumes a stage with this number of steps."""
        self._steps = steps

    def max_steps(self, steps: int) -> int:
        """Returns the maximum number of steps of a stage planned with `steps`."""
        return steps

    def is_last(self, step: int) -> bool:
        """Returns whether this step, counted from 1, is the last of the stage."""
        return step >= self._steps

    def step_done(self, step: int) -> None:
        """Records the end of a step, including validation and checkpoint."""

    def state_after(self, stage: str, step: int) -> ScheduleState | None:  # noqa: ARG002 - for subclasses
        """Returns what a checkpoint after `step` steps of `stage` stores, so that `resume` continues there;
        None if the number of steps tells everything.
        """
        return None

    def resume(self, state: ScheduleState) -> None:
        """Continues from the state of a checkpoint."""
