"""One stage of a tiny network under a strategy, with its batches."""

import keras
import numpy as np
import tensorflow as tf

from segdec.network.layers import ComputePolicy
from segdec.network.network import build_network
from tests.training.replicas import split_over_replicas
from training.config import ExperimentConfig, StageConfig, StagesConfig, TargetConfig
from training.distribution.strategies import choose_strategy
from training.optimization.ema import WeightEMA
from training.optimization.loss_scale import LossScale
from training.optimization.schedules import build_optimizer
from training.optimization.step import build_step
from training.optimization.train_state import TrainState
from training.stages import STAGES

STAGE_NAMES = [stage.name for stage in STAGES]


def make_batches(count, batch_size=4):
    random = np.random.default_rng(0)
    return [
        {
            "image": random.uniform(0, 255, (batch_size, 16, 16, 1)).astype(np.float32),
            "target": random.uniform(0, 1, (batch_size, 2, 2, 1)).astype(np.float32),
            "weight": random.uniform(0.5, 2, (batch_size, 2, 2, 1)).astype(np.float32),
            "label": random.integers(0, 2, batch_size).astype(np.int32),
        }
        for _ in range(count)
    ]


class Training:
    """One stage of a tiny network under a strategy."""

    def __init__(
        self,
        network_config,
        stage,
        strategy="single",
        decay=0.5,
        replicas=2,
        policy=None,
        loss_scale=None,
        multi_process=False,
        **settings,
    ):
        keras.utils.set_random_seed(1)
        self.stage = STAGES[STAGE_NAMES.index(stage)]
        self.strategy = choose_strategy(strategy, f"cpu:{1 if strategy == 'single' else replicas}")
        settings = StageConfig(steps=10, **{"optimizer": "sgd", "learning_rate": 0.05, **settings})
        with self.strategy.scope():
            self.network = build_network(network_config, policy or ComputePolicy())
            steps_taken = tf.Variable(0, dtype=tf.int64)
            self.optimizer = build_optimizer(settings, stage, steps_taken)
            self.optimizer.build(self.stage.trainable_variables(self.network))
            self.loss_scale = None if loss_scale is None else LossScale(**loss_scale)
            self.ema = WeightEMA(self.network, decay)
        state = TrainState(self.network, {stage: self.optimizer}, self.ema, steps_taken, self.loss_scale)
        config = ExperimentConfig(
            stages=StagesConfig(**{stage: settings}), target=TargetConfig(positive_weight=2.0)
        )
        self.multi_process = multi_process
        self.step = build_step(self.strategy, state, self.stage, config, multi_process=multi_process)

    def run(self, batches):
        """Runs a step per batch; returns the losses of the last one."""
        for batch in batches:
            stop_requests = (tf.constant(0.0),) if self.multi_process else ()
            losses = self.step(split_over_replicas(self.strategy, batch), *stop_requests)
        return {name: float(loss) for name, loss in losses.items()}

    def weights(self):
        return {variable.path: np.asarray(variable.value).copy() for variable in self.network.variables}
