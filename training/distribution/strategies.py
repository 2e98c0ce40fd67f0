"""Selects the distribution strategy of a run."""

import math

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import ExperimentConfig
from training.distribution.cluster import Cluster
from training.distribution.devices import find_devices, select_gpus

NAMES = {
    tf.distribute.OneDeviceStrategy: "single",
    tf.distribute.MirroredStrategy: "mirrored",
    tf.distribute.experimental.CentralStorageStrategy: "central-storage",
    tf.distribute.MultiWorkerMirroredStrategy: "multi-worker",
    tf.distribute.ParameterServerStrategy: "parameter-server",
}


def choose_strategy(
    name: str, devices: str | None = None, cluster: Cluster | None = None
) -> tf.distribute.Strategy:
    """Builds the strategy `name`; call it before TensorFlow starts.

    In a cluster `auto` trains asynchronously if there are parameter servers, otherwise synchronously. On one
    machine it mirrors over several devices, or uses the only one. `mirrored` and `central-storage` use all
    devices, `single` the first.

    Args:
        name: A value of `ExperimentConfig.strategy`.
        devices: See `find_devices`; for None `auto` uses one logical CPU device.
        cluster: The processes of the run; None = only this one.

    Raises:
        ConfigError: If machine or cluster do not support the strategy or the devices.
    """
    name = check_strategy(name, devices, cluster)
    if cluster is None:
        return _local(name, devices)
    resolver = _resolver(cluster, select_gpus(devices))
    if name == "parameter-server":
        return tf.distribute.ParameterServerStrategy(resolver)
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def describe_strategy(strategy: tf.distribute.Strategy, cluster: Cluster | None = None) -> str:
    """Returns strategy and devices for the terminal: `mirrored on 2 × GPU`."""
    if cluster is not None:
        return f"{NAMES[type(strategy)]} on {cluster.describe()}"
    kind = tf.DeviceSpec.from_string(strategy.extended.worker_devices[0]).device_type
    return f"{NAMES[type(strategy)]} on {strategy.num_replicas_in_sync} × {kind}"


def divisible_batch_size(config: ExperimentConfig, strategy: tf.distribute.Strategy) -> int:
    """Returns the global batch size, reduced to a divisible one with `drop_remainder`.

    Raises:
        ConfigError: If it is not divisible by replicas and parts; see `check_batch_size`.
    """
    size, replicas = config.batch_size, strategy.num_replicas_in_sync
    parts = [stage.accumulate for _, stage in config.stages if stage.steps]
    if config.data.drop_remainder:
        size = size - size % (replicas * math.lcm(*parts)) or size
    for count in parts:
        check_batch_size(size, strategy, count)
    return size


def check_batch_size(batch_size: int, strategy: tf.distribute.Strategy, parts: int = 1) -> None:
    """Checks that `batch_size` is a multiple of the number of replicas times `parts`.

    Raises:
        ConfigError: If it is not.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % (replicas * parts):
        accumulated = f" times accumulate={parts}" if parts > 1 else ""
        expected = -(-batch_size // (replicas * parts)) * replicas * parts
        raise ConfigError(
            f"batch_size={batch_size} is not divisible by the {replicas} replicas{accumulated}. Expected a "
            f"multiple: set --batch-size to {expected}, or drop the remainder of each batch with "
            "--data.drop-remainder."
        )


def check_strategy(name: str, devices: str | None, cluster: Cluster | None) -> str:
    """Returns the strategy that `name` means in this cluster, without starting TensorFlow.

    Raises:
        ConfigError: If cluster or machine do not support it.
    """
    if cluster is None:
        if name in ("multi-worker", "parameter-server"):
            servers = " --ps 1" if name == "parameter-server" else ""
            raise ConfigError(
                f"strategy={name} needs several processes, but TF_CONFIG contains no others. Set TF_CONFIG "
                f"in each process, or try it on this machine: python -m training launch --workers 2{servers} "
                "…"
            )
        return name
    needed = "parameter-server" if cluster.has_parameter_servers else "multi-worker"
    if name not in ("auto", needed):
        synchronous = (
            " TensorFlow 2 does not train synchronously with parameter servers. For synchronous training "
            "remove 'ps' from TF_CONFIG: each worker then stores the weights. On one machine "
            "strategy=central-storage stores them on the CPU."
        )
        raise ConfigError(
            f"strategy={name} does not fit TF_CONFIG: {cluster.describe()}. Expected strategy={needed} or "
            "auto; for a run of this process only, unset TF_CONFIG."
            f"{synchronous if name == 'multi-worker' else ''}"
        )
    if devices is not None and devices.startswith("cpu:") and devices != "cpu:1":
        raise ConfigError(
            f"devices={devices}: TensorFlow runs one replica per worker on CPUs. Expected cpu:1 or GPUs; for "
            "more replicas start more workers."
        )
    select_gpus(devices)
    return needed


def _local(name: str, devices: str | None) -> tf.distribute.Strategy:
    names = find_devices(devices, single=name == "single")
    if name == "single" and devices is not None and len(names) > 1:
        raise ConfigError(
            f"strategy=single uses one device, but devices={devices} are {len(names)}. Select one device, or "
            "set --strategy mirrored or central-storage."
        )
    on_cpu = "CPU" in names[0]
    if name == "central-storage":
        return tf.distribute.experimental.CentralStorageStrategy(names, "/cpu:0")
    if name == "mirrored" or (name == "auto" and len(names) > 1 and (devices is not None or not on_cpu)):
        # Collective operations, the default, fail between CPU devices: each merges them differently.
        return tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice() if on_cpu else None)
    return tf.distribute.OneDeviceStrategy(names[0])


def _resolver(cluster: Cluster, gpus: int) -> tf.distribute.cluster_resolver.ClusterResolver:
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({job: list(tasks) for job, tasks in cluster.jobs.items()}),
        task_type=cluster.task,
        task_id=cluster.index,
        rpc_layer="grpc",
        num_accelerators={"GPU": gpus},
    )


def serve(cluster: Cluster, devices: str | None) -> None:
    """Runs a worker or parameter server for the coordinator; never returns."""
    select_gpus(devices)
    server = tf.distribute.Server(
        tf.train.ClusterSpec({job: list(tasks) for job, tasks in cluster.jobs.items()}),
        job_name=cluster.task,
        task_index=cluster.index,
        protocol="grpc",
        start=True,
    )
    server.join()
