"""The training loop: data, network, resume, stages, result. Read it downwards."""

import sys
import time
from collections.abc import Iterator
from contextlib import closing

import keras
import tensorflow as tf

from datasets.reading import read
from segdec.engines.tensorflow import NetworkEngine
from segdec.network import build_network
from segdec.predictor import Predictor
from training.averaging import WeightAverage
from training.checkpoints import RunState
from training.config import ExperimentConfig, StageConfig
from training.gradients import Batch
from training.input_pipeline import InputPipeline
from training.interruption import Interruption
from training.meter import Meter
from training.run_data import load_run_data
from training.run_folder import RunFolder, RunResult
from training.run_log import RunLog
from training.schedules import build_optimizer
from training.stages import STAGES, Stage
from training.step import build_step
from training.strategies import check_batch_size, choose_strategy, describe_strategy
from training.tracking import check_tracking, open_trackers
from training.validation import Validator


class Trainer:
    """One run of an experiment, fresh or resumed.

    Nothing is written before configuration and data have proved usable.

    Args:
        config: The experiment.
        fresh: Start over even if the run folder exists.

    Raises:
        SegdecError: If the configuration, the data or the run folder cannot be used.
    """

    def __init__(self, config: ExperimentConfig, *, fresh: bool = False) -> None:
        # === Data ===
        check_tracking(config.tracking)
        data = load_run_data(config)
        self.config = config.model_copy(update={"network": data.model.network})
        self.data_fingerprint = data.fingerprint
        self.pipeline = InputPipeline(
            data.examples, data.shape, config.augmentation, config.batch_size, config.seed
        )

        # === Network ===
        keras.utils.set_random_seed(config.seed)
        self.strategy = choose_strategy(config.strategy, config.devices)
        for settings in (self._settings(stage) for stage in STAGES):
            if settings.steps:
                check_batch_size(config.batch_size, self.strategy, settings.accumulate)
        with self.strategy.scope():
            self.network = build_network(data.model.network)
            self.optimizers = {
                stage.name: self._optimizer(stage) for stage in STAGES if self._settings(stage).steps
            }
            self.average = WeightAverage(self.network.variables, config.ema_decay)
        self.validated = build_network(data.model.network)
        predictor = Predictor(NetworkEngine(self.network), data.model)
        self.validator = Validator(predictor, data.dataset.of_split("val"), read, config.batch_size)

        # === Resume ===
        self.folder = RunFolder.open(self.config, data, fresh=fresh)
        self.state = RunState(
            self.folder.checkpoints,
            self.network,
            self.optimizers,
            self.average,
            self.validated,
            keep=config.keep_checkpoints,
            every_steps=config.checkpoint_every,
            every_minutes=config.checkpoint_minutes,
        )
        self.resumed = self.state.restore()
        self.interruption = Interruption()

    def opening(self) -> str:
        """What the run is about to do, for the terminal."""
        where = f"'{self.folder.path}', {describe_strategy(self.strategy)}"
        no_gpu = self.config.devices is None and not tf.config.list_physical_devices("GPU")
        note = "\nNo GPU was found: the CPU takes its place." if no_gpu else ""
        if not self.resumed:
            return f"Starting {where}.{note}"
        left = [stage.name for stage in STAGES[int(self.state.stage) :]]
        place = f"stage {left[0]} after step {int(self.state.step)}" if left else "all stages are done"
        return f"Going on with {where}: {place}.{note}"

    def run(self) -> RunFolder:
        """Trains the stages that are left, chooses the thresholds and writes the result.

        Raises:
            RunError: If the loss stops being a number, or the run folder cannot be written.
            RunInterruptedError: If SIGTERM or SIGINT came; a checkpoint has been saved.
            SegdecError: If an image turns out unreadable on the way.
        """
        place = {"stage": int(self.state.stage), "step": int(self.state.step)}
        with RunLog(self.folder.path, **place, sinks=open_trackers(self.config)) as log:
            with self.interruption:
                self._run_stages(log)
            result = self._save_result()
            log.finish({**result.validation, **result.model.thresholds.model_dump(include={"score", "mask"})})
        return self.folder

    def _run_stages(self, log: RunLog) -> None:
        while (index := int(self.state.stage)) < len(STAGES):
            if self._settings(STAGES[index]).steps:
                self._run_stage(index, log)
            self._advance(index)
            self.interruption.check(f"after stage '{STAGES[index].name}'")

    def _save_result(self) -> RunResult:
        model, metrics, warnings = self.validator.choose_thresholds()
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
        result = RunResult(
            model=model,
            validation=metrics,
            warnings=tuple(warnings),
            data_fingerprint=self.data_fingerprint,
        )
        self.folder.save_result(self.network, result)
        return result

    def _run_stage(self, index: int, log: RunLog) -> None:
        """Takes the stage's remaining steps; leaves the network with its best weights."""
        # === Set-up ===
        config, state, stage = self.config, self.state, STAGES[index]
        settings, optimizer = self._settings(stage), self.optimizers[stage.name]
        first = int(state.step)
        if first == 0:
            self.average.restart()
        train_step = build_step(
            self.strategy, self.network, stage, settings, config.target, optimizer, self.average
        )
        dataset = self.pipeline.batches(index, first, settings.steps)
        batches = iter(self.strategy.experimental_distribute_dataset(dataset))

        # === Steps ===
        with Meter(stage.name, config.batch_size, first, settings.steps) as meter:
            for step in range(first + 1, settings.steps + 1):
                began = time.perf_counter()
                batch = self._next(batches)
                wait_s = time.perf_counter() - began
                losses = train_step(batch)
                state.step.assign(step)
                meter.advance(losses, wait_s)
                last = step == settings.steps
                if step % config.log_every == 0 or last:
                    rate = float(optimizer.learning_rate)
                    log.scalars("train", stage.name, index, step, {**meter.read(), "learning_rate": rate})
                if step % config.validate_every == 0 or last:
                    with meter.paused():
                        metrics = self._validate(stage, index, step, log)
                    meter.validated(metrics)
                stopping = self.interruption.received is not None
                if (step % config.checkpoint_every == 0 or stopping) and not last:
                    with meter.paused():
                        state.save()
                    self.interruption.check(f"after step {step} of stage '{stage.name}'")

        # === Result ===
        state.restore_best()

    def _validate(self, stage: Stage, index: int, step: int, log: RunLog) -> dict[str, float | None]:
        """Measures the averaged weights and keeps them if they are the best so far."""
        for weight, shadow in zip(self.validated.variables, self.average.shadows, strict=True):
            weight.assign(shadow)
        with self.average.applied():
            validation = self.validator.measure()
            key = validation.key(stage)
            if self.state.is_better(key):
                self.state.save_best(key)
                log.images(stage.name, index, step, self.validator.panel())
        metrics = validation.metrics()
        log.scalars("val", stage.name, index, step, metrics)
        return metrics

    def _advance(self, index: int) -> None:
        """Goes on to the next stage. Decision and joint are judged alike, so the best so far stays."""
        if not STAGES[index].trains_decision:
            self.state.forget_best()
        self.state.stage.assign(index + 1)
        self.state.step.assign(0)
        self.state.save()

    def _next(self, batches: Iterator[Batch]) -> Batch:
        try:
            return next(batches)
        except tf.errors.OpError as error:
            raise self.pipeline.error or error from error

    def _settings(self, stage: Stage) -> StageConfig:
        settings: StageConfig = getattr(self.config.stages, stage.name)
        return settings

    def _optimizer(self, stage: Stage) -> keras.optimizers.Optimizer:
        optimizer = build_optimizer(self._settings(stage), stage.name)
        optimizer.build(stage.trainable_variables(self.network))
        return optimizer
