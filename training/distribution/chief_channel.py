"""Messages from the chief of a synchronous cluster to the other processes."""

import socket
import struct
from collections.abc import Sequence

from training.distribution.interruption import PeerLostError

LENGTH = struct.Struct("!Q")
"""Length of a message, before its bytes."""

CHUNK_BYTES = 1 << 20

LOST_AFTER_S = 60
"""Time after which a machine that does not answer is lost, s. A process that ends is noticed at once."""


class ChiefChannel:
    """Connections between the chief and the other processes: those of all others, or the one to the chief."""

    def __init__(self, sockets: Sequence[socket.socket], *, is_chief: bool) -> None:
        self._sockets, self._is_chief = tuple(sockets), is_chief
        for connection in self._sockets:
            connection.settimeout(None)
            _detect_lost_machine(connection)

    def broadcast(self, message: bytes) -> bytes:
        """Sends the message of the chief to all; returns that of the chief. The others' own one is ignored.
        Raises a `PeerLostError` if a connection was closed.
        """
        try:
            return self._send(message) if self._is_chief else self._receive()
        except OSError as error:
            lost = "a process" if self._is_chief else "the chief"
            raise PeerLostError(f"{lost} was lost ({error.strerror})") from error

    def close(self) -> None:
        """Closes the connections."""
        for connection in self._sockets:
            connection.close()

    def _send(self, message: bytes) -> bytes:
        for connection in self._sockets:
            connection.sendall(LENGTH.pack(len(message)))
            connection.sendall(message)
        return message

    def _receive(self) -> bytes:
        (connection,) = self._sockets
        (length,) = LENGTH.unpack(_receive_exactly(connection, LENGTH.size))
        return _receive_exactly(connection, length)


def _receive_exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(min(CHUNK_BYTES, count - len(received)))
        if not chunk:
            raise PeerLostError("the chief has ended")
        received += chunk
    return bytes(received)


def _detect_lost_machine(connection: socket.socket) -> None:
    """Sends keep-alive packets: nothing else may be sent for as long as a validation takes."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    options = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 4}
    options["TCP_USER_TIMEOUT"] = 1000 * LOST_AFTER_S
    for name, value in options.items():
        if hasattr(socket, name):  # not on every operating system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
