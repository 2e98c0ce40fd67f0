"""A client that reads slower than the kernel takes more data from the process."""

import socket
from contextlib import closing, suppress
from unittest import mock

from api.listener.unread_answers import ReadingCheck


def fill(sender):
    """Sends until the kernel takes no more."""
    sender.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            sender.send(bytes(2**16))


def test_a_slow_client_that_reads_is_not_ended():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        client = socket.create_connection(listener.getsockname())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        sender, _ = listener.accept()
    with closing(client), closing(sender):
        fill(sender)
        transport = mock.Mock(get_write_buffer_size=lambda: 7, get_extra_info=lambda _: sender)
        check = ReadingCheck(transport, 30.0, mock.Mock())
        unread = check.unread_bytes()
        assert unread > 7
        while check.unread_bytes() == unread:
            client.recv(2**12)
        assert 7 < check.unread_bytes() < unread
