"""The training loop: data, network, resume, stages, result, from top to bottom."""

import hashlib
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import NoReturn

import numpy as np
import tensorflow as tf

from datasets.problems import list_names
from segdec.config import EncoderWeights
from segdec.engines.tensorflow import NetworkEngine
from segdec.predictor import Predictor
from segdec.runtime.gpu import gpu_unused_reason
from training.class_fitting import fit_classes
from training.config import ExperimentConfig
from training.data.array_cache import ArrayCache
from training.data.augmentation import allowed_rotations
from training.data.feature_cache import FeatureCache
from training.data.input_pipeline import InputPipeline
from training.data.reading_pool import ReadingPool
from training.data.run_data import RunData, cached_reader, item_reader, load_run_data
from training.data.synthetic_validation import synthetic_validation
from training.distribution.cluster import Cluster
from training.distribution.interruption import Interruption, RunInterruptedError
from training.distribution.process_group_context import ProcessGroupContext
from training.distribution.strategies import divisible_batch_size
from training.linear_mask import LINEAR_STEPS, LinearMasks, fit_linear_masks
from training.memory_building import build_memory
from training.metrics.mask_refinement_choice import choose_mask_refinement
from training.metrics.size_errors import measure_size_errors
from training.metrics.validation import Validation, Validator, choose_thresholds
from training.optimization.flops import Workload, count_step_flops, measure_strategy_peak
from training.optimization.initial import with_initial_sha256
from training.optimization.numerics import compute_dtype, emulates_bfloat16, set_numerics
from training.optimization.pretrained import LoadPretrained, build_initial_network, load_pretrained
from training.optimization.step import build_step
from training.optimization.step_runner import AsynchronousStepRunner, StepRunner, SynchronousStepRunner
from training.optimization.train_state import build_train_state
from training.part_durations import PartDurations
from training.photograph_limits import add_limits
from training.run.checkpoints import RunState
from training.run.folder import RunFolder, parts_by_fold, run_digest
from training.run.meter import Meter, NonFiniteError
from training.run.nan_report import write_nan_report
from training.run.records import UNTRAINED_DECISION, PhotographScores, RunResult
from training.run.run_log import RunLog, check_tracking, open_trackers
from training.run.training_panel import draw_batch, draw_validation
from training.schedule_control import ScheduleControl
from training.score_combination import combine_scores
from training.stages import STAGES

OUTLIERS_NOTE = (
    "Training images without a defect that are far less like the others than usual: {}. Look at them. If one "
    "has a defect, label it: as a good one it hides defects like its own. Otherwise add more like it."
)
MAX_NAMES = 20
"""Names that this note shows."""


