"""Waits for the other processes of a cluster before TensorFlow starts.

If a process is missing, TensorFlow blocks without a message, holds the GIL and ignores SIGTERM. Here each
process connects to the chief, sends its name and waits; once all names have arrived, the chief answers. The
connections stay open as the channel of the chief.
"""

import socket
import time
from contextlib import ExitStack, suppress

from training.distribution.chief_channel import ChiefChannel
from training.distribution.cluster import Cluster, listen
from training.distribution.interruption import PeerLostError

GO = b"go\n"
HELLO_BYTES = 64
"""Maximum length of a task's name."""

PAUSE_S = 0.2
"""Time between two attempts to connect, s."""

NAME_TIMEOUT_S = 2.0
"""Time that the chief waits for a name, s: a silent foreign connection must not delay the others."""


def wait_for_peers(cluster: Cluster, timeout_s: float) -> ChiefChannel:
    """Waits for all processes of a synchronous cluster; returns the connections between the chief and them.

    Afterwards another socket can listen at the chief's address.

    Raises:
        ConfigError: If the chief's address is in use.
        PeerLostError: If processes are missing after `timeout_s`, or the chief is not waiting.
    """
    deadline = time.monotonic() + timeout_s
    if cluster.is_chief:
        return ChiefChannel(_accept_peers(cluster, deadline), is_chief=True)
    return ChiefChannel([_connect_to_chief(cluster, deadline)], is_chief=False)


def wait_for_servers(cluster: Cluster, timeout_s: float) -> None:
    """Waits until all workers and parameter servers of an asynchronous cluster accept connections.
    Raises a `PeerLostError` if some are missing after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    for job in ("ps", "worker"):
        for index, address in enumerate(cluster.jobs[job]):
            _connect(address, f"{job} {index}", deadline).close()


def _accept_peers(cluster: Cluster, deadline: float) -> list[socket.socket]:
    """Waits in the chief until all others have connected, then answers all of them."""
    others = [name for name in cluster.trainers if name != cluster.name]
    with ExitStack() as open_sockets, listen(cluster) as listener:
        callers: dict[str, socket.socket] = {}
        while missing := sorted(set(others) - callers.keys()):
            listener.settimeout(_remaining(deadline, f"{', '.join(missing)} did not connect"))
            try:
                caller = open_sockets.enter_context(listener.accept()[0])
            except TimeoutError:
                continue  # the next iteration reports the missing processes
            caller.settimeout(NAME_TIMEOUT_S)
            name = _hello(caller)
            if name in callers:  # a restarted process connects twice
                callers[name].close()
            callers[name] = caller
        # A process that continued earlier would already block in TensorFlow, which ignores signals.
        for name in others:
            with suppress(OSError):  # TensorFlow reports lost processes
                callers[name].sendall(GO)
        for name, caller in callers.items():
            if name not in others:
                caller.close()
        open_sockets.pop_all()
    return [callers[name] for name in others]


def _connect_to_chief(cluster: Cluster, deadline: float) -> socket.socket:
    """Connects to the chief, sends the name of this process, and waits for the answer."""
    with ExitStack() as open_socket:
        chief = open_socket.enter_context(_connect(cluster.chief_address, "the chief", deadline))
        chief.sendall(f"{cluster.name}\n".encode())
        chief.settimeout(_remaining(deadline, "not all processes connected to the chief"))
        try:
            answer = chief.recv(len(GO))
        except TimeoutError:
            raise PeerLostError("not all processes connected to the chief in time") from None
        except OSError as error:
            raise PeerLostError(f"the chief was lost ({error.strerror})") from error
        # The port may belong to another run, or to TensorFlow in a chief that has already started.
        if answer != GO:
            raise PeerLostError(
                f"the process at {cluster.chief_address} is not waiting for others: it has exited, or is "
                "already training"
            )
        open_socket.pop_all()
    return chief


def _connect(address: str, name: str, deadline: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    while True:
        remaining = _remaining(deadline, f"{name} does not answer at {address}")
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=remaining)
        except OSError:  # not started yet: the connection is refused or the host name is unknown
            time.sleep(min(PAUSE_S, remaining))


def _hello(caller: socket.socket) -> str:
    """The name that a process sends; empty for a foreign connection, such as a port scan."""
    with suppress(OSError):
        return caller.recv(HELLO_BYTES).decode(errors="replace").strip()
    return ""


def _remaining(deadline: float, reason: str) -> float:
    """Seconds until the deadline; raises PeerLostError with `reason` after it."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise PeerLostError(f"{reason} in time")
    return remaining
