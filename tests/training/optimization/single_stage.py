"""One stage of an experiment with a tiny network under a strategy, with its batches."""

import keras
import numpy as np

from tests.training.replicas import split_over_replicas
from training.config import ExperimentConfig, TargetConfig
from training.distribution.strategies import choose_strategy
from training.optimization.pretrained import load_pretrained
from training.optimization.step import build_step
from training.optimization.train_state import build_train_state
from training.stages import STAGES


def make_batch(random, images=4, side=16, dtype=np.float32):
    """A batch of noise for a network of stride 8."""
    cells = (images, side // 8, side // 8, 1)
    return {
        "image": random.uniform(0, 255, (images, side, side, 1)).astype(dtype),
        "target": random.uniform(0, 1, cells).astype(dtype),
        "weight": random.uniform(0.5, 2, cells).astype(dtype),
        "label": random.integers(0, 2, images).astype(np.int32),
        "has_boxes": np.arange(images, dtype=np.int32) % 2,
    }


def make_batches(count, batch_size=4, side=16):
    random = np.random.default_rng(0)
    return [make_batch(random, batch_size, side) for _ in range(count)]


def stage_config(network, stage, *, precision="float32", **settings):
    """An experiment that trains one stage, by SGD unless `settings` name another optimizer."""
    settings = {"steps": 10, "optimizer": "sgd", "learning_rate": 0.05, **settings}
    return ExperimentConfig(
        network=network,
        stages={stage: settings},
        target=TargetConfig(positive_weight=2.0),
        precision=precision,
    )


def changed_paths(before, after):
    """Paths of the variables that differ between two results of `weights` or `replica_weights`."""
    return {path for path in before if (before[path] != after[path]).any()}


class Training:
    """The stage of an experiment that has steps, under a strategy."""

    def __init__(self, config, strategy="single", **options):
        keras.utils.set_random_seed(1)
        (self.stage,) = (stage for stage in STAGES if config.stages[stage.name].steps)
        self.strategy = choose_strategy(strategy, f"cpu:{1 if strategy == 'single' else 2}")
        pretrained = load_pretrained(config)
        with self.strategy.scope():
            self.state = build_train_state(config, pretrained)
        self.network = self.state.network
        self.step = build_step(self.strategy, self.state, self.stage, config, **options)

    def run(self, batches, *stop_requests):
        """Runs a step per batch; returns the losses of the last one."""
        for batch in batches:
            losses = self.step(split_over_replicas(self.strategy, batch), *stop_requests)
        return {name: float(loss) for name, loss in losses.items()}

    def weights(self):
        return {variable.path: np.asarray(variable.value).copy() for variable in self.network.variables}

    def replica_weights(self):
        """The weights of all replicas, stacked."""
        copies = self.strategy.experimental_local_results
        return {
            variable.path: np.stack([np.asarray(copy) for copy in copies(variable.value)])
            for variable in self.network.variables
        }
