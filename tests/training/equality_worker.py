"""Trains segment → decision → joint in float64 under one strategy and saves all numbers.

    python -m tests.training.equality_worker STRATEGY DEVICES ENCODER WEIGHTS OUT.npz

Alone in its process: strategies need other numbers of devices. ENCODER is `none`, or `all`: an encoder that
begins with the file WEIGHTS is trained, in the joint stage alone.
"""

import sys
from contextlib import nullcontext

import keras
import numpy as np
import tensorflow as tf

from segdec.network.layers import ComputePolicy
from tests import tiny_encoder
from tests.training.optimization.single_stage import make_batch
from tests.training.replicas import split_over_replicas
from training.config import ExperimentConfig
from training.distribution.cluster import read_cluster
from training.distribution.rendezvous import wait_for_peers
from training.distribution.strategies import choose_strategy
from training.optimization import train_state
from training.optimization.pretrained import load_pretrained, mutable_variables
from training.optimization.step import build_step
from training.stages import STAGES

SIZES = (8, 1, 8, 5)
"""Images of a stage's batches: one holds fewer than there are replicas, the last is uneven."""
SIDE, ENCODER_SIDE = 16, 64
"""Sides of images, px. One image has several features of stride 16, whose variance is not 0."""


def make_experiment(encoder, weights):
    """Everything that may go wrong with replicas, once: decays, Adam, clipping, schedules, balance."""
    l2 = {"steps": len(SIZES), "optimizer": "sgd", "weight_decay": 0.1, "weight_decay_kind": "l2"}
    schedule = {"kind": "poly", "warmup_steps": 3}
    network, more = {"segmentation_widths": ((4,), (4,), (4,)), "feature_kernel": 5}, {}
    if encoder != "none":
        network = {"encoder": tiny_encoder.NAME, "adapter_width": 4, "feature_kernel": 3}
        more = {"encoder_weights": weights, "encoder_trainable": encoder, "encoder_learning_rate": 0.5}
    shared = {"feature_width": 8, "decision_widths": (4, 4, 4), "mask_normalization": "affine"}
    return ExperimentConfig(
        network={**network, **shared},
        stages={
            "segment": {"steps": len(SIZES), "weight_decay": 0.05, "learning_rate": 1e-3},
            "decision": {**l2, "learning_rate": 0.05, "clip_norm": 0.02},
            "joint": {**l2, "learning_rate": 0.02, "schedule": schedule, "balance": "dynamic"},
        },
        loss={"focal_gamma": 1.0, "dice_weight": 0.5},
        ema_decay=0.9,
        **more,
    )


def common_specs(batches):
    """Specifications of the values of all batches, by name."""
    specs = {name: [tf.type_spec_from_value(batch[name]) for batch in batches] for name in batches[0]}
    return {name: first.most_specific_common_supertype(others) for name, (first, *others) in specs.items()}


def train(strategy, encoder, weights):
    """The numbers that must not depend on the strategy, by name."""
    keras.config.set_floatx("float64")
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    experiment = make_experiment(encoder, weights)
    pretrained = load_pretrained(experiment)
    train_state.compute_policy = lambda _: ComputePolicy("float64", synchronized=True)
    with strategy.scope():
        state = train_state.build_train_state(experiment, pretrained)
    network = state.network
    side = SIDE if encoder == "none" else ENCODER_SIDE
    numbers = {}
    for stage in STAGES if encoder == "none" else STAGES[-1:]:
        state.step.assign(0)
        step = build_step(strategy, state, stage, experiment)
        sizes = SIZES if encoder == "none" else (8, 8)
        batches = [make_batch(random, images, side, np.float64) for images in sizes]
        batches = [split_over_replicas(strategy, batch) for batch in batches]
        step.get_concrete_function(common_specs(batches))  # one graph for all sizes: tracing is slow
        for index, batch in enumerate(batches):
            for name, value in step(batch).items():
                if not name.startswith("replica_loss_"):  # there are as many as replicas
                    numbers[f"{stage.name}/{index}/{name}"] = value.numpy()
    for variable, shadow in zip(mutable_variables(network), state.ema.shadows, strict=True):
        numbers[f"average/{variable.path}"] = strategy.experimental_local_results(shadow)[0].numpy()
    for variable in network.variables:
        copies = [copy.numpy() for copy in strategy.experimental_local_results(variable.value)]
        numbers[f"weights/{variable.path}"] = copies[0]
        numbers[f"spread/{variable.path}"] = np.ptp(copies, axis=0)
    return numbers


def main(strategy_name, devices, encoder, weights, out):
    cluster = read_cluster()
    if cluster is not None:
        wait_for_peers(cluster, timeout_s=120).close()
    strategy = choose_strategy(strategy_name, devices, cluster)
    with nullcontext() if encoder == "none" else tiny_encoder.registered():
        numbers = train(strategy, encoder, weights)
    if cluster is None or cluster.is_chief:
        np.savez(out, **numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
