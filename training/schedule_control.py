"""The length of a stage, and the position of each step in its learning rate schedule."""


class ScheduleControl:
    """The schedule of the experiment: each stage takes its configured steps."""

    @property
    def schedule_offset(self) -> int:
        """Steps by which the schedule is ahead of the completed steps; negative if it is behind."""
        return 0

    @property
    def expected_steps(self) -> int:
        """Steps that the stage is expected to take."""
        return self._steps

    def begin_stage(self, stage: str, steps: int) -> None:  # noqa: ARG002 - for subclasses
        """Starts or resumes a stage of `steps` configured steps."""
        self._steps = steps

    def max_steps(self, steps: int) -> int:
        """Returns an upper limit for the steps of a stage of `steps` configured steps."""
        return steps

    def is_last(self, step: int) -> bool:
        """Returns whether the stage ends with this step, counted from 1."""
        return step >= self._steps

    def step_done(self, step: int) -> None:
        """Is called after each step, including its validation and checkpoint."""
