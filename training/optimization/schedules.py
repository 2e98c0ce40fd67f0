"""Optimisers and learning-rate schedules of a stage."""

from typing import Any, Self

import keras
from keras import ops

from training.config import StageConfig
from training.optimization.fused_adam import FusedAdam


@keras.saving.register_keras_serializable(package="segdec")
class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Multiplies the rate of another schedule by (step + 1)/steps during the first steps.

    Args:
        schedule: The schedule, or a constant rate.
        steps: Length of the warm-up.
    """

    def __init__(self, schedule: keras.optimizers.schedules.LearningRateSchedule | float, steps: int) -> None:
        self.schedule = schedule
        self.steps = steps

    def __call__(self, step: Any) -> Any:
        """Returns the rate at a step, counted from 0."""
        rate = self.schedule(step) if callable(self.schedule) else self.schedule
        rate = ops.convert_to_tensor(rate)  # Keras' schedules do not support float64
        factor = (ops.cast(step, rate.dtype) + 1.0) / self.steps
        return rate * ops.minimum(factor, 1.0)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this schedule."""
        return {"schedule": keras.saving.serialize_keras_object(self.schedule), "steps": self.steps}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates a schedule from the result of `get_config`."""
        schedule = keras.saving.deserialize_keras_object(config["schedule"])
        return cls(schedule, config["steps"])


def build_schedule(config: StageConfig) -> keras.optimizers.schedules.LearningRateSchedule | float:
    """Returns the learning rate of a stage as a function of its step, warm-up included."""
    schedule = _build_main_schedule(config)
    return Warmup(schedule, config.schedule.warmup_steps) if config.schedule.warmup_steps else schedule


def _build_main_schedule(config: StageConfig) -> keras.optimizers.schedules.LearningRateSchedule | float:
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

    Args:
        config: Settings of the stage.
        name: The optimiser's name.
        step: Variable with the number of steps taken, for the learning rate. Keras' own counter misses steps
            in asynchronous training.
        schedule_offset: Variable that is added to `step`; None = 0.
    """
    schedule = build_schedule(config)
    offset = 0 if schedule_offset is None else schedule_offset
    rate = (lambda: schedule(step + offset)) if callable(schedule) else schedule
    if config.optimizer == "sgd":
        return keras.optimizers.SGD(rate, momentum=config.momentum, name=name)
    return FusedAdam(rate, name=name)  # adamw is adam with decay in the step
