"""The experiment of the next version: shorter than that of its parent, and starting from its weights."""

from collections.abc import Mapping
from pathlib import Path

from training.config import ExperimentConfig, StageConfig

STEPS_SHARE = 0.4
"""Share of the parent's steps, without a time limit."""

RATE_SHARE = 0.5
"""Share of the parent's learning rates."""

MIN_STEPS = 5


def next_experiment(
    parent: ExperimentConfig, run: Path, *, reviewed: Path, splits: Path, weights: Path
) -> ExperimentConfig:
    """Returns the experiment of the next version in the folder `run`, with a share of the parent's steps."""
    folders = (*(folder for folder in parent.data.reviewed if folder != reviewed), reviewed)
    steps = {
        stage: max(MIN_STEPS, round(STEPS_SHARE * number)) for stage, number in parent.stages.steps.items()
    }
    config = parent.local_copy(run, splits)
    config = config.model_copy(
        update={
            "tracking": parent.tracking,
            "threshold": parent.threshold.model_copy(update={"score": None}),  # it fits the parent's scores
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
    """Returns the experiment with these steps per stage, and the rescaled schedules of the parent."""
    stages = {
        stage: _resized(settings, steps[stage]) if settings.steps else settings
        for stage, settings in parent.stages
    }
    changes = {"stages": parent.stages.model_copy(update=stages), "validate_every": validate_every}
    return config.model_copy(update=changes)


def _resized(stage: StageConfig, steps: int) -> StageConfig:
    """A stage with other steps, a lower learning rate and a rescaled schedule."""
    share, schedule, boundaries = steps / stage.steps, stage.schedule, [0]
    for boundary in schedule.boundaries:  # strictly increasing
        boundaries.append(max(round(share * boundary), boundaries[-1] + 1))
    changes = {
        "decay_steps": max(1, round(share * schedule.decay_steps)),
        "warmup_steps": round(share * schedule.warmup_steps),
        "boundaries": tuple(boundaries[1:]),
    }
    rate, schedule = RATE_SHARE * stage.learning_rate, schedule.model_copy(update=changes)
    return stage.model_copy(update={"steps": steps, "learning_rate": rate, "schedule": schedule})
