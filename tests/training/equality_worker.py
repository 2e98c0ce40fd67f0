"""Trains segment → decision → joint under one strategy and saves all numbers.

    python -m tests.training.equality_worker STRATEGY DEVICES FLOATX NORMALIZATION ENCODER OUT.npz [WEIGHTS]

Alone in its process: strategies need other numbers of devices. DEVICES may be `-` for those there are.
ENCODER is `none`, or says what is trained of one that begins with the file WEIGHTS; with `features` it is
frozen, and batches hold its features.
"""

import sys
from contextlib import nullcontext

import keras
import numpy as np
import tensorflow as tf

from segdec.config import NetworkConfig
from segdec.network.layers import ComputePolicy
from tests import tiny_encoder
from tests.training.optimization.single_stage import make_batch
from tests.training.replicas import split_over_replicas
from training.config import ExperimentConfig, LossConfig
from training.distribution.cluster import read_cluster
from training.distribution.rendezvous import wait_for_peers
from training.distribution.strategies import choose_strategy
from training.optimization.ema import WeightEMA
from training.optimization.pretrained import build_initial_network, load_pretrained, mutable_variables
from training.optimization.schedules import build_optimizer
from training.optimization.step import build_step
from training.optimization.train_state import TrainState
from training.stages import STAGES

UNEVEN = (8, 8, 8, 8, 8, 1, 8, 5)
"""Images of a stage's batches: one holds fewer than there are replicas, the last is uneven."""
EVEN = (8,) * len(UNEVEN)
"""Of float32, and of encoders: their graphs are made once."""
SIDE, ENCODER_SIDE = 16, 64
"""Of images, px; with an encoder a single one has several features of stride 16, whose variance is not 0."""


def make_network(normalization, encoder):
    if encoder == "none":
        base = {"segmentation_widths": ((4,), (4,), (4,)), "feature_kernel": 5}
    else:
        base = {"encoder": tiny_encoder.NAME, "adapter_width": 4, "feature_kernel": 3}
    return NetworkConfig(
        feature_width=8,
        decision_widths=(4, 4, 4),
        normalization=normalization,
        mask_normalization="affine",
        **base,
    )


def make_experiment(floatx, normalization, encoder, weights):
    """Everything that may go wrong with replicas, once: decays, Adam, clipping, parts, schedules, balance.

    In float32 Adam turns the noise around zero gradients into signs. Parts have statistics of their own
    with batch normalisation.
    """
    first = {"optimizer": "adam", "learning_rate": 1e-3} if floatx == "float64" else {"optimizer": "sgd"}
    sgd = {"optimizer": "sgd", "weight_decay": 0.1, "weight_decay_kind": "l2"}
    joint = {
        "learning_rate": 0.02,
        "accumulate": 2 if normalization == "instance" else 1,
        "schedule": {"kind": "poly", "warmup_steps": 3},
        "balance": "dynamic",
    }
    settings = {
        "segment": {"weight_decay": 0.05, **first},
        "decision": {"learning_rate": 0.05, "clip_norm": 0.02, **sgd},
        "joint": {**sgd, **joint},
    }
    stages = {name: {"steps": len(UNEVEN), **stage} for name, stage in settings.items()}
    begun = {}
    if encoder != "none":
        trainable = "frozen" if encoder == "features" else encoder
        begun = {"encoder_weights": weights, "encoder_trainable": trainable, "encoder_learning_rate": 0.5}
    return ExperimentConfig(
        network=make_network(normalization, encoder),
        stages=stages,
        loss=LossConfig(focal_gamma=1.0, dice_weight=0.5),
        **begun,
    )


def make_inputs(random, images, floatx, side, features):
    """A batch of images, or of features if there are any."""
    batch = make_batch(random, images, side, floatx)
    if features:
        del batch["image"]
    for name, shape in features.items():
        batch[name] = random.uniform(0, 6, (images, *shape)).astype(np.float16)
    return batch


def train(strategy, floatx, normalization, encoder, weights):
    """The numbers that must not depend on the strategy, by name."""
    keras.config.set_floatx(floatx)
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    experiment = make_experiment(floatx, normalization, encoder, weights)
    pretrained = load_pretrained(experiment)
    with strategy.scope():
        network = build_initial_network(experiment, pretrained, ComputePolicy(floatx, synchronized=True))
        steps_taken = tf.Variable(0, dtype=tf.int64)
        optimizers = {
            stage.name: build_optimizer(experiment.stages[stage.name], stage.name, steps_taken)
            for stage in STAGES
        }
        for stage in STAGES:
            optimizers[stage.name].build(stage.trainable_variables(network))
        ema = WeightEMA(network, 0.9)
    state = TrainState(network, optimizers, ema, steps_taken)
    begun = {variable.path: variable.numpy() for variable in network.variables}
    side = SIDE if encoder == "none" else ENCODER_SIDE
    features = {}
    if encoder == "features":
        outputs = network.encoder.compute_output_spec(keras.KerasTensor((1, side, side, 1)))
        features = {name: output.shape[1:] for name, output in outputs.items()}
    sizes = UNEVEN if (floatx, encoder) == ("float64", "none") else EVEN
    numbers = {}
    for stage in STAGES[-1:] if encoder == "all" else STAGES:  # its graph takes long to make
        steps_taken.assign(0)
        step = build_step(strategy, state, stage, experiment)
        for index, images in enumerate(sizes):
            losses = step(split_over_replicas(strategy, make_inputs(random, images, floatx, side, features)))
            for name, value in losses.items():
                if not name.startswith("replica_loss_"):  # there are as many as replicas
                    numbers[f"{stage.name}/{index}/{name}"] = value.numpy()
    for variable, shadow in zip(mutable_variables(network), ema.shadows, strict=True):
        numbers[f"average/{variable.path}"] = strategy.experimental_local_results(shadow)[0].numpy()
    backbone = network.backbone.variables if network.backbone is not None else ()
    of_encoder = {variable.path for variable in backbone}
    for variable in network.variables:
        path = variable.path
        copies = [copy.numpy() for copy in strategy.experimental_local_results(variable.value)]
        numbers[f"weights/{path}"] = copies[0]
        numbers[f"spread/{path}"] = np.ptp(copies, axis=0)
        if path in of_encoder:
            numbers[f"moved/{path}"] = np.any(np.not_equal(copies, begun[path]))
    return numbers


def main(strategy_name, devices, floatx, normalization, encoder, out, weights=None):
    cluster = read_cluster()
    if cluster is not None:
        wait_for_peers(cluster, timeout_s=120)
    strategy = choose_strategy(strategy_name, None if devices == "-" else devices, cluster)
    with nullcontext() if encoder == "none" else tiny_encoder.registered():
        numbers = train(strategy, floatx, normalization, encoder, weights)
    if cluster is None or cluster.is_chief:
        np.savez(out, **numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
