"""The experiment of the next version: that of its parent, begun with its weights, and shorter."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from training.config import ExperimentConfig, ScheduleConfig, StageConfig

STEPS_SHARE = 0.4
"""Of the steps of the parent's stages, where nobody says how long it may take."""

RATE_SHARE = 0.5
"""Of the learning rate that they began with: what was learnt is to be kept."""

MIN_STEPS = 5


def next_experiment(
    parent: ExperimentConfig, *, name: str, runs: Path, reviewed: Path, splits: Path, weights: Path
) -> ExperimentConfig:
    """Makes the experiment, with a share of the parent's steps.

    Args:
        parent: That of the run it goes on from.
        name: Of the new run.
        runs: Folder that holds all runs.
        reviewed: The photographs that are added.
        splits: What trains, validates and tests.
        weights: Those of the parent.
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
    """Returns the experiment with stages of these steps.

    Args:
        config: The experiment.
        parent: The one whose stages are made as long.
        steps: Of each stage that the parent has.
        validate_every: Steps from validation to validation.
    """
    stages = {
        stage: _resized(settings, steps[stage]) if settings.steps else settings
        for stage, settings in parent.stages
    }
    changes = {"stages": parent.stages.model_copy(update=stages), "validate_every": validate_every}
    return config.model_copy(update=changes)


def _resized(stage: StageConfig, steps: int) -> StageConfig:
    """A stage of other steps and a lower learning rate, with the same schedule."""
    schedule = _stretched(stage.schedule, steps / stage.steps)
    rate = RATE_SHARE * stage.learning_rate
    return stage.model_copy(update={"steps": steps, "learning_rate": rate, "schedule": schedule})


def _stretched(schedule: ScheduleConfig, share: float) -> ScheduleConfig:
    changes = {
        "decay_steps": max(1, round(share * schedule.decay_steps)),
        "warmup_steps": round(share * schedule.warmup_steps),
        "boundaries": _ascending([round(share * step) for step in schedule.boundaries]),
    }
    return schedule.model_copy(update=changes)


def _ascending(steps: Sequence[int]) -> tuple[int, ...]:
    """No two pieces end with the same step."""
    ascending: list[int] = []
    for step in steps:
        ascending.append(max(step, ascending[-1] + 1 if ascending else 1))
    return tuple(ascending)
