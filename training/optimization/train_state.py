"""The state of training: network, optimisers, averages, step and loss scale."""

from collections.abc import Mapping
from dataclasses import dataclass

import keras
import tensorflow as tf

from segdec.network.network import SegDecNet
from training.config import ExperimentConfig
from training.optimization.ema import WeightEMA
from training.optimization.loss_scale import LossScale
from training.optimization.numerics import compute_policy
from training.optimization.pretrained import Pretrained, build_initial_network
from training.optimization.schedules import build_optimizer
from training.stages import STAGES


@dataclass(frozen=True)
class TrainState:
    """Everything that a step changes; its variables belong to the strategy of their scope.

    Attributes:
        optimizers: Optimisers by stage, each built on the variables that its stage trains.
        step: Number of steps taken in the current stage.
        loss_scale: Loss scale of a float16 network, otherwise None.
        schedule_offset: Added to `step` for the learning rate; None = 0. It is not saved in checkpoints.
    """

    network: SegDecNet
    optimizers: Mapping[str, keras.optimizers.Optimizer]
    ema: WeightEMA
    step: tf.Variable
    loss_scale: LossScale | None = None
    schedule_offset: tf.Variable | None = None


def build_train_state(
    config: ExperimentConfig, pretrained: Pretrained | None = None, *, adjustable_schedule: bool = False
) -> TrainState:
    """Creates the initial state of a run, within the scope of its strategy."""
    network = build_initial_network(config, pretrained, compute_policy(config))
    step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
    schedule_offset = None
    if adjustable_schedule:
        schedule_offset = tf.Variable(0, dtype=tf.int64, trainable=False, name="schedule_offset")
    optimizers = {}
    for stage in STAGES:
        if config.stages[stage.name].steps:
            optimizer = build_optimizer(config.stages[stage.name], stage.name, step, schedule_offset)
            optimizer.build(stage.trainable_variables(network))
            optimizers[stage.name] = optimizer
    ema = WeightEMA(network, config.ema_decay)
    loss_scale = LossScale() if config.precision == "mixed_float16" else None
    return TrainState(network, optimizers, ema, step, loss_scale, schedule_offset)
