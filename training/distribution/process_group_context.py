"""The processes and devices of a run: how they find together, and what the processes agree on."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import tensorflow as tf

from segdec.errors import ConfigError
from training.config import ExperimentConfig
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
"""What TensorFlow raises when another process of the cluster has gone."""


class ProcessGroupContext:
    """The processes that train together, seen from one of them; a process alone answers itself.

    `any`, `wait` and `check_same` are collective: all processes that train in step call them at the same
    place.

    Args:
        config: Names strategy and devices.
        cluster: The processes; None = this one alone.

    Attributes:
        strategy: Of the run.
        coordinator: Sends the steps of asynchronous training to the workers; None in other training.
        workers: Number of processes that compute gradients.
        is_chief: Whether this process writes, validates and decides.
        fed_replicas: How many replicas, or workers of asynchronous training, this process reads images for.

    Raises:
        ConfigError: If machine or cluster cannot give what `config` names.
        PeerLostError: If a process of the cluster does not come.
    """

    def __init__(self, config: ExperimentConfig, cluster: Cluster | None) -> None:
        asynchronous = cluster is not None and cluster.has_parameter_servers
        check_strategy(config.strategy, config.devices, cluster)
        if cluster is not None:
            (wait_for_servers if asynchronous else wait_for_peers)(cluster, config.cluster_timeout_s)
        self._cluster = cluster
        self._in_step = cluster is not None and not asynchronous
        self.is_chief = cluster is None or cluster.is_chief
        self.workers = 1 if cluster is None else cluster.workers
        self.strategy = choose_strategy(config.strategy, config.devices, cluster)
        restore_signal_handlers()
        self.coordinator = (
            tf.distribute.coordinator.ClusterCoordinator(self.strategy) if asynchronous else None
        )
        self.input_replicas = (
            self.workers if asynchronous else self.strategy.num_replicas_in_sync // self.workers
        )
        self._total: Callable[[tf.Tensor], tf.Tensor] = tf.function(
            lambda number: self.strategy.reduce(
                "SUM", self.strategy.run(tf.identity, args=(number,)), axis=None
            )
        )

    def __str__(self) -> str:
        """Returns what the run takes, for the terminal."""
        return describe_strategy(self.strategy, self._cluster)

    def any(self, flag: bool) -> bool:
        """Returns whether any process says yes."""
        if not self._in_step:
            return flag
        with self.translate_peer_errors():
            return int(self._total(tf.constant(int(flag)))) > 0

    def wait(self) -> None:
        """Returns when all processes have come here."""
        self.any(False)

    def check_same(self, digest: str, what: str) -> None:
        """Refuses to go on if the processes differ in something that must be the same in all.

        Args:
            digest: Hexadecimal digest of it.
            what: What it is, for the message.

        Raises:
            ConfigError: If the digests differ, in every process.
        """
        if not self._in_step:
            return
        number = tf.constant([int(digest[:15], 16)])
        with self.translate_peer_errors():
            per_replica = self.strategy.run(tf.identity, args=(number,))
            numbers = self.strategy.gather(per_replica, axis=0).numpy().tolist()
        if len(set(numbers)) > 1:
            with suppress(PeerLostError):
                self.wait()  # who left now would end the others before they know why
            raise ConfigError(
                f"The processes of the cluster differ in {what}: {len(set(numbers))} different ones among "
                f"{len(numbers)} replicas. Expected the same in all: start them with one experiment file, "
                "the same flags and data, and a run folder that all of them reach."
            )

    @contextmanager
    def translate_peer_errors(self) -> Iterator[None]:
        """Turns TensorFlow's word for a lost process into ours, within the block.

        Raises:
            PeerLostError: If a process of the cluster goes.
        """
        try:
            yield
        except PEER_ERRORS as error:
            if self._cluster is None:
                raise
            raise PeerLostError(_reason(str(error.message))) from error


def _reason(message: str) -> str:
    """The line that says what happened, without the names of TensorFlow's nodes."""
    lines = [line for line in message.splitlines() if line.strip()] or ["unknown reason"]
    telling = [line for line in lines if re.search("aborted|connect|closed|unhealthy", line)]
    return re.sub(r"\{\{.*?\}\}", "", (telling or lines)[0]).strip(" .")[:200]
