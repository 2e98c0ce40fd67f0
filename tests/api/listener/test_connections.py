"""Idle, too many, and unread connections, and those of a service that stops."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import httpx
import pytest
from fastapi.responses import Response

from tests.api.listener.test_http_protocol import LIVE, POST, Wire, length, send_and_block
from tests.api.live_server import served


def local_port(client: httpx.Client) -> int:
    """Sends a request; returns the port of the connection that it used."""
    stream = client.get("/livez").extensions["network_stream"]
    return stream.get_extra_info("client_addr")[1]


@pytest.mark.parametrize(
    ("settings", "idle_s", "kept"), [({}, 70, True), ({}, 76, False), ({"keep_alive_s": 5}, 6, False)]
)
def test_pooled_connection_is_used_again_until_the_keep_alive_time_ends(
    make_app, skipping_loop, settings, idle_s, kept
):
    """The default is longer than the 60 s of common proxies."""
    pool = httpx.Limits(keepalive_expiry=None)
    with (
        served(make_app(**settings)) as address,
        httpx.Client(base_url="http://{}:{}".format(*address), limits=pool) as client,
    ):
        before = local_port(client)
        skipping_loop.skip(idle_s)
        assert (local_port(client) == before) == kept


@contextmanager
def connections(address: tuple[str, int], count: int) -> Iterator[list[Wire]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Wire(address))) for _ in range(count)]


def is_answered(wire: Wire) -> bool:
    wire.send(LIVE)
    return wire.response().status == 200


def test_new_connection_replaces_the_one_that_is_idle_longest(make_app, predictor, part):
    with served(make_app(max_connections=3)) as address, connections(address, 3) as (busy, used, head):
        send_and_block(predictor, part, busy)
        assert is_answered(used)
        head.send(b"GET / HTTP/1.1\r\nHost: ")
        with connections(address, 1) as (first,):
            assert is_answered(first)
            assert head.response().problem() == (503, "connections_full")
            assert head.ended()
            assert is_answered(used)
            with connections(address, 1) as (second,):
                assert is_answered(second)
                assert first.ended()
                predictor.gate.set()
                assert busy.response().status == 200
                assert is_answered(used)


def test_connection_is_refused_if_all_others_are_busy(make_app, predictor, part, caplog):
    with served(make_app(max_connections=1)) as address, connections(address, 1) as (busy,):
        send_and_block(predictor, part, busy)
        with connections(address, 1) as (refused,):
            answer = refused.response()
            assert answer.problem() == (503, "connections_full")
            assert "--max-connections" in answer.body["detail"]
            assert (answer.headers["retry-after"], answer.headers["connection"]) == ("1", "close")
            assert refused.ended()
        predictor.gate.set()
        assert busy.response().status == 200
    assert "connections_full" in [vars(record).get("problem") for record in caplog.records]


def test_connections_that_come_at_once_are_answered_or_refused(make_app):
    with served(make_app(max_connections=2)) as address, connections(address, 6) as clients:
        *replaced, waiting, latest = clients
        assert is_answered(latest)  # so all connections are accepted
        for client in replaced:
            with suppress(ConnectionError):
                client.send(LIVE)
            answer = client.response()
            assert answer.problem() == (503, "connections_full")
            assert answer.headers["retry-after"] == "1"
            assert client.ended()
        assert is_answered(waiting)


def test_answer_that_nobody_reads_ends(make_app, skipping_loop, caplog):
    app, size = make_app(page=False), 50_000_000  # more than the kernel buffers
    app.router.add_route("/large", lambda _: Response(bytes(size)))
    with served(app) as address, socket.create_connection(address, timeout=30) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
        received = len(client.recv(1))
        for _ in range(3):  # what the kernel still takes counts as read
            skipping_loop.skip(31)
        assert "A client does not read its answer; its connection ends" in caplog.messages
        with suppress(ConnectionResetError):
            while piece := client.recv(2**20):
                received += len(piece)
    assert received < size


def test_every_answer_of_a_service_that_stops_ends_its_connection(make_app, predictor, part):
    app = make_app()
    with served(app) as address, connections(address, 3) as (busy, ready, refused):
        send_and_block(predictor, part, busy)
        app.state.service.drain()
        ready.send(LIVE)
        refused.send(POST, length(len(part)), part)
        answers = [refused.response(), ready.response()]
        predictor.gate.set()
        answers.append(busy.response())
        assert [answer.status for answer in answers] == [503, 200, 200]
        assert [answer.headers.get("connection") for answer in answers] == ["close"] * 3
        assert busy.ended()
        assert ready.ended()
        assert refused.ended()
