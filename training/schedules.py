"""Optimisers and learning-rate schedules of a stage."""

import keras

from training.config import StageConfig


def build_schedule(config: StageConfig) -> keras.optimizers.schedules.LearningRateSchedule | float:
    """The learning rate of a stage as a function of its step."""
    schedule, rate = config.schedule, config.learning_rate
    schedules = keras.optimizers.schedules
    if schedule.kind == "poly":
        return schedules.PolynomialDecay(rate, config.steps, end_learning_rate=0.0, power=schedule.power)
    if schedule.kind == "staircase":
        return schedules.ExponentialDecay(rate, schedule.decay_steps, schedule.decay_rate, staircase=True)
    if schedule.kind == "cosine":
        return schedules.CosineDecay(rate, config.steps)
    return rate


def build_optimizer(config: StageConfig, name: str) -> keras.optimizers.Optimizer:
    """The optimiser of a stage, not yet built on its variables."""
    rate, decay = build_schedule(config), config.weight_decay or None
    if config.optimizer == "sgd":
        return keras.optimizers.SGD(rate, momentum=config.momentum, weight_decay=decay, name=name)
    optimizer = keras.optimizers.AdamW if config.optimizer == "adamw" else keras.optimizers.Adam
    return optimizer(rate, weight_decay=decay, name=name)
