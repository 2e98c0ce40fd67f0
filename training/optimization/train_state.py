"""What training changes: network, optimisers, averages, step and loss scale."""

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
    """All that a step changes; its variables belong to the strategy in whose scope they were made.

    Attributes:
        network: The network in training.
        optimizers: Those of the stages, by name, each built on the variables that its stage trains.
        ema: Follows the weights.
        step: Steps of the present stage already taken.
        loss_scale: For a network that computes in float16; None for any other.
        lead: Steps by which the learning rate is ahead of `step`; None where it never is. It belongs to the
            process and is in no checkpoint: a run that goes on does so at the pace of its experiment.
    """

    network: SegDecNet
    optimizers: Mapping[str, keras.optimizers.Optimizer]
    ema: WeightEMA
    step: tf.Variable
    loss_scale: LossScale | None = None
    schedule_offset: tf.Variable | None = None


def build_train_state(
    config: ExperimentConfig, pretrained: Pretrained | None = None, *, paced: bool = False
) -> TrainState:
    """Makes the state in which a run begins, within the scope of its strategy.

    Args:
        config: The experiment.
        pretrained: What its encoder begins with.
        paced: Whether the learning rate may get ahead of the steps.
    """
    network = build_initial_network(config, pretrained, compute_policy(config))
    step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
    schedule_offset = tf.Variable(0, dtype=tf.int64, trainable=False, name="lead") if paced else None
    optimizers = {}
    for stage in STAGES:
        if config.stages[stage.name].steps:
            optimizer = build_optimizer(config.stages[stage.name], stage.name, step, schedule_offset)
            optimizer.build(stage.trainable_variables(network))
            optimizers[stage.name] = optimizer
    ema = WeightEMA(network, config.ema_decay)
    loss_scale = LossScale() if config.precision == "mixed_float16" else None
    return TrainState(network, optimizers, ema, step, loss_scale, schedule_offset)
