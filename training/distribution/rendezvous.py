"""Waiting for the other processes of a cluster, before TensorFlow does so without end and without a word.

TensorFlow blocks where a process is missing: it holds Python's lock, swallows SIGTERM and names nobody.
Here a missing process is named, and a signal is heeded.

A cluster that trains in step meets at the chief: each other process calls it, says its name and waits; when
all names have come, the chief says go. A cluster with parameter servers needs no word: its workers and
servers listen for the chief anyway, so that it need only try whether they answer.
"""

import socket
import time
from contextlib import ExitStack, suppress

from segdec.errors import ConfigError
from training.distribution.cluster import Cluster
from training.distribution.interruption import PeerLostError

GO = b"go\n"
HELLO_BYTES = 64
"""More than any name of a task takes."""

PAUSE_S = 0.2
"""Between two attempts to reach a process that is not there yet."""

HELLO_S = 2.0
"""How long the chief listens to a caller: a stranger that says nothing must not hold up the others."""


def wait_for_peers(cluster: Cluster, timeout_s: float) -> None:
    """Returns in all processes of a synchronous cluster when all of them are there.

    Afterwards the chief's address is free for TensorFlow, which takes the same one.

    Raises:
        ConfigError: If the chief's own address cannot be taken.
        PeerLostError: If processes are missing after `timeout_s`, or the chief is not waiting.
    """
    until = time.monotonic() + timeout_s
    if cluster.is_chief:
        _gather(cluster, until)
    else:
        _call(cluster, until)


def wait_for_servers(cluster: Cluster, timeout_s: float) -> None:
    """Returns when every worker and parameter server of an asynchronous cluster accepts connections.

    Raises:
        PeerLostError: If some are missing after `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    for job in ("ps", "worker"):
        for index, address in enumerate(cluster.jobs[job]):
            _connect(address, f"{job} {index}", until).close()


def _gather(cluster: Cluster, until: float) -> None:
    """Waits as the chief until each of the others has called, then lets all of them go at once."""
    missing = {name for name in cluster.trainers if name != cluster.name}
    with ExitStack() as open_sockets:
        listener = open_sockets.enter_context(_listen(cluster.address))
        callers: list[socket.socket] = []
        while missing:
            listener.settimeout(_left(until, f"{', '.join(sorted(missing))} did not come"))
            try:
                caller = open_sockets.enter_context(listener.accept()[0])
            except TimeoutError:
                continue  # the next turn says who is missing
            caller.settimeout(HELLO_S)
            callers.append(caller)
            missing.discard(_hello(caller))  # a name twice, of a process started anew, counts once
        # Whoever went on before the last has come would be in TensorFlow by now, deaf to signals.
        for caller in callers:
            with suppress(OSError):  # TensorFlow notices a caller that went away
                caller.sendall(GO)


def _call(cluster: Cluster, until: float) -> None:
    """Calls the chief, says who this is, and waits for its word."""
    with _connect(cluster.chief_address, "the chief", until) as chief:
        chief.sendall(f"{cluster.name}\n".encode())
        chief.settimeout(_left(until, "not all processes came to the chief"))
        try:
            answer = chief.recv(len(GO))
        except TimeoutError:
            raise PeerLostError("not all processes came to the chief in time") from None
        except OSError as error:
            raise PeerLostError(f"the chief went away ({error.strerror})") from error
    # The port may be that of another run, or of TensorFlow in a chief that has gone on without this process.
    if answer != GO:
        raise PeerLostError(
            f"the process at {cluster.chief_address} is not waiting for others: it has gone, "
            "or is already training"
        )


def _connect(address: str, name: str, until: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    while True:
        left = _left(until, f"{name} does not answer at {address}")
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=left)
        except OSError:  # not there yet, as refused connections and unknown host names of a pod to come say
            time.sleep(min(PAUSE_S, left))


def _listen(address: str) -> socket.socket:
    """Listens on all interfaces: the host in `address` may be a name that others alone know."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        return socket.create_server(("", int(address.rpartition(":")[2])), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigError(
            f"The address {address} of this process cannot be taken: {error.strerror}. "
            "End the process that uses the port, or name another one in TF_CONFIG."
        ) from error


def _hello(caller: socket.socket) -> str:
    """The name a process calls itself; empty for a stranger, for example a port scan."""
    with suppress(OSError):
        return caller.recv(HELLO_BYTES).decode(errors="replace").strip()
    return ""


def _left(until: float, reason: str) -> float:
    """Seconds that are left until then; none left is an error for `reason`."""
    left = until - time.monotonic()
    if left <= 0:
        raise PeerLostError(f"{reason} in time")
    return left
