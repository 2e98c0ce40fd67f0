"""The one place where the distribution strategy of a run, and its devices, are chosen."""

import os
import re
from typing import Any

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import DEVICES

NAMES = {
    tf.distribute.OneDeviceStrategy: "single",
    tf.distribute.MirroredStrategy: "mirrored",
    tf.distribute.experimental.CentralStorageStrategy: "central-storage",
}


def choose_strategy(name: str, devices: str | None = None) -> tf.distribute.Strategy:
    """The strategy called `name`. Call it before anything else makes TensorFlow start.

    `auto` mirrors over all devices when there are several, and takes the one there is otherwise.
    `mirrored` and `central-storage` take all of them; `single` takes the first.

    Args:
        name: `auto`, `single`, `mirrored` or `central-storage`.
        devices: `cpu:4` (four logical devices), `gpu:0,1` (these GPUs), or None: all GPUs, and where
            there is none the logical CPU devices that are already there (`auto` takes one of them).

    Raises:
        ConfigError: If the machine cannot give the devices, or `single` is to run on several.
    """
    names = [device.name for device in _find_devices(devices)]
    if name == "single" and devices is not None and len(names) > 1:
        raise ConfigError(
            f"strategy=single runs on one device, devices={devices} gives {len(names)}. "
            "Name one device, or set --strategy mirrored or central-storage."
        )
    on_cpu = "CPU" in names[0]
    if name == "central-storage":
        return tf.distribute.experimental.CentralStorageStrategy(names, "/cpu:0")
    if name == "mirrored" or (name == "auto" and len(names) > 1 and (devices is not None or not on_cpu)):
        # Between CPU devices the default, collective operations, are merged differently on each and fail.
        return tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice() if on_cpu else None)
    return tf.distribute.OneDeviceStrategy(names[0])


def describe_strategy(strategy: tf.distribute.Strategy) -> str:
    """What a run takes, for the terminal: `mirrored on 2 × GPU`."""
    kind = tf.DeviceSpec.from_string(strategy.extended.worker_devices[0]).device_type
    return f"{NAMES[type(strategy)]} on {strategy.num_replicas_in_sync} × {kind}"


def check_batch_size(batch_size: int, strategy: tf.distribute.Strategy, parts: int = 1) -> None:
    """Refuses a global batch that cannot be split evenly.

    Raises:
        ConfigError: If `batch_size` is not a multiple of the number of replicas times `parts`.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % (replicas * parts):
        accumulated = f" times accumulate={parts}" if parts > 1 else ""
        expected = -(-batch_size // (replicas * parts)) * replicas * parts
        raise ConfigError(
            f"batch_size={batch_size} does not divide by the {replicas} replicas{accumulated}. "
            f"Expected a multiple: set --batch-size to {expected}."
        )


def _find_devices(devices: str | None) -> list[Any]:
    if devices is None:
        return list(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU"))
    kind, _, which = devices.partition(":")
    if not re.fullmatch(DEVICES, devices):
        raise ConfigError(
            f"devices={devices!r} names no devices. Expected 'cpu:4' (four logical CPU devices) or "
            "'gpu:0,1' (the GPUs of these numbers)."
        )
    return _make_cpus(int(which)) if kind == "cpu" else _take_gpus([int(index) for index in which.split(",")])


def _make_cpus(count: int) -> list[Any]:
    """`count` logical CPU devices; they can be made only before TensorFlow starts."""
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


def _take_gpus(indices: list[int]) -> list[Any]:
    """The GPUs of these numbers; the memory of the others is left alone where TensorFlow has not started."""
    there = tf.config.list_physical_devices("GPU")
    if not set(indices) <= set(range(len(there))) or len(set(indices)) < len(indices):
        known = f"gpu:{','.join(str(index) for index in range(len(there)))}" if there else "no GPU"
        raise ConfigError(
            f"devices=gpu:{','.join(map(str, indices))} cannot be had: this machine has {known}. "
            "Expected GPUs that are there, each once, "
            "or logical CPU devices, which are always at hand: --devices cpu:2."
        )
    wanted = [there[index] for index in indices]
    try:
        tf.config.set_visible_devices(wanted, "GPU")
        return list(tf.config.list_logical_devices("GPU"))
    except RuntimeError:  # started already: all that were visible then have a logical device each
        visible = tf.config.get_visible_devices("GPU")
        return [tf.config.list_logical_devices("GPU")[visible.index(gpu)] for gpu in wanted]
