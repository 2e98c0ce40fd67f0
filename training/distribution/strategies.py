"""Selects the distribution strategy of a run."""

import math

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import CLUSTERED, ExperimentConfig
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
    """Builds the strategy `name` of an experiment; call it before TensorFlow starts.

    In a cluster `auto` trains asynchronously if there are parameter servers, otherwise synchronously. On one
    machine it mirrors over several devices, or uses the only one; without `devices` that is one logical CPU
    device. `mirrored` and `central-storage` use all devices, `single` the first. Raises a `ConfigError` if
    machine or cluster do not support the strategy or the devices.
    """
    name = check_strategy(name, devices, cluster)
    if cluster is None:
        return _local(name, devices)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        _cluster_spec(cluster),
        task_type=cluster.task,
        task_id=cluster.index,
        rpc_layer="grpc",
        num_accelerators={"GPU": select_gpus(devices)},
    )
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
        ConfigError: If it is not divisible by the replicas times the parts of each stage's accumulation.
    """
    size, replicas = config.batch_size, strategy.num_replicas_in_sync
    all_parts = [stage.accumulate for _, stage in config.stages if stage.steps]
    if config.data.drop_remainder:
        size = size - size % (replicas * math.lcm(*all_parts)) or size
    for parts in all_parts:
        if size % (replicas * parts):
            accumulated = f" times accumulate={parts}" if parts > 1 else ""
            expected = -(-size // (replicas * parts)) * replicas * parts
            raise ConfigError(
                f"batch_size={size} is not divisible by the {replicas} replicas{accumulated}. Expected a "
                f"multiple: set --batch-size to {expected}, or drop the remainder of each batch with "
                "--data.drop-remainder."
            )
    return size


def check_strategy(name: str, devices: str | None, cluster: Cluster | None) -> str:
    """Returns the strategy that `name` means in this cluster, without starting TensorFlow.
    Raises a `ConfigError` if cluster or machine do not support it.
    """
    if cluster is None:
        if name in CLUSTERED:
            servers = " --ps 1" if name == "parameter-server" else ""
            raise ConfigError(
                f"strategy={name} needs several processes, but TF_CONFIG contains no others. Set TF_CONFIG "
                f"in each process, or try it on this machine: python -m training launch --workers 2{servers} "
                "…"
            )
        return name
    needed = "parameter-server" if cluster.has_parameter_servers else "multi-worker"
    if name not in ("auto", needed):
        message = (
            f"strategy={name} does not fit TF_CONFIG: {cluster.describe()}. Expected strategy={needed} or "
            "auto; for a run of this process only, unset TF_CONFIG."
        )
        if name == "multi-worker":
            message += (
                " For synchronous training remove 'ps' from TF_CONFIG: each worker then stores the weights. "
                "On one machine strategy=central-storage stores them on the CPU."
            )
        raise ConfigError(message)
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


def _cluster_spec(cluster: Cluster) -> tf.train.ClusterSpec:
    return tf.train.ClusterSpec({job: list(tasks) for job, tasks in cluster.jobs.items()})


def serve(cluster: Cluster, devices: str | None) -> None:
    """Runs a worker or parameter server for the coordinator; never returns."""
    select_gpus(devices)
    tf.distribute.Server(_cluster_spec(cluster), cluster.task, cluster.index, protocol="grpc").join()
