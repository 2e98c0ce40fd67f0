"""The processes and devices of a run, and the agreement between the processes."""

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import ExperimentConfig
from training.distribution.chief_channel import ChiefChannel
from training.distribution.cluster import Cluster
from training.distribution.interruption import PeerLostError, restore_signal_handlers
from training.distribution.rendezvous import wait_for_peers, wait_for_servers
from training.distribution.strategies import check_strategy, choose_strategy, describe_strategy

PEER_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)
"""TensorFlow's errors after the loss of another process of the cluster."""

_NUMBER = struct.Struct("!d")


class ProcessGroupContext:
    """The processes of a run; also works for a single process.

    `any`, `wait`, `check_same`, `broadcast` and `agree` are collective: all synchronous processes must call
    them at the same point.

    Attributes:
        coordinator: Schedules the steps of asynchronous training; otherwise None.
        workers: Number of processes that compute gradients.
        is_chief: Whether this process writes, validates and selects weights.
        input_replicas: Number of replicas, or workers of asynchronous training, that this process reads
            images for.

    Raises:
        ConfigError: If machine or cluster do not have what `config` requires.
        PeerLostError: If a process of the cluster does not connect.
    """

    def __init__(self, config: ExperimentConfig, cluster: Cluster | None) -> None:
        asynchronous = cluster is not None and cluster.has_parameter_servers
        check_strategy(config.strategy, config.devices, cluster)
        self._channel: ChiefChannel | None = None
        if cluster is not None and asynchronous:
            wait_for_servers(cluster, config.cluster_timeout_s)
        elif cluster is not None:
            self._channel = wait_for_peers(cluster, config.cluster_timeout_s)
        self._cluster = cluster
        self._synchronous = cluster is not None and not asynchronous
        self.is_chief = cluster is None or cluster.is_chief
        self.workers = 1 if cluster is None else cluster.workers
        self.strategy = choose_strategy(config.strategy, config.devices, cluster)
        restore_signal_handlers()
        self.coordinator = None
        self.input_replicas = self.strategy.num_replicas_in_sync // self.workers
        if asynchronous:
            self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)
            self.input_replicas = self.workers

        @tf.function
        def total(number: tf.Tensor) -> tf.Tensor:
            return self.strategy.reduce("SUM", self.strategy.run(tf.identity, args=(number,)), axis=None)

        self._total: Callable[[tf.Tensor], tf.Tensor] = total

    def __str__(self) -> str:
        """Returns strategy and devices for the terminal."""
        return describe_strategy(self.strategy, self._cluster)

    def any(self, flag: bool) -> bool:
        """Returns whether the flag is set in any process."""
        if not self._synchronous:
            return flag
        with self.translate_peer_errors():
            return int(self._total(tf.constant(int(flag)))) > 0

    def wait(self) -> None:
        """Waits for all processes."""
        self.any(False)

    @property
    def has_peers(self) -> bool:
        """Whether there are other synchronous processes."""
        return self._channel is not None

    def broadcast(self, message: bytes) -> bytes:
        """Returns the message of the chief in every process; that of the others is ignored.
        Raises a `PeerLostError` if a process was lost.
        """
        return message if self._channel is None else self._channel.broadcast(message)

    def agree(self, number: float) -> float:
        """Returns the number of the chief in every process."""
        (agreed,) = _NUMBER.unpack(self.broadcast(_NUMBER.pack(number)))
        return float(agreed)

    def check_same(self, digest: str, what: str) -> None:
        """Checks that a hexadecimal digest of `what` is equal in all processes.

        Raises:
            ConfigError: In every process, if the digests differ.
        """
        if not self._synchronous:
            return
        number = tf.constant([int(digest[:15], 16)])
        with self.translate_peer_errors():
            per_replica = self.strategy.run(tf.identity, args=(number,))
            numbers = self.strategy.gather(per_replica, axis=0).numpy().tolist()
        if len(set(numbers)) > 1:
            with suppress(PeerLostError):
                self.wait()  # all processes raise the same error before one of them exits
            raise ConfigError(
                f"The processes of the cluster differ in {what}: {len(set(numbers))} different ones among "
                f"{len(numbers)} replicas. Expected the same in all: start them with the same experiment "
                "file, flags, data and encoder weights."
            )

    @contextmanager
    def translate_peer_errors(self) -> Iterator[None]:
        """Converts TensorFlow's errors about a lost process within the block to PeerLostError."""
        try:
            yield
        except PEER_ERRORS as error:
            if self._cluster is None:
                raise
            raise PeerLostError(_reason(str(error.message))) from error


def _reason(message: str) -> str:
    """The line with the cause, without the names of TensorFlow's nodes."""
    lines = [line for line in message.splitlines() if line.strip()] or ["unknown reason"]
    causes = [line for line in lines if re.search("aborted|connect|closed|unhealthy", line)]
    return re.sub(r"\{\{.*?\}\}", "", (causes or lines)[0]).strip(" .")[:200]
