"""The one place where the distribution strategy of a run is chosen."""

import tensorflow as tf

from segdec.errors import ConfigError


def choose_strategy(name: str) -> tf.distribute.Strategy:
    """The strategy called `name` on the devices at hand.

    `auto` takes all GPUs when there are several, and the one device there is otherwise.
    `mirrored` without a GPU takes the logical CPU devices.
    """
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        devices = gpus or tf.config.list_logical_devices("CPU")
        # Between CPU devices the default, collective operations, are merged differently on each and fail.
        reduction = None if gpus else tf.distribute.ReductionToOneDevice()
        return tf.distribute.MirroredStrategy([device.name for device in devices], reduction)
    return tf.distribute.OneDeviceStrategy(gpus[0].name if gpus else "/cpu:0")


def check_batch_size(batch_size: int, strategy: tf.distribute.Strategy) -> None:
    """Refuses a global batch that cannot be split evenly.

    Raises:
        ConfigError: If `batch_size` is not a multiple of the number of replicas.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise ConfigError(
            f"batch_size={batch_size} does not divide by the {replicas} replicas. "
            f"Expected a multiple: set --batch-size to {-(-batch_size // replicas) * replicas}."
        )
