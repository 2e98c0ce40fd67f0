"""The experiment of the next version: shorter than that of its parent, and starting from its weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from training.config import ExperimentConfig, ScheduleConfig, StageConfig

STEPS_SHARE = 0.4
"""Share of the parent's steps, without a time limit."""

RATE_SHARE = 0.5
"""Share of the parent's learning rates."""

MIN_STEPS = 5


def next_experiment(
    parent: ExperimentConfig, *, name: str, runs: Path, reviewed: Path, splits: Path, weights: Path
) -> ExperimentConfig:
    """Returns the experiment of the next version, with a share of the parent's steps.

    Args:
        parent: Experiment of the parent run.
        name: Name of the new run.
        runs: Folder of all runs.
        reviewed: Folder of the reviewed images.
        splits: Split file of the new run.
        weights: Weights of the parent.
    """
    folders = (*(folder for folder in parent.data.reviewed if folder != reviewed), reviewed)
    steps = {
        stage: max(MIN_STEPS, round(STEPS_SHARE * settings.steps))
        for stage, settings in parent.stages
        if settings.steps
    }
    config = parent.local_copy(runs / name, splits)
    config = config.model_copy(
        update={
            "tracking": parent.tracking,
            "data": config.data.model_copy(update={"reviewed": folders}),
            "initial_weights": weights,
            "initial_sha256": None,
        }
    )
    validate_every = max(1, round(STEPS_SHARE * parent.validate_every))
    return with_steps(config, parent, steps, validate_every)


def with_steps(
    config: ExperimentConfig, parent: ExperimentConfig, steps: Mapping[str, int], validate_every: int
) -> ExperimentConfig:
    """Returns the experiment with these steps per stage.

    Args:
        config: The experiment.
        parent: Experiment of the parent, whose schedules are rescaled.
        steps: New steps of the parent's stages.
        validate_every: Steps between validations.
    """
    stages = {
        stage: _resized(settings, steps[stage]) if settings.steps else settings
        for stage, settings in parent.stages
    }
    changes = {"stages": parent.stages.model_copy(update=stages), "validate_every": validate_every}
    return config.model_copy(update=changes)


def _resized(stage: StageConfig, steps: int) -> StageConfig:
    """A stage with other steps, a lower learning rate and a rescaled schedule."""
    schedule = _rescaled(stage.schedule, steps / stage.steps)
    rate = RATE_SHARE * stage.learning_rate
    return stage.model_copy(update={"steps": steps, "learning_rate": rate, "schedule": schedule})


def _rescaled(schedule: ScheduleConfig, share: float) -> ScheduleConfig:
    changes = {
        "decay_steps": max(1, round(share * schedule.decay_steps)),
        "warmup_steps": round(share * schedule.warmup_steps),
        "boundaries": _ascending([round(share * step) for step in schedule.boundaries]),
    }
    return schedule.model_copy(update=changes)


def _ascending(steps: Sequence[int]) -> tuple[int, ...]:
    """Strictly increasing steps."""
    ascending: list[int] = []
    for step in steps:
        ascending.append(max(step, ascending[-1] + 1 if ascending else 1))
    return tuple(ascending)
