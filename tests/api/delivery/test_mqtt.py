"""Events at a Mosquitto broker."""

import asyncio
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import select

from api.delivery.delivery import Delivery
from api.delivery.mqtt import Mqtt, read_mqtt_url, topic_of
from api.delivery.mqtt_connection import Broker
from api.delivery.outbox_metrics import OutboxMetrics
from api.delivery.sink import DeliveryError, OutboxMessage
from api.record.tables import outbox
from segdec.errors import ConfigError
from tests.api.delivery.brokers import MOSQUITTO, Listener, OwnMosquitto, SmallBroker
from tests.api.delivery.outbox_messages import RULES, EventSource, Sending
from tests.api.record.databases import sqlite_only

CERTIFICATES = Path(__file__).parents[1] / "certificates"
WHY = "no Mosquitto: Debian's package mosquitto has it"
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason=WHY)


def message(number=1, station="line 1/cam#2"):
    event = f'{{"specversion":"1.0","id":"e{number}"}}'
    return OutboxMessage(number, f"e{number}", "inspected", station, event)


@pytest.fixture
def make_broker(tmp_path):
    started = []

    def make(*lines):
        folder = tmp_path / f"broker{len(started)}"
        folder.mkdir()
        started.append(OwnMosquitto(folder, lines or ("allow_anonymous true",)))
        return started[-1]

    yield make
    for broker in started:
        broker.kill()


@pytest.fixture
def make_small():
    started = []

    def make(*accepts, **more):
        started.append(SmallBroker(*accepts, **more))
        return started[-1]

    yield make
    for broker in started:
        broker.close()


def deliver(port, *messages, user=None, password=None, trust=None):
    async def main():
        sink = Mqtt(Broker("127.0.0.1", port, user, password, trust, "segdec-test"), "plant/segdec")
        try:
            for one in messages:
                await sink.deliver(one)
        finally:
            await sink.close()

    asyncio.run(main())


@needs_mosquitto
def test_an_event_is_published_to_the_topic_of_its_station(make_broker):
    broker = make_broker()
    listener = Listener(broker.port)
    deliver(broker.port, message(1), message(2, ""))
    listener.wait_for(2)
    listener.close()
    topics = [f"plant/segdec/{station}/inspected" for station in ("line 1%2Fcam%232", "_")]
    assert [topic for topic, _, _ in listener.messages] == topics
    assert listener.messages[0][1:] == ("application/cloudevents+json", {"specversion": "1.0", "id": "e1"})


@pytest.mark.parametrize("refusal", [b"\x20\x02\x00\x01", b"\x20\x02\x00\x02", b"\x20\x03\x00\x84\x00", b""])
def test_a_broker_that_refuses_mqtt_5_gets_3_1_1_until_it_accepts_5(refusal, make_small, caplog):
    broker = make_small(4, refusal=refusal)

    async def main():
        sink = Mqtt(Broker("127.0.0.1", broker.port, None, None, None, "segdec-test"), "plant")
        for number in (1, 2):
            await sink.deliver(message(number))
        assert "MQTT 3.1.1" in sink.remark and "MQTT 3.1.1" in caplog.text
        broker.accepts = (4, 5)
        broker.disconnect()
        while sink.remark:
            with suppress(DeliveryError):  # it may not know yet that the connection has ended
                await sink.deliver(message(3))
        await sink.close()

    asyncio.run(main())
    assert broker.levels == [5, 4, 5]
    assert broker.topics == ["plant/line 1%2Fcam%232/inspected"] * 3


def test_a_broker_that_closes_every_connection_is_named(make_small):
    with pytest.raises(DeliveryError, match=r"closes the connection .* MQTT 5; .* MQTT 3\.1\.1") as failure:
        deliver(make_small().port, message())
    assert failure.value.cause == "unreachable"


@sqlite_only
@pytest.mark.parametrize("level", [4, 5])
def test_an_event_at_which_the_broker_ends_the_connection_is_given_up(level, make_small, engine, metrics):
    broker, line = make_small(level), EventSource(engine, "mqtt")

    def others(state):
        return [part for part in line.left(state) if not part.startswith("poison")]

    async def main():
        sink = Mqtt(Broker("127.0.0.1", broker.port, None, None, None, "segdec-test"), "plant")
        async with Sending(engine, sink, metrics) as sending:
            while not line.left("dead"):
                line.inspect("a", "poison", "b")
                sending.seconds += 100
                await sending.turn()
            assert line.left("dead") == ["poison-2"]
            while others("waiting"):  # were in flight at the last end
                sending.seconds += 100
                await sending.turn()

    asyncio.run(main())
    assert others("dead") == []
    with engine.connect() as connection:
        reason = connection.execute(select(outbox.c.error).where(outbox.c.state == "dead")).scalars().first()
    assert "the broker ends the connection at this event" in reason


