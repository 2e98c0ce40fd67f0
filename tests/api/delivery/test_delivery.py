"""The thread that sends, and services that are killed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select

from api.database.database import open_database
from api.delivery.delivery import Delivery
from api.delivery.outbox_metrics import OutboxMetrics
from api.record.tables import inspections, outbox
from tests.api.delivery.outbox_messages import RULES, UNREACHABLE, FakeSink
from tests.api.record.databases import sqlite_only
from tests.api.record.recording_clients import Clients, RecordingService


class Receiver:
    """A server that accepts webhooks, and stores their events in the order in which they arrive."""

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

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/events"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    threading.Thread(target=receiver.server.serve_forever).start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@sqlite_only
def test_close_sends_what_it_can_and_leaves_the_rest(engine, line, metrics):
    sink = FakeSink()
    sink.failures["b"] = UNREACHABLE
    delivery = Delivery(open_database(str(engine.url)), [sink], RULES, OutboxMetrics(metrics, ["fake"]))
    line.inspect("a", "b", "a")
    delivery.start()
    delivery.close()
    assert (sink.taken, sink.is_closed, line.left()) == (["a-1", "a-3"], True, ["b-2"])


@pytest.mark.slow
@sqlite_only
def test_every_inspection_is_reported_after_a_kill_of_the_service(database_url, tmp_path, receiver):
    folder, clients, flags = tmp_path / "record", Clients(), ("--outbox-webhook", receiver.url)
    service = RecordingService(folder, database_url, *flags)
    clients.start(service)
    clients.wait_for_answers(20)
    service.kill()
    service = RecordingService(folder, database_url, *flags)
    clients.url = service.url
    clients.wait_for_answers(20)
    clients.end()
    check_events(database_url, receiver)
    service.stop()


def check_events(url: str, receiver: Receiver) -> None:
    """Waits until the outbox is empty. Every inspection has an event, in the order of the record."""
    engine = open_database(url)
    with engine.connect() as connection:
        while connection.execute(select(outbox.c.id).limit(1)).first() is not None:
            connection.rollback()
            threading.Event().wait(0.05)
        stored = connection.execute(select(inspections.c.id).order_by(inspections.c.id)).scalars().all()
    engine.dispose()
    first = {event["id"]: event["data"]["record_id"] for event in receiver.events}
    assert list(first.values()) == stored
