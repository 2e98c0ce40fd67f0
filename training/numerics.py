"""How exactly a run computes: seed, order of additions, precision."""

import keras
import tensorflow as tf

from segdec.layers import Computation
from training.config import ExperimentConfig


def set_numerics(config: ExperimentConfig) -> None:
    """Sets what holds for the whole process. Call it before TensorFlow computes anything."""
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_tensor_float_32_execution(config.precision == "tf32")
    if config.deterministic and tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


def computation(config: ExperimentConfig) -> Computation:
    """How the training network computes."""
    dtype = "float32" if config.precision == "tf32" else config.precision
    return Computation(dtype, config.synchronized_batch_norm)
