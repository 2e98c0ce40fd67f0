"""The devices a run is to use: logical CPUs, chosen GPUs, or what is there."""

import os
import re
from contextlib import suppress
from typing import Any

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import DEVICES

GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
"""TensorFlow's own: `false` lets it take all memory of a GPU at the start."""


def find_devices(devices: str | None, *, single: bool = False) -> list[str]:
    """Returns the names of the devices. TensorFlow starts, so that nothing more can be configured.

    It takes no other GPU, and of each no more memory than it needs, unless `TF_FORCE_GPU_ALLOW_GROWTH` says
    otherwise.

    Args:
        devices: `cpu:4` (four logical devices), `gpu:0,1` (these GPUs), or None: all GPUs, and where
            there is none the logical CPU devices that are already there.
        single: Whether of all GPUs the first is enough.

    Raises:
        ConfigError: If the machine cannot give them.
    """
    if devices is None:
        with suppress(RuntimeError):  # TensorFlow has started, and the GPUs with it
            _claim_gpus(tf.config.get_visible_devices("GPU")[: 1 if single else None])
        there = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return [device.name for device in there]
    kind, _, which = devices.partition(":")
    if not re.fullmatch(DEVICES, devices):
        raise ConfigError(
            f"devices={devices!r} names no devices. Expected 'cpu:4' (four logical CPU devices) or "
            "'gpu:0,1' (the GPUs of these numbers)."
        )
    found = _make_cpus(int(which)) if kind == "cpu" else _take_gpus(devices)
    return [device.name for device in found]


def select_gpus(devices: str | None) -> int:
    """Leaves TensorFlow only the GPUs of `devices`, without starting it; returns their number.

    Raises:
        ConfigError: If the machine does not have them.
    """
    if devices is None:
        gpus = tf.config.get_visible_devices("GPU")
    else:
        gpus = _choose_gpus(devices) if devices.startswith("gpu:") else []
    _claim_gpus(gpus)
    return len(gpus)


def _claim_gpus(gpus: list[Any]) -> None:
    """Leaves TensorFlow these GPUs alone, and lets it take their memory as it needs it.

    Raises:
        RuntimeError: If it has started with others.
    """
    tf.config.set_visible_devices(gpus, "GPU")
    if GROWTH_VARIABLE not in os.environ:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)


def _make_cpus(count: int) -> list[Any]:
    """`count` logical CPU devices; they can be made only before TensorFlow starts."""
    with suppress(RuntimeError):  # TensorFlow has started, and the GPUs with it
        _claim_gpus([])
    cpu = tf.config.list_physical_devices("CPU")[0]
    if len(tf.config.get_logical_device_configuration(cpu) or [None]) < count:
        try:
            # Replicas wait for one another, and a waiting one may hold a thread.
            tf.config.threading.set_inter_op_parallelism_threads(max(os.cpu_count() or 1, 4 * count))
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
        except RuntimeError:
            there = len(tf.config.list_logical_devices("CPU"))
            raise ConfigError(
                f"devices=cpu:{count} came too late: TensorFlow has already started with {there} logical "
                "CPU device(s) in this process. Start the run in a process of its own."
            ) from None
    return list(tf.config.list_logical_devices("CPU"))[:count]


def _choose_gpus(devices: str) -> list[Any]:
    indices = [int(index) for index in devices.removeprefix("gpu:").split(",")]
    there = tf.config.list_physical_devices("GPU")
    if not set(indices) <= set(range(len(there))) or len(set(indices)) < len(indices):
        known = f"gpu:{','.join(str(index) for index in range(len(there)))}" if there else "no GPU"
        raise ConfigError(
            f"devices={devices} cannot be had: this machine has {known}. "
            "Expected GPUs that are there, each once, "
            "or logical CPU devices, which are always at hand: --devices cpu:2."
        )
    return [there[index] for index in indices]


def _take_gpus(devices: str) -> list[Any]:
    """The GPUs of these numbers; the memory of the others is left alone where TensorFlow has not started."""
    wanted = _choose_gpus(devices)
    try:
        _claim_gpus(wanted)
        return list(tf.config.list_logical_devices("GPU"))
    except RuntimeError:  # started already: all that were visible then have a logical device each
        visible = tf.config.get_visible_devices("GPU")
        return [tf.config.list_logical_devices("GPU")[visible.index(gpu)] for gpu in wanted]