@needs_mosquitto
@pytest.mark.parametrize(
    ("lines", "login", "words"),
    [
        ("allow_anonymous true\nacl_file {}/acl", {}, "Not authorized"),
        ("allow_anonymous false", {}, "rejects the connection"),
        ("password_file {}/users", {"user": "line", "password": "secret"}, "rejects the connection"),
    ],
)
def test_an_event_that_the_broker_rejects_is_not_delivered(make_broker, tmp_path, lines, login, words):
    (tmp_path / "acl").write_text("topic read #\n")
    (tmp_path / "users").touch(0o600)
    broker = make_broker(*lines.format(tmp_path).splitlines())
    with pytest.raises(DeliveryError, match=words) as failure:
        deliver(broker.port, message(), **login)
    assert failure.value.cause == "unreachable" and "secret" not in str(failure.value)


@needs_mosquitto
def test_the_certificate_of_the_broker_is_verified(make_broker):
    lines = (f"certfile {CERTIFICATES}/server.pem", f"keyfile {CERTIFICATES}/server.key")
    broker = make_broker("allow_anonymous true", *lines)
    deliver(broker.port, message(), trust=ssl.create_default_context(cafile=CERTIFICATES / "server.pem"))
    with pytest.raises(DeliveryError, match=r"(?i)certificate") as failure:
        deliver(broker.port, message(), trust=ssl.create_default_context())
    assert failure.value.cause == "unreachable"


@needs_mosquitto
@pytest.mark.slow
@sqlite_only
def test_every_event_arrives_in_order_after_kills_of_the_broker(make_broker, engine, metrics):
    broker, line = make_broker(), EventSource(engine, "mqtt")
    listener = Listener(broker.port)
    broker.stop()  # from now on the broker knows its listener after a kill, too
    broker.start()
    sink = Mqtt(Broker("127.0.0.1", broker.port, None, None, None, "segdec-test"), "line")
    delivery = Delivery(engine, [sink], RULES, OutboxMetrics(metrics, ["mqtt"]))
    delivery.start()
    stations, sent = ["a", "b", "c"], 0
    for _ in range(2):
        inspecting = threading.Thread(target=lambda: [line.inspect(*stations) for _ in range(30)])
        inspecting.start()
        listener.wait_for(sent + 15)
        broker.kill()
        inspecting.join()
        broker.start()
        sent += 30 * len(stations)
        listener.wait_for(sent)
    delivery.close()
    listener.close()
    assert len(listener.ids()) == sent
    first = {event["id"]: event["data"]["part_id"] for _, _, event in reversed(listener.messages)}
    for station in stations:
        parts = [first[one] for one in listener.ids() if first[one].startswith(station)]
        numbers = [int(part.partition("-")[2]) for part in parts]
        assert numbers == sorted(numbers)
        assert len(numbers) == sent / len(stations)


# === URLs and topics ===


def test_the_url_contains_broker_login_and_topic():
    read = read_mqtt_url("mqtts://li%40ne:p%3Aw@broker/plant/segdec/")
    assert read == ("mqtts", "broker", 8883, "li@ne", "p:w", "plant/segdec")
    assert read_mqtt_url("mqtt://broker:1884/t") == ("mqtt", "broker", 1884, None, None, "t")


@pytest.mark.parametrize(
    "url",
    [
        *("broker", "http://broker/t", "mqtt://broker", "mqtt:///t", "mqtt://u:secret@broker:x/t"),
        *("mqtt://broker/a%2B", "mqtt://broker/$SYS", "mqtt://broker/t?q"),
    ],
)
def test_an_invalid_url_is_rejected_without_its_password(url):
    with pytest.raises(ConfigError, match="Expected mqtt://HOST:PORT/TOPIC") as refusal:
        read_mqtt_url(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("station", "level"),
    [
        ("a", "a"),
        ("", "_"),
        ("a\x85\uffff", "a%C2%85%EF%BF%BF"),
        ("_", "%5F"),
        ("a/b+c#d%2F", "a%2Fb%2Bc%23d%252F"),
        ("Ä 1", "Ä 1"),
    ],
)
def test_a_station_is_one_level_of_the_topic(station, level):
    assert topic_of("p", message(1, station)) == f"p/{level}/inspected"
