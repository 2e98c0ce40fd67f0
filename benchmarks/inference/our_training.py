"""Our training step on one batch, with all that a run does in it: averaged weights and gradient norm too.

python -m benchmarks.inference.our_training FOLDER PRECISION
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.inference.peers.answering import Work, answer_requests
from segdec.runtime.cli import import_tensorflow


def prepare(folder: Path, precision: str) -> tuple[Work, str]:
    """Prepares the step of the joint stage on the batch of `batch.npz`."""
    import_tensorflow()
    import tensorflow as tf

    from benchmarks.inference.workload import set_weights
    from segdec.network.network import build_network
    from training.config import ExperimentConfig
    from training.optimization.ema import WeightEMA
    from training.optimization.numerics import compute_policy, set_numerics
    from training.optimization.schedules import build_optimizer
    from training.optimization.step import build_step
    from training.optimization.train_state import TrainState
    from training.stages import STAGES

    text = (folder / "experiment.json").read_text(encoding="utf-8")
    config = ExperimentConfig.model_validate_json(text).model_copy(update={"precision": precision})
    stage = STAGES[-1]
    set_numerics(config)
    network = build_network(config.network, compute_policy(config))
    with np.load(folder / "weights.npz") as weights:
        set_weights(network, weights)
    steps_taken = tf.Variable(0, dtype=tf.int64)
    optimizer = build_optimizer(config.stages[stage.name], stage.name, steps_taken)
    optimizer.build(stage.trainable_variables(network))
    ema = WeightEMA(network, config.ema_decay)
    state = TrainState(network, {stage.name: optimizer}, ema, steps_taken)
    step = build_step(tf.distribute.get_strategy(), state, stage, config)
    with np.load(folder / "batch.npz") as arrays:
        batch = {name: tf.constant(array) for name, array in arrays.items()}

    def work() -> Mapping[str, float]:
        return {"loss": float(step(batch)["loss"])}

    return work, f"tensorflow {tf.__version__}"


if __name__ == "__main__":
    answer_requests(lambda: prepare(Path(sys.argv[1]), sys.argv[2]))
