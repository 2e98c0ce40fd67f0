"""Exports whose clients do not read."""

import socket
import time
from contextlib import closing

import httpx

from api.http.export_limit import MAX_EXPORTS
from tests.api.live_server import served

PATH = "/v1/records/days/2026-01-01"


def test_exports_that_nobody_reads_are_few_and_end_with_their_connections(make_app, folder, monkeypatch):
    def export_endlessly(*_):
        while True:
            yield bytes(10**6)

    monkeypatch.setattr("api.record.export_routes.export_table", export_endlessly)
    with served(make_app(record="required", record_folder=folder)) as address:
        url = "http://{}:{}{}".format(*address, PATH)
        unread = [socket.create_connection(address) for _ in range(MAX_EXPORTS)]
        for connection in unread:
            connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(12) == b"HTTP/1.1 200"
        answer = httpx.get(url)
        assert (answer.status_code, answer.json()["code"]) == (503, "exports_full")
        assert "Retry-After" in answer.headers
        unread.pop().close()
        status = 503
        while status == 503:
            time.sleep(0.02)
            with closing(socket.create_connection(address)) as connection:
                connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                status = int(connection.recv(12).split()[1])
        assert status == 200
        for connection in unread:
            connection.close()
