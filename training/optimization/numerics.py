"""Numerical settings of a run: seed, determinism, precision."""

import keras
import tensorflow as tf

from segdec.network.layers import ComputePolicy
from segdec.runtime.cpu_features import has_bfloat16
from training.config import ExperimentConfig


def set_numerics(config: ExperimentConfig) -> None:
    """Applies the settings of the process, before TensorFlow computes anything."""
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_tensor_float_32_execution(config.precision == "tf32")
    if config.deterministic and tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


def compute_policy(config: ExperimentConfig) -> ComputePolicy:
    """Returns the precision and normalisation policy of the training network."""
    dtype = "float32" if config.precision == "tf32" else config.precision
    return ComputePolicy(dtype, config.synchronized_batch_norm)


def emulates_bfloat16(config: ExperimentConfig) -> bool:
    """Returns whether the run uses bfloat16 on a CPU that emulates it by float32."""
    on_cpu = not tf.config.get_visible_devices("GPU")
    return config.precision == "mixed_bfloat16" and on_cpu and not has_bfloat16()


def compute_dtype(config: ExperimentConfig) -> str:
    """Returns the type of the devices' matrix products."""
    if config.precision in ("float32", "tf32") or emulates_bfloat16(config):
        return "float32"
    return config.precision.removeprefix("mixed_")
