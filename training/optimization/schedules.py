"""Optimisers and learning-rate schedules of a stage."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from training.config import StageConfig
from training.optimization.fused_adam import FusedAdam


def build_schedule(config: StageConfig) -> Callable[[Any], Any] | float:
    """Returns the learning rate of a stage as a function of its step from 0, or a constant rate.

    During the warm-up the rate is multiplied by (step + 1) / `warmup_steps`.
    """
    schedule: Callable[[Any], Any] | float = _build_main_schedule(config)
    steps = config.schedule.warmup_steps
    if not steps:
        return schedule

    def warmup(step: Any) -> Any:
        rate = ops.convert_to_tensor(schedule(step) if callable(schedule) else schedule)
        return rate * ops.minimum((ops.cast(step, rate.dtype) + 1.0) / steps, 1.0)

    return warmup


def _build_main_schedule(config: StageConfig) -> Any:
    schedule, rate = config.schedule, config.learning_rate
    schedules = keras.optimizers.schedules
    if schedule.kind == "poly":
        return schedules.PolynomialDecay(rate, config.steps, end_learning_rate=0.0, power=schedule.power)
    if schedule.kind == "staircase":
        return schedules.ExponentialDecay(rate, schedule.decay_steps, schedule.decay_rate, staircase=True)
    if schedule.kind == "cosine":
        return schedules.CosineDecay(rate, config.steps)
    if schedule.kind == "piecewise":
        last = [boundary - 1 for boundary in schedule.boundaries]  # Keras counts from 0, inclusively
        rates = [rate, *(rate * factor for factor in schedule.factors)]
        return schedules.PiecewiseConstantDecay(last, rates)
    return rate


def build_optimizer(
    config: StageConfig, name: str, step: Any, schedule_offset: Any = None
) -> keras.optimizers.Optimizer:
    """Creates the optimiser of a stage, not yet built; weight decay is part of the step.

    The learning rate follows the variable `step`, plus `schedule_offset`: Keras' own counter misses steps in
    asynchronous training.
    """
    schedule = build_schedule(config)
    offset = 0 if schedule_offset is None else schedule_offset
    rate = (lambda: schedule(step + offset)) if callable(schedule) else schedule
    if config.optimizer == "sgd":
        return keras.optimizers.SGD(rate, momentum=config.momentum, name=name)
    return FusedAdam(rate, name=name)  # adamw is adam with decay in the step
