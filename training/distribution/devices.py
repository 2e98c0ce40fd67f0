"""The devices of a run: logical CPUs, selected GPUs, or all available ones."""

import os
import re
from contextlib import suppress
from typing import Any

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import DEVICES

GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
"""TensorFlow's own variable: `false` reserves all memory of a GPU at the start."""


def find_devices(devices: str | None, *, single: bool = False) -> list[str]:
    """Returns the names of the devices, and starts TensorFlow, so that they cannot be configured afterwards.

    `cpu:4` are four logical devices, `gpu:0,1` these GPUs; None = all GPUs (with `single` the first), or
    without GPUs the existing logical CPU devices. Only these GPUs are used, with memory as needed unless
    `TF_FORCE_GPU_ALLOW_GROWTH` is set. Raises a `ConfigError` if the machine does not have them.
    """
    if devices is None:
        with suppress(RuntimeError):  # TensorFlow has already started with the GPUs
            _claim_gpus(tf.config.get_visible_devices("GPU")[: 1 if single else None])
        available = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return [device.name for device in available]
    kind, _, which = devices.partition(":")
    if not re.fullmatch(DEVICES, devices):
        raise ConfigError(
            f"devices={devices!r} is invalid. Expected 'cpu:4' (four logical CPU devices) or 'gpu:0,1' (the "
            "GPUs with these indices)."
        )
    logical = _make_cpus(int(which)) if kind == "cpu" else _take_gpus(devices)
    return [device.name for device in logical]


def select_gpus(devices: str | None) -> int:
    """Makes only the GPUs of `devices` visible to TensorFlow, without starting it; returns their number.
    Raises a `ConfigError` if the machine does not have them.
    """
    if devices is None:
        gpus = tf.config.get_visible_devices("GPU")
    else:
        gpus = _choose_gpus(devices) if devices.startswith("gpu:") else []
    _claim_gpus(gpus)
    return len(gpus)


def count_replicas() -> int:
    """Returns the number of replicas of `strategy = auto` on this machine, without starting TensorFlow."""
    return len(tf.config.get_visible_devices("GPU")) or 1


def dividing_devices(batch_size: int) -> str | None:
    """Returns `devices` with the largest number of this machine's GPUs that divides a batch.

    None if all of them do, or there are none.
    """
    replicas = count_replicas()
    used = max(number for number in range(1, replicas + 1) if batch_size % number == 0)
    return None if used == replicas else f"gpu:{','.join(map(str, range(used)))}"


def _claim_gpus(gpus: list[Any]) -> None:
    """Makes only these GPUs visible to TensorFlow; raises RuntimeError if it has started with others."""
    tf.config.set_visible_devices(gpus, "GPU")
    if GROWTH_VARIABLE not in os.environ:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)


def _make_cpus(count: int) -> list[Any]:
    """`count` logical CPU devices; they can be created only before TensorFlow starts."""
    with suppress(RuntimeError):  # TensorFlow has already started with the GPUs
        _claim_gpus([])
    cpu = tf.config.list_physical_devices("CPU")[0]
    if len(tf.config.get_logical_device_configuration(cpu) or [None]) < count:
        try:
            # Replicas wait for each other, and a waiting one may block a thread.
            tf.config.threading.set_inter_op_parallelism_threads(max(os.cpu_count() or 1, 4 * count))
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
        except RuntimeError:
            existing = len(tf.config.list_logical_devices("CPU"))
            raise ConfigError(
                f"devices=cpu:{count} is too late: TensorFlow has already started with {existing} logical "
                "CPU device(s) in this process. Start the run in its own process."
            ) from None
    return list(tf.config.list_logical_devices("CPU"))[:count]


def _choose_gpus(devices: str) -> list[Any]:
    indices = [int(index) for index in devices.removeprefix("gpu:").split(",")]
    gpus = tf.config.list_physical_devices("GPU")
    if not set(indices) <= set(range(len(gpus))) or len(set(indices)) < len(indices):
        available = f"gpu:{','.join(str(index) for index in range(len(gpus)))}" if gpus else "no GPU"
        raise ConfigError(
            f"devices={devices}: this machine has {available}. Expected existing GPUs, each once, or logical "
            "CPU devices: --devices cpu:2."
        )
    return [gpus[index] for index in indices]


def _take_gpus(devices: str) -> list[Any]:
    """Logical devices of these GPUs; the others stay free unless TensorFlow has already started."""
    chosen = _choose_gpus(devices)
    try:
        _claim_gpus(chosen)
        return list(tf.config.list_logical_devices("GPU"))
    except RuntimeError:  # already started: each GPU visible then has a logical device
        visible = tf.config.get_visible_devices("GPU")
        return [tf.config.list_logical_devices("GPU")[visible.index(gpu)] for gpu in chosen]
