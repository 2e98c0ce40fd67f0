"""How exactly a run computes: seed, order of additions, precision."""

import keras
import tensorflow as tf

from segdec.network.layers import ComputePolicy
from segdec.runtime.cpu_features import has_bfloat16
from training.config import ExperimentConfig


def set_numerics(config: ExperimentConfig) -> None:
    """Sets what holds for the whole process, before TensorFlow computes anything."""
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_tensor_float_32_execution(config.precision == "tf32")
    if config.deterministic and tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


def compute_policy(config: ExperimentConfig) -> ComputePolicy:
    """Returns how the training network computes."""
    dtype = "float32" if config.precision == "tf32" else config.precision
    return ComputePolicy(dtype, config.synchronized_batch_norm)


def emulates_bfloat16(config: ExperimentConfig) -> bool:
    """Returns whether the run asks for bfloat16 of a CPU that takes a detour by float32 for it."""
    on_cpu = not tf.config.get_visible_devices("GPU")
    return config.precision == "mixed_bfloat16" and on_cpu and not has_bfloat16()


def compute_dtype(config: ExperimentConfig) -> str:
    """Returns what the devices multiply in."""
    if config.precision in ("float32", "tf32") or emulates_bfloat16(config):
        return "float32"
    return config.precision.removeprefix("mixed_")
