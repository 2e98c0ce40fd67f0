"""How far a run goes in each stage, and at which place of its schedules a step stands."""


class ScheduleControl:
    """That of the experiment: each stage takes its steps, and each step stands where its number says."""

    @property
    def schedule_offset(self) -> int:
        """Steps by which the schedules are ahead of what was taken of the stage; negative: behind."""
        return 0

    @property
    def expected_steps(self) -> int:
        """How many steps the stage will have taken at its end, as things stand."""
        return self._steps

    def begin_stage(self, stage: str, steps: int) -> None:  # noqa: ARG002 - others time it
        """Takes note that a stage of so many steps begins, or goes on."""
        self._steps = steps

    def max_steps(self, steps: int) -> int:
        """Returns how many steps a stage planned with `steps` may take at most."""
        return steps

    def is_last(self, step: int) -> bool:
        """Returns whether the stage ends with this step, counted from 1."""
        return step >= self._steps

    def step_done(self, step: int) -> None:
        """Takes note that a step has come to its end, with whatever followed it."""
