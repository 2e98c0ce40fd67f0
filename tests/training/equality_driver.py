"""Trains segment → decision → joint under one strategy and saves all numbers.

    equality_driver.py STRATEGY DEVICES FLOATX NORMALIZATION OUT.npz

Alone in its process: strategies need other numbers of devices. DEVICES may be `-` for those there are.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

from segdec.config import NetworkConfig
from segdec.network.layers import ComputePolicy
from segdec.network.network import build_network
from training.config import ExperimentConfig, LossConfig, ScheduleConfig, StageConfig, StagesConfig
from training.distribution.cluster import read_cluster
from training.distribution.rendezvous import meet
from training.distribution.strategies import choose_strategy
from training.optimization.ema import WeightEMA
from training.optimization.schedules import build_optimizer
from training.optimization.step import build_step
from training.optimization.train_state import TrainState
from training.stages import STAGES

SIZES = (8, 8, 8, 8, 8, 1, 8, 5)
"""Images of a stage's batches: one holds fewer than there are replicas, the last is uneven."""
SIDE = 16


def make_experiment(floatx, normalization):
    """Everything that may go wrong with replicas, once: decays, Adam, clipping, parts, schedules, balance.

    In float32 Adam turns the noise around zero gradients into signs. Parts have statistics of their own
    with batch normalisation.
    """
    first = {"optimizer": "adam", "learning_rate": 1e-3} if floatx == "float64" else {"optimizer": "sgd"}
    parts = 2 if normalization == "instance" else 1
    warm = ScheduleConfig(kind="poly", warmup_steps=3)
    steps = len(SIZES)
    stages = StagesConfig(
        segment=StageConfig(steps=steps, weight_decay=0.05, **first),
        decision=StageConfig(
            steps=steps,
            optimizer="sgd",
            learning_rate=0.05,
            clip_norm=0.02,
            weight_decay=0.1,
            weight_decay_kind="l2",
        ),
        joint=StageConfig(
            steps=steps,
            optimizer="sgd",
            learning_rate=0.02,
            accumulate=parts,
            schedule=warm,
            balance="dynamic",
            weight_decay=0.1,
            weight_decay_kind="l2",
        ),
    )
    return ExperimentConfig(stages=stages, loss=LossConfig(focal_gamma=1.0, dice_weight=0.5))


def make_batch(random, images, floatx):
    return {
        "image": random.uniform(0, 255, (images, SIDE, SIDE, 1)).astype(floatx),
        "target": random.uniform(0, 1, (images, SIDE // 8, SIDE // 8, 1)).astype(floatx),
        "weight": random.uniform(0, 2, (images, SIDE // 8, SIDE // 8, 1)).astype(floatx),
        "label": random.integers(0, 2, images).astype(np.int32),
    }


def distribute(strategy, batch):
    """Gives each replica its rows of the global batch, some of them none."""

    def rows(name, context):
        images, replicas = len(batch[name]), context.num_replicas_in_sync
        replica = context.replica_id_in_sync_group
        return tf.constant(batch[name][images * replica // replicas : images * (replica + 1) // replicas])

    return {
        name: strategy.experimental_distribute_values_from_function(
            lambda context, name=name: rows(name, context)
        )
        for name in batch
    }


def train(strategy, floatx, normalization):
    """The numbers that must not depend on the strategy, by name."""
    keras.config.set_floatx(floatx)
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    config = NetworkConfig(
        segmentation_widths=((4,), (4,), (4,)),
        feature_width=8,
        feature_kernel=5,
        decision_widths=(4, 4, 4),
        normalization=normalization,
        mask_normalization="affine",
    )
    experiment = make_experiment(floatx, normalization)
    with strategy.scope():
        network = build_network(config, ComputePolicy(floatx, synchronized=True))
        steps_taken = tf.Variable(0, dtype=tf.int64)
        optimizers = {
            stage.name: build_optimizer(experiment.stages[stage.name], stage.name, steps_taken)
            for stage in STAGES
        }
        for stage in STAGES:
            optimizers[stage.name].build(stage.trainable_variables(network))
        ema = WeightEMA(network, 0.9)
    state = TrainState(network, optimizers, ema, steps_taken)
    numbers = {}
    for stage in STAGES:
        steps_taken.assign(0)
        step = build_step(strategy, state, stage, experiment)
        for index, images in enumerate(SIZES):
            losses = step(distribute(strategy, make_batch(random, images, floatx)))
            for name, value in losses.items():
                if not name.startswith("replica_loss_"):  # there are as many as replicas
                    numbers[f"{stage.name}/{index}/{name}"] = value.numpy()
    for variable, shadow in zip(network.variables, ema.shadows, strict=True):
        copies = strategy.experimental_local_results(variable.value)
        numbers[f"weights/{variable.path}"] = copies[0].numpy()
        numbers[f"average/{variable.path}"] = strategy.experimental_local_results(shadow)[0].numpy()
        numbers[f"spread/{variable.path}"] = np.ptp([copy.numpy() for copy in copies], axis=0)
    return numbers


def main(strategy_name, devices, floatx, normalization, out):
    cluster = read_cluster()
    if cluster is not None:
        meet(cluster, timeout_s=120)
    strategy = choose_strategy(strategy_name, None if devices == "-" else devices, cluster)
    numbers = train(strategy, floatx, normalization)
    if cluster is None or cluster.is_chief:
        np.savez(out, **numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
