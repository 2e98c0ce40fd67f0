"""The command `check`: a dry run of an experiment, and an estimate of its duration and memory."""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from training.config import CLUSTERED, ExperimentConfig, StagesConfig
from training.evaluate import evaluate_run
from training.export import export_run
from training.formatting import format_duration
from training.run.records import IGNORED_FILE
from training.run.run_log import check_tracking, read_log
from training.stages import STAGES
from training.trainer import Trainer

STEPS = 2
"""Steps of each stage: the first one compiles, the second one is measured."""

SUCCESS = "Two steps of each stage, validation, checkpoint, evaluation and export succeeded."


@dataclass(frozen=True)
class StageEstimate:
    """Estimate for one stage; `flop_utilisation` is a fraction of the machine's peak FLOP/s."""

    name: str
    steps: int
    s_per_step: float
    images_per_s: float
    flop_utilisation: float
    validations: int
    checkpoints: int


@dataclass(frozen=True)
class RunEstimate:
    """Estimate for a run, from two steps of each stage.

    Durations are those of one validation, one checkpoint and the features of one image (`feature_s`);
    memory is the peak of the process, and of each GPU by its name.
    """

    stages: tuple[StageEstimate, ...]
    validation_s: float
    checkpoint_s: float
    checkpoint_bytes: int
    memory_bytes: int
    device_bytes: dict[str, int]
    feature_images: int = 0
    feature_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Duration of the run after the first reading of the images, s."""
        steps = sum(stage.steps * stage.s_per_step for stage in self.stages)
        return steps + sum(count * seconds for _, count, seconds in self._others)

    @property
    def _others(self) -> list[tuple[str, int, float]]:
        """Other operations: name, number, and duration of one, s."""
        features = [("features", self.feature_images, self.feature_s)] if self.feature_images else []
        return [
            *features,
            ("validation", sum(stage.validations for stage in self.stages), self.validation_s),
            ("checkpoint", sum(stage.checkpoints for stage in self.stages), self.checkpoint_s),
        ]

    def __str__(self) -> str:
        """Returns a table for the terminal."""
        lines = [f"{'stage':<12}{'steps':>8}{'s/step':>10}{'images/s':>10}{'of peak':>10}{'time':>14}"]
        for stage in self.stages:
            duration = format_duration(stage.steps * stage.s_per_step)
            speed = f"{stage.s_per_step:>10.3f}{stage.images_per_s:>10.1f}{stage.flop_utilisation:>10.1%}"
            lines.append(f"{stage.name:<12}{stage.steps:>8}{speed}{duration:>14}")
        for name, count, seconds in self._others:
            lines.append(
                f"{name:<12}{count:>8}{seconds:>10.3f}{'':>20}{format_duration(count * seconds):>14}"
            )
        memory = {"memory": self.memory_bytes, **self.device_bytes, "checkpoint": self.checkpoint_bytes}
        sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in memory.items())
        return "\n".join([*lines, sizes, f"In all about {format_duration(self.total_s)}.", SUCCESS])


def dry_run(config: ExperimentConfig) -> RunEstimate:
    """Takes two steps of each stage, validates, checkpoints, evaluates and exports, in a temporary folder.

    With folds, only a few photographs are used. The file checks are stored in `checked_folder` for the run.
    Raises a `SegdecError` if anything fails; the run would fail in the same way.
    """
    check_tracking(config.tracking)
    with tempfile.TemporaryDirectory() as folder:
        trial = trial_experiment(config, Path(folder))
        trainer = Trainer(trial, dry_run=True, few_photographs=True)
        with suppress(FileNotFoundError):  # the run folder, which lists them, is temporary
            ignored = (trainer.folder.path / IGNORED_FILE).read_text(encoding="utf-8")
            print(ignored, end="", file=sys.stderr)
        steps = {stage: settings.steps for stage, settings in trainer.config.stages}
        feature_s = _time_features(trainer, steps)
        images = 0 if trainer.features is None else round(trainer.features.images / trainer.used_share)
        if not config.network.memory:  # otherwise all of them are encoded
            seen = sum(settings.steps for _, settings in config.stages) * trainer.config.batch_size
            images = min(images, seen)
        path = trainer.run().path
        evaluate_run(path, config.validation_split)
        export_run(path, Path(folder) / "model")
        measured = {record["stage"]: record for record in read_log(path) if record["kind"] == "train"}
        checkpoint = max((path / "checkpoints").iterdir())
        gpus = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU")]
        return RunEstimate(
            stages=tuple(_estimate_stage(config, name, record) for name, record in measured.items()),
            validation_s=_time(trainer.validator.measure) / trainer.used_share,
            checkpoint_s=_time(lambda: trainer.state.save(0)),
            checkpoint_bytes=sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file()),
            memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            device_bytes={name: tf.config.experimental.get_memory_info(name)["peak"] for name in gpus},
            feature_images=images,
            feature_s=feature_s,
        )


def trial_experiment(config: ExperimentConfig, folder: Path, steps: int = STEPS) -> ExperimentConfig:
    """Returns the experiment with at most so many steps per stage, in another folder and without tracking."""
    stages = {
        name: settings.model_copy(update={"steps": min(settings.steps, steps)})
        for name, settings in config.stages
    }
    changes = {
        "runs": folder,
        "data": config.data.model_copy(update={"checked_folder": config.checked_folder}),
        "stages": StagesConfig(**stages),
        "validate_every": steps,
        "log_every": 1,
        "tracking": "none",
        "strategy": "auto" if config.strategy in CLUSTERED else config.strategy,
    }
    return config.model_copy(update=changes)


def _estimate_stage(config: ExperimentConfig, name: str, record: dict[str, float]) -> StageEstimate:
    steps = config.stages[name].steps
    return StageEstimate(
        name,
        steps,
        s_per_step=record["s_per_step"],
        images_per_s=record["images_per_s"],
        flop_utilisation=record["flop_utilisation"],
        validations=-(-steps // config.validate_every),
        checkpoints=-(-steps // config.checkpoint_every),
    )


def _time_features(trainer: Trainer, steps: Mapping[str, int]) -> float:
    """Fills the feature cache for these steps of each stage; returns the duration for one image, s.

    The steps that are measured next are then as fast as later ones. Returns 0 if there is no feature cache.
    """
    features = trainer.features
    if features is None:
        return 0.0
    black = {"image": np.zeros(trainer.image_shape, np.float32)}
    features.compute(black)  # compiles
    feature_s = _time(lambda: features.compute(black))
    for index, stage in enumerate(STAGES):
        for _ in trainer.pipeline.batches(index, 0, steps[stage.name]) if steps[stage.name] else ():
            pass
    return feature_s


def _time(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
