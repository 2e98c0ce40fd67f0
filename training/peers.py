"""What the processes of a synchronous cluster agree on: when to stop, when to wait, what they train."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from segdec.errors import ConfigError
from training.interruption import PeerLostError

LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)
"""What TensorFlow raises when another process of the cluster has gone."""


class Peers:
    """The processes that train together, seen from one of them; a process alone answers itself.

    Every method is a collective operation: all processes call it at the same place.

    Args:
        strategy: What the processes train under.
        together: Whether several processes take the same steps.
    """

    def __init__(self, strategy: tf.distribute.Strategy, *, together: bool) -> None:
        self._strategy = strategy
        self._together = together
        self._total: Callable[[tf.Tensor], tf.Tensor] = tf.function(
            lambda number: strategy.reduce("SUM", strategy.run(tf.identity, args=(number,)), axis=None)
        )

    def any(self, flag: bool) -> bool:
        """Whether any process says yes."""
        return int(self._total(tf.constant(int(flag)))) > 0 if self._together else flag

    def wait(self) -> None:
        """Returns when all processes have come here."""
        self.any(False)

    def check_same(self, digest: str, what: str) -> None:
        """Refuses to go on when the processes differ in something that all must share.

        Args:
            digest: Hexadecimal digest of it.
            what: What it is, for the message.

        Raises:
            ConfigError: In every process, if the digests differ.
        """
        if not self._together:
            return
        number = tf.constant([int(digest[:15], 16)])
        per_replica = self._strategy.run(tf.identity, args=(number,))
        numbers = self._strategy.gather(per_replica, axis=0).numpy().tolist()
        if len(set(numbers)) > 1:
            raise ConfigError(
                f"The processes of the cluster differ in {what}: {len(set(numbers))} different ones among "
                f"{len(numbers)} replicas. Start all of them with the same experiment file, flags and data."
            )


@contextmanager
def peers_needed(clustered: bool) -> Iterator[Any]:
    """Within the block, TensorFlow's word for a lost process becomes ours.

    Raises:
        PeerLostError: If a process of the cluster goes.
    """
    try:
        yield
    except LOST as error:
        if not clustered:
            raise
        raise PeerLostError(_reason(str(error.message))) from error


def _reason(message: str) -> str:
    """The line that says what happened, without the names of TensorFlow's nodes."""
    lines = [line for line in message.splitlines() if line.strip()] or ["unknown reason"]
    telling = [line for line in lines if re.search("aborted|connect|closed|unhealthy", line)]
    return re.sub(r"\{\{.*?\}\}", "", (telling or lines)[0]).strip(" .")[:200]
