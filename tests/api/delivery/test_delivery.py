"""The thread that sends, and the service that has it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select

from api.delivery.delivery import Delivery
from api.delivery.outbox_metrics import OutboxMetrics
from api.records.database import migrate, open_database
from api.records.tables import inspections, outbox
from tests.api.delivery.outbox_messages import RULES, UNREACHABLE, EventSource, FakeSink
from tests.api.records.recording_clients import Clients, start

KILLS = 2


class Receiver:
    """Takes webhooks.

    Attributes:
        events: In the order in which they came.
        url: Of it.
    """

    def __init__(self) -> None:
        events = self.events = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_a_stop_sends_what_can_be_sent_and_leaves_the_rest(tmp_path, metrics):
    url = f"sqlite:///{tmp_path}/record.db"
    engine, sink = open_database(url), FakeSink()
    migrate(engine)
    line = EventSource(engine)
    sink.failures["b"] = UNREACHABLE
    delivery = Delivery(open_database(url), [sink], RULES, OutboxMetrics(metrics, ["fake"]))
    line.inspect("a", "b", "a")
    delivery.start()
    delivery.close()
    assert sink.taken == ["a-1", "a-3"]
    assert sink.is_closed
    assert line.left() == ["b-2"]
    engine.dispose()


@pytest.mark.slow
def test_every_inspection_is_told_though_the_service_is_killed(tmp_path, receiver):
    url, folder = f"sqlite:///{tmp_path}/record.db", tmp_path / "kept"
    clients, flags = Clients(), ("--outbox-webhook", receiver.url)
    process, clients.url = start(folder, url, *flags)
    clients.start()
    for _ in range(KILLS):
        clients.wait_for_answers(20)
        process.kill()
        process.wait()
        process.stdout.close()
        process, clients.url = start(folder, url, *flags)
    clients.wait_for_answers(20)
    clients.end()
    engine = open_database(url)
    wait_for_empty(engine)
    process.terminate()
    process.wait()
    process.stdout.close()
    check_told(engine, receiver)


@pytest.mark.slow
def test_when_the_replica_that_sends_is_killed_the_other_goes_on(make_database, tmp_path, receiver):
    url, folder, clients = make_database(), tmp_path / "kept", Clients()
    replicas = [start(folder, url, "--outbox-webhook", receiver.url) for _ in range(2)]
    clients.url = replicas[0][1]
    clients.start()
    clients.wait_for_answers(20)
    replicas[0][0].kill()
    clients.url = replicas[1][1]
    clients.wait_for_answers(20)
    clients.end()
    engine = open_database(url)
    wait_for_empty(engine)
    for process, _ in replicas:
        process.terminate()
        process.wait()
        process.stdout.close()
    check_told(engine, receiver)


def check_told(engine, receiver: Receiver) -> None:
    """Every inspection was told, each once by its id, in the order of the record."""
    with engine.connect() as connection:
        kept = connection.execute(select(inspections.c.id).order_by(inspections.c.id)).scalars().all()
    engine.dispose()
    first = {event["id"]: event["data"]["record_id"] for event in receiver.events}
    assert list(first.values()) == kept


def wait_for_empty(engine) -> None:
    while True:
        with engine.connect() as connection:
            if connection.execute(select(outbox.c.id).limit(1)).first() is None:
                return
        threading.Event().wait(0.05)