class Trainer:
    """One run of an experiment, new or resumed, in one process or several.

    Nothing is written before configuration and data are checked. With several processes only the chief
    writes, validates and selects the best weights; the others get checkpoints from it and need no run folder.
    `config` is the effective experiment, with the number of classes and a divisible batch size.

    Args:
        config: The experiment.
        fresh: Whether to start over if the run folder exists.
        cluster: The processes of the run; None = only this one.
        dry_run: Whether to omit messages about the quality of the model.
        few_photographs: Whether to use only a few photographs of each fold, if there are folds.
        control: Controls steps and schedules of the stages, equally in all processes; None = as configured.
        process_group: The processes of the run if they are connected already; `cluster` is then ignored.
        load_weights: Loads the encoder's weights.
        durations: Receives the durations of the parts of the training; None = nobody needs them.

    Raises:
        SegdecError: If the configuration, the data, the cluster or the run folder cannot be used.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        *,
        fresh: bool = False,
        cluster: Cluster | None = None,
        dry_run: bool = False,
        few_photographs: bool = False,
        control: ScheduleControl | None = None,
        process_group: ProcessGroupContext | None = None,
        load_weights: LoadPretrained = load_pretrained,
        durations: PartDurations | None = None,
    ) -> None:
        self.dry_run = dry_run
        self.control = control or ScheduleControl()
        self.durations = durations or PartDurations()
        # === Data ===
        check_tracking(config.tracking)
        config = with_initial_sha256(config)
        data = load_run_data(config, few=few_photographs)
        self.data_fingerprint, self.image_shape, self.examples = data.fingerprint, data.shape, data.examples
        self._cache = data.cache
        self.training_photographs, self.used_share = data.training_photographs, data.used_share

        # === Devices and processes ===
        set_numerics(config)
        self.process_group = process_group or ProcessGroupContext(config, cluster)
        self.strategy, self.is_chief = self.process_group.strategy, self.process_group.is_chief
        batch_size = divisible_batch_size(config, self.strategy)
        self.config = config.model_copy(update={"network": data.model.network, "batch_size": batch_size})
        pretrained = load_weights(self.config)
        origin = None if pretrained is None else pretrained.origin
        self.process_group.check_same(
            run_digest(self.config, data, origin), "experiment, data or encoder weights"
        )

        # === Network ===
        with self.process_group.translate_peer_errors(), self.strategy.scope():
            adjustable = control is not None
            self.train_state = build_train_state(self.config, pretrained, adjustable_schedule=adjustable)
        self.validated = build_initial_network(self.config, pretrained)
        self._last_validation: Validation | None = None

        # === Input ===
        pool = ReadingPool(config.data.decode_threads * self.process_group.input_replicas)
        self.features = self._feature_cache(data) if config.caches_features else None
        self.pipeline = InputPipeline(data.examples, data.shape, self.config, pool, self.features)
        self.predictor = Predictor(NetworkEngine(self.validated), data.model)
        # Prediction does not need a divisible batch size.
        self.validator = self._validator(data, config.batch_size, pool)

        # === Resume ===
        self.folder = self._open_folder(data, origin, fresh=fresh)
        self.state = RunState(
            self.folder.checkpoints,
            self.train_state,
            self.validated,
            self.config,
            writes=self.is_chief,
            broadcast=self.process_group.broadcast if self.process_group.has_peers else None,
        )
        self.resumed = self.state.restore()
        if self.state.schedule is not None:
            self.control.resume(self.state.schedule)
        self.process_group.check_same(self._position_digest(), "the step of the checkpoint")
        self.interruption = Interruption()
        self.peak_flops_per_s = measure_strategy_peak(
            self.strategy, self.process_group.workers, compute_dtype(config)
        )

    def _validator(self, data: RunData, batch_size: int, pool: ReadingPool) -> Validator:
        read = cached_reader(item_reader(self.config), data.cache)
        items = data.dataset.of_split(self.config.validation_split)
        if self.config.network.folds > 1:
            parts = parts_by_fold(self.validated, items, data.model, self.features)
            return Validator(parts, read, batch_size, pool)
        synthetic = synthetic_validation(items, read, data.model, self.config.seed, data.cache)
        return Validator([(self.predictor, items)], read, batch_size, pool, synthetic)

    def _feature_cache(self, data: RunData) -> FeatureCache:
        """Features of the validated network's encoder, whose weights are the same in every strategy."""
        maps = 1 + self.config.input.is_partial + self.config.network.mask_classes
        images = len(data.examples) * len(allowed_rotations(self.config.augmentation, data.shape))
        features = FeatureCache(self.validated.encoder, data.shape, data.cache, images, maps=maps)
        if (shortage := features.describe_shortage()) and self.is_chief:
            print(f"warning: {shortage}", file=sys.stderr)
        return features

    def _open_folder(self, data: RunData, origin: EncoderWeights | None, *, fresh: bool) -> RunFolder:
        """The chief creates or opens the folder; the other processes wait, and do not need one."""
        folder = RunFolder.open(self.config, data, origin, fresh=fresh) if self.is_chief else None
        if folder is not None:
            data.check_cache.save(parents=True)
        self.process_group.wait()
        return folder or RunFolder(self.config.folder)

    def _position_digest(self) -> str:
        """Digest of stage and step, which must be equal in all processes."""
        position = f"{int(self.state.stage)} {self.state.steps_taken}"
        return hashlib.sha256(position.encode()).hexdigest()

    def describe_start(self) -> str:
        """Describes folder, devices and starting point for the terminal."""
        run, note = f"'{self.folder.path}', {self.process_group}", ""
        uses_local_devices = self.config.devices is None and self.process_group.coordinator is None
        if uses_local_devices and not tf.config.list_physical_devices("GPU"):
            reason = gpu_unused_reason()
            problem = f"The GPU of this machine cannot be used: {reason}" if reason else "No GPU was found"
            note = f"\n{problem}: the CPU is used."
        if emulates_bfloat16(self.config):
            note += "\nThis CPU has no bfloat16: mixed_bfloat16 is emulated and much slower than float32."
        if not self.resumed:
            return f"Starting {run}.{note}"
        left = [stage.name for stage in STAGES[int(self.state.stage) :]]
        position = f"stage {left[0]} after step {self.state.steps_taken}" if left else "all stages finished"
        return f"Resuming {run}: {position}.{note}"

    def run(self, *, keep_best_after: Collection[signal.Signals] = ()) -> RunFolder:
        """Trains the remaining stages, chooses the thresholds and writes the result.

        After a signal of `keep_best_after`, the result has the best weights so far, unless no step was taken.

        Raises:
            RunError: If the loss is not finite, the run folder cannot be written, or a process is lost.
            RunInterruptedError: After SIGTERM or SIGINT; a checkpoint has been saved.
            SegdecError: If an image has become unreadable.
        """
        with closing(self.folder), self.process_group.translate_peer_errors(), self._open_log() as log:
            try:
                with self.interruption:
                    self._run_stages(log)
            except RunInterruptedError as stop:
                keeps_best = stop.received in keep_best_after
                if keeps_best and log is not None and self._has_weights():
                    self._save_result(log)
                raise
            if log is not None:
                self._save_result(log)
            self.process_group.wait()
        return self.folder

    def _has_weights(self) -> bool:
        """Whether a step was taken; before the first validation the averaged weights become the best."""
        stage, taken = int(self.state.stage), self.state.steps_taken
        if taken and self.state.best.numpy()[0] == float("-inf"):
            self.train_state.ema.copy_to(self.validated)
            self.state.save_best((0.0, 0.0))
        return taken > 0 or any(self.config.stages[earlier.name].steps for earlier in STAGES[:stage])

    def _has_trained_decision(self) -> bool:
        """Whether the decision is usable; not in a run that was stopped before a step trained it."""
        started = int(self.state.stage) + (self.state.steps_taken > 0)
        stages = self.config.stages
        return not self.config.network.heads or any(
            stage.trains_decision and stages[stage.name].steps for stage in STAGES[:started]
        )

    def _open_log(self) -> AbstractContextManager[RunLog | None]:
        if not self.is_chief:
            return nullcontext()
        position = {"stage": int(self.state.stage), "step": self.state.steps_taken}
        return RunLog(self.folder.path, **position, trackers=open_trackers(self.config))

    def _run_stages(self, log: RunLog | None) -> None:
        while (index := int(self.state.stage)) < len(STAGES):
            if self.config.stages[STAGES[index].name].steps:
                self._run_stage(index, log)
            self._advance(index)
            if self.process_group.any(self._stop_requested):
                self._stop(f"after stage '{STAGES[index].name}'")

    def _run_stage(self, index: int, log: RunLog | None) -> None:
        # === Set-up ===
        config, state, stage = self.config, self.state, STAGES[index]
        steps, first = config.stages[stage.name].steps, state.steps_taken
        self._encode()
        linear = self._fit_linear_masks(index, first)
        if first == 0:
            self.train_state.ema.restart()
        self.control.begin_stage(stage.name, steps)
        self._update_schedule_offset()
        runner = self._step_runner(index, first)
        images = (config.batch_size, *self.image_shape)
        flops = count_step_flops(self.train_state.network, stage, images, encoded=config.caches_features)
        workload = Workload(flops, self.peak_flops_per_s)
        meter = Meter(stage.name, config.batch_size, first, steps, shown=self.is_chief, workload=workload)

        # === Steps ===
        measured = self.durations.measure("steps")
        with measured, closing(runner), meter, self._report_non_finite(index):
            for step in range(first + 1, self.control.max_steps(steps) + 1):
                if linear is not None:
                    linear.set_after(step - 1)
                for result in runner.run_step(self._stop_requested):
                    meter.advance(result.losses, result.wait_s)
                last, stopping = self.control.is_last(step), runner.should_stop(self._stop_requested)
                if last:
                    meter.set_total(step)
                validating = step % config.validate_every == 0 or last
                saving = (state.is_due(step) or stopping) and not last
                if validating or saving:
                    for result in runner.drain():
                        meter.advance(result.losses, result.wait_s)
                if step % config.log_every == 0 or last:
                    self._log_training(index, meter, log)
                if validating:
                    with meter.paused(), self.durations.measure("validation"):
                        self._validate(index, step, meter, log, last=last)
                if saving:
                    with meter.paused():
                        state.save(step, self.control.state_after(stage.name, step))
                self.control.step_done(step)
                self._update_schedule_offset()
                if stopping and not last:
                    self._stop(f"after step {step} of stage '{stage.name}'")
                if last:
                    break
                meter.set_total(self.control.expected_steps)

    def _encode(self) -> None:
        """Encodes the examples before a stage with a time limit, which then is the time of its steps.

        All are encoded if parts that are fitted after the steps need them anyway.
        """
        with self.durations.measure("encoding"):
            for _ in self.pipeline.encode() if self._may_encode else ():
                if self._stop_requested or not self._may_encode:
                    break

    @property
    def _may_encode(self) -> bool:
        return self.control.may_encode or (self.control.saves_time and self._has_fitted_parts)

    @property
    def _has_fitted_parts(self) -> bool:
        """Whether a memory, or classes of defects, are fitted to the features of all examples."""
        return self.config.network.memory > 0 or self.config.network.pools_classes

    def _fit_linear_masks(self, index: int, first: int) -> LinearMasks | None:
        """Fits the linear part of the masks, in the chief for all processes, and sets it.
        Returns None without one, and if it has already decreased to 0.
        """
        config = self.config
        taken = first + sum(config.stages[earlier.name].steps for earlier in STAGES[:index])
        if not config.network.linear_mask or config.initial_weights is not None or taken > LINEAR_STEPS:
            return None
        message = b""
        with self.durations.measure("linear mask"):
            if self.is_chief:
                message = fit_linear_masks(self.pipeline, self.examples, config).tobytes()
            fitted = np.frombuffer(self.process_group.broadcast(message), np.float32)
        linear = LinearMasks(
            self.train_state.network, fitted.reshape(config.network.heads, -1), taken - first
        )
        linear.set_after(first)
        return linear

    def _update_schedule_offset(self) -> None:
        """Sets the position in the schedule, which determines the learning rate of the next step."""
        schedule_offset = self.train_state.schedule_offset
        if schedule_offset is not None and int(schedule_offset.read_value()) != self.control.schedule_offset:
            schedule_offset.assign(self.control.schedule_offset)

    def _step_runner(self, index: int, first: int) -> StepRunner:
        stage, coordinator = STAGES[index], self.process_group.coordinator
        multi_process = coordinator is None and self.process_group.workers > 1
        state, config = self.train_state, self.config
        train_step = build_step(self.strategy, state, stage, config, multi_process=multi_process)
        steps = self.control.max_steps(self.config.stages[stage.name].steps)
        if coordinator is not None:
            batches, workers = self.pipeline.batches(index, first, steps), self.process_group.workers
            return AsynchronousStepRunner(train_step, batches, self.pipeline, coordinator, workers)
        batches = self.pipeline.distribute(self.strategy, index, first, steps)
        return SynchronousStepRunner(train_step, batches, self.pipeline, multi_process=multi_process)

    @contextmanager
    def _report_non_finite(self, index: int) -> Iterator[None]:
        """Saves the images of a step with a number that is not finite to the run folder."""
        try:
            yield
        except NonFiniteError as error:
            folder = self.folder.path / "diverged" / f"{STAGES[index].name}_{error.step:06d}"
            raise write_nan_report(error, self.pipeline, index, folder, writes=self.is_chief) from error

    def _log_training(self, index: int, meter: Meter, log: RunLog | None) -> None:
        numbers, stage = meter.read(), STAGES[index]
        if log is None or not numbers:  # the first steps of an asynchronous stage have not finished
            return
        weights = [variable.value for variable in stage.trainable_variables(self.train_state.network)]
        numbers["weight_norm"] = float(tf.linalg.global_norm(weights))
        log.scalars("train", stage.name, index, meter.step, numbers)

    def _validate(self, index: int, step: int, meter: Meter, log: RunLog | None, *, last: bool) -> None:
        """Validates the averaged weights and saves them if they are the best so far."""
        if log is None:  # only the chief validates
            return
        stage = STAGES[index]
        self.train_state.ema.copy_to(self.validated)
        if last and self.control.saves_time and self.config.network.folds > 1 and self.config.network.memory:
            self.state.save_best((float(step), 0.0))  # only the scores with the memory matter, measured later
            return
        validation = self.validator.measure()
        self._last_validation = validation if last else None
        # With folds, the best of several validations would make the metrics of all photographs too good.
        key = validation.key(stage) if self.config.network.folds == 1 else (float(step), 0.0)
        better = self.state.is_better(key)
        if better:
            self.state.save_best(key)
        if better or last or step <= self.config.validate_every:
            images = draw_validation(self.validator.predictor, self.validator.images)
            log.images("val", stage.name, index, step, images)
            images = draw_batch(self.predictor, self.pipeline, index, step)
            log.images("train", stage.name, index, step, images)
        if not self.dry_run:
            meter.show_validation(validation.metrics(), synthetic=self.validator.has_synthetic)
        log.scalars("val", stage.name, index, step, validation.metrics())

    def _advance(self, index: int) -> None:
        """Starts the next stage from the best weights of this one, in all processes."""
        saved = None
        if self.is_chief:
            if self.config.stages[STAGES[index].name].steps:
                self.state.restore_best()
            if not STAGES[index].trains_decision:  # decision and joint use the same criterion: the best stays
                self.state.reset_best()
            self.state.stage.assign(index + 1)
            following = STAGES[index + 1].name if index + 1 < len(STAGES) else ""
            saved = self.state.save(0, self.control.state_after(following, 0))
        self.process_group.wait()
        self.state.share(saved)
        self.process_group.check_same(self._position_digest(), "the step of the checkpoint")

    @property
    def _stop_requested(self) -> bool:
        return self.interruption.received is not None

    def _stop(self, position: str) -> NoReturn:
        """Stops all processes after a signal to one, once the chief has written the checkpoint."""
        self.process_group.wait()
        raise RunInterruptedError(self.interruption.received or signal.SIGTERM, position)

    def _save_result(self, log: RunLog) -> None:
        self.state.copy_best_to_validated()
        notes: list[str] = []
        if self._has_fitted_parts:
            with self.durations.measure("memory"):
                notes = self._add_fitted_parts()
        self.validator.store_logits(self._cache)
        with self.durations.measure("thresholds"):
            # `calibrate` may have changed the thresholds of a finished run.
            result = self.folder.result() if self.folder.has_result else self._choose_thresholds(notes)
        if not self.dry_run:
            predictor = Predictor(self.validator.predictor.engine, result.model)
            log.draw("val", draw_validation(predictor, self.validator.images))
        self.folder.save_result(self.validated, result)
        thresholds = result.model.thresholds.model_dump(include={"score", "mask"})
        log.finish({**result.validation, **thresholds})

    def _add_fitted_parts(self) -> list[str]:
        """Builds the memory, fits how it is combined with the heads, and the classes of defects.

        Returns notes about the photographs.
        """
        with self.durations.measure("encoding"):
            for _ in self.pipeline.encode():
                pass
        features = self.features or FeatureCache(self.validated.encoder, self.image_shape, ArrayCache(0), 0)
        notes: list[str] = []
        if self.config.network.memory:
            rotate = self.config.augmentation.rotate
            outliers = build_memory(
                self.validated, self.examples, features.find, self.config.seed, rotate=rotate
            )
            if outliers:
                names = [self.examples.name(index) for index in outliers]
                notes.append(OUTLIERS_NOTE.format(list_names(names, MAX_NAMES)))
        combine_scores(self.validated, self.examples, features.find, balanced=self.config.balanced)
        fit_classes(self.validated, self.examples, features.find)
        return notes

    def _choose_thresholds(self, notes: list[str]) -> RunResult:
        model, config, measured = self.predictor.config, self.config, self._last_validation
        network = config.network
        if network.folds == 1 or network.memory or network.pools_classes or measured is None:  # other weights
            measured = self.validator.measure_real()
        chosen = choose_thresholds(model, measured, config.threshold, balanced=config.balanced)
        parts, read, pool = self.validator.parts_with(chosen.model), self.validator.read, self.validator.pool
        model = choose_mask_refinement(chosen.model, parts, read, pool)
        model = measure_size_errors(model, parts, read, pool)
        warnings = [] if self.dry_run else [*notes, *chosen.notes]
        if not self._has_trained_decision():
            warnings.append(UNTRAINED_DECISION)
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
        trained = self.training_photographs
        if trained is not None and not self.dry_run:
            infer = self.validator.predictor.infer if config.network.memory else None
            trained = add_limits(trained, self.examples.photographs, infer)
        return RunResult(
            model=model,
            validation=chosen.validation,
            chosen_by=chosen.chosen_by,
            scored=PhotographScores.pack(chosen.scored),
            operating_points=chosen.points,
            warnings=tuple(warnings),
            data_fingerprint=self.data_fingerprint,
            encoder=self.folder.encoder(),
            training_photographs=trained,
        )
