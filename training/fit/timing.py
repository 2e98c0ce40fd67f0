"""Measurement of step times: a few steps on a few images, in a temporary folder."""

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import TypeVar

import numpy as np

from datasets.sample import Dataset, Record, Split, is_unlocalized
from datasets.splitting import write_splits
from training.config import ExperimentConfig
from training.data.synthetic_validation import MAX_IMAGES
from training.distribution.interruption import RunInterruptedError
from training.fit.deadline_control import Clock
from training.fit.experiment_choice import ExperimentChoice
from training.fit.training_plan import StepTimes
from training.schedule_control import ScheduleControl
from training.stages import STAGES
from training.trainer import Trainer

Result = TypeVar("Result")

STEPS, VALIDATE_EVERY = 10, 9
"""The first step and the first validation, after step 9, compile graphs."""

STEADY = slice(5, 8)
"""Measured steps: the first ones use batches that were prepared while the graph was compiled."""

IMAGES_PER_KIND = {"train": 6, "val": 3}
"""Good images per split, and the same number of defective ones."""


class _MeasuredError(Exception):
    """Ends the run after the measured steps."""


class StepTimer(ScheduleControl):
    """Records the times of the steps of a stage, and ends the run after the last one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.times: list[float] = []

    def begin_stage(self, stage: str, steps: int) -> None:
        """Records the start time."""
        super().begin_stage(stage, steps)
        self.times.append(self._clock())

    def step_done(self, step: int) -> None:
        """Records the time of a step; raises `_MeasuredError` after the last one."""
        self.times.append(self._clock())
        if step == self._steps:
            raise _MeasuredError


def measure_times(choice: ExperimentChoice, dataset: Dataset, runs: Path, clock: Clock) -> StepTimes:
    """Measures a few steps of the first stage.

    Raises:
        SegdecError: If the training cannot start.
        RunInterruptedError: On SIGTERM or SIGINT.
    """
    stage = next(name for name in (one.name for one in STAGES) if name in choice.shares)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        config = _small_experiment(choice, stage, dataset, Path(folder), runs)
        timer = StepTimer(clock)
        trainer, start_s = _timed(clock, lambda: Trainer(config, dry_run=True, control=timer))
        feature_s = time_features(trainer, {stage: STEPS}, clock)
        with contextlib.suppress(_MeasuredError):
            trainer.run()
        if trainer.interruption.received:  # during the last step
            raise RunInterruptedError(trainer.interruption.received, "while step times were measured")
        _, predicting = _timed(clock, trainer.validator.measure)
    first, *_ = times = np.diff(timer.times).tolist()
    step_s = mean(times[STEADY])
    first_s, later_s = (max(times[place] - step_s, 0.0) for place in (VALIDATE_EVERY - 1, STEPS - 1))
    return StepTimes(
        start_s=start_s,
        compile_s=max(first - step_s, 0.0),
        step_s=step_s,
        stage=stage,
        predict_s=predicting / count_validated(_few(dataset, "val")),
        draw_s=max(later_s - predicting, 0.0),
        first_s=max(first_s - later_s, 0.0),
        feature_s=feature_s,
    )


def count_validated(records: Iterable[Record]) -> int:
    """Returns the number of validated images, including synthetic copies if no image is defective."""
    labels = [record.label for record in records]
    return len(labels) if any(labels) else len(labels) + min(len(labels), MAX_IMAGES)


def _few(dataset: Dataset, split: Split) -> Iterator[Record]:
    for defective in (False, True):
        of_kind = [record for record in dataset.of_split(split) if (record.label > 0) == defective]
        # The stage `segment` needs masks or boxes.
        yield from sorted(of_kind, key=is_unlocalized)[: IMAGES_PER_KIND[split]]


def _small_experiment(
    choice: ExperimentChoice, stage: str, dataset: Dataset, folder: Path, runs: Path
) -> ExperimentConfig:
    splits = folder / "splits.txt"
    write_splits(splits, [*_few(dataset, "train"), *_few(dataset, "val")])
    data = {**choice.settings["data"], "splits": splits, "checked_folder": runs / ".checked"}
    return choice.config(
        {stage: STEPS},
        name="speed",
        runs=folder,
        data=data,
        validate_every=VALIDATE_EVERY,
        log_every=VALIDATE_EVERY,
    )


def time_features(trainer: Trainer, steps: Mapping[str, int], clock: Clock) -> float:
    """Fills the feature cache for these steps of each stage; returns the duration for one image, s.

    The steps that are measured next are then as fast as later ones. Returns 0 if there is no feature cache.
    """
    features = trainer.features
    if features is None:
        return 0.0
    black = np.zeros(trainer.image_shape, np.float32)
    _, (_, feature_s) = [
        _timed(clock, lambda: features.compute({"image": black})) for _ in ("compiles", "runs")
    ]
    for index, stage in enumerate(STAGES):
        for _ in trainer.pipeline.batches(index, 0, steps.get(stage.name, 0)):
            pass
    return feature_s


def _timed(clock: Clock, action: Callable[[], Result]) -> tuple[Result, float]:
    began = clock()
    return action(), clock() - began
