"""The OPC UA server, read by the client of asyncua."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.database.database import open_database, write_transaction
from api.database.schema import metadata
from api.delivery.line_state import LineStateReader
from api.delivery.opcua_access import OpcUaAccess, opcua_access
from api.delivery.receivers import create_receivers
from api.settings import Settings
from segdec.errors import ConfigError
from tests.api.delivery.test_line_state import Day
from tests.api.record.databases import free_port, sqlite_only

CERTIFICATES = Path(__file__).parents[1] / "certificates"
EVERYBODY = OpcUaAccess(anonymous=True)
NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


class RunningServer:
    """A server with its record, which can be written if it is `usable`."""

    def __init__(self, engine, pair=None, access=EVERYBODY):
        from api.delivery.opcua_server import OpcUaServer

        self.day, self.usable = Day(engine), True
        self.url = f"opc.tcp://127.0.0.1:{free_port()}/segdec"
        state = LineStateReader(UTC, lambda: NOW)
        self.server = OpcUaServer(self.url, pair, open_database(str(engine.url)), state, access)
        self.server.start(lambda: self.usable)


def variable(client, path):
    from asyncua import ua

    return client.get_node(ua.NodeId(f"segdec/{path}", 2))


def lines(metrics):
    return set(metrics.render()[0].splitlines())


async def wait_for_heartbeats(client, count):
    """Waits for `count` heartbeats."""
    first = await variable(client, "Heartbeat").read_value()
    while await variable(client, "Heartbeat").read_value() < first + count:
        await asyncio.sleep(0.05)


async def wait_until(client, path, expected):
    """Returns the variable as soon as it has this value and status."""
    while True:
        found = await variable(client, path).read_data_value(raise_on_bad_status=False)
        if (found.Value.Value, found.StatusCode.name) == expected:
            return found
        await asyncio.sleep(0.05)


@pytest.fixture
def running(engine):
    running = RunningServer(engine)
    yield running
    running.server.close()


@pytest.mark.slow
@sqlite_only
def test_nodes_show_the_line_are_read_only_and_bad_without_the_record(running):
    from asyncua import Client, ua
    from asyncua.ua.uaerrors import UaError

    async def main():
        async with asyncio.timeout(60), Client(running.url) as client:
            for name in ("Verdict", "NotInspectedCode"):
                await wait_until(client, f"all/{name}", (None, "BadWaitingForInitialData"))
            number = running.day.inspect("line 3", "scratch", NOW, "A17")
            running.day.leave_out("line 3", NOW, "A18")
            shown = await wait_until(client, "stations/line 3/RecordId", (number, "Good"))
            assert shown.SourceTimestamp == NOW
            for path in ("all", "stations/line 3"):
                for name, value in {
                    **{"Verdict": "defect", "Label": "scratch", "Score": 0.5, "PartId": "A17"},
                    **{"InspectedAt": NOW, "InspectedToday": 1, "GoodToday": 0, "DefectToday": 1},
                    **{"ReviewToday": 0, "NotInspectedToday": 1, "NotInspectedPartId": "A18"},
                    **{"NotInspectedCode": "truncated_image", "NotInspectedReason": "It ends."},
                    **{"NotInspectedAt": NOW, "Plan": "", "PlanVersion": 0, "PlanSeverity": ""},
                }.items():
                    assert await variable(client, f"{path}/{name}").read_value() == value
            running.usable = False
            await wait_until(client, "all/Verdict", (None, "BadNoCommunication"))
            running.usable = True
            await wait_until(client, "all/Verdict", ("defect", "Good"))
            await wait_for_heartbeats(client, 2)
            with pytest.raises(UaError):
                await variable(client, "all/Score").write_value(1.0)
            with pytest.raises(UaError):
                folder = client.get_node(ua.NodeId("segdec/all", 2))
                await folder.add_variable(2, "Mine", 1)
        admin = Client(running.url)
        admin.set_user("admin")
        admin.set_password("admin")
        with pytest.raises(UaError):
            await admin.connect()
        async with asyncio.timeout(60), Client(running.url) as client:
            with write_transaction(running.day.engine) as connection:
                metadata.tables["uninspected"].drop(connection)
            await wait_until(client, "all/Verdict", (None, "BadNoCommunication"))
            await wait_for_heartbeats(client, 1)

    asyncio.run(main())


NAMES = [
    "alpha",
    "alpha/Verdict",
    "alpha%2FVerdict",
    "Alpha",
    "",
    "/",
    "(unnamed)",
    "a;s=b",
    "i=85",
    "x" * 128,
]


@pytest.mark.slow
@sqlite_only
def test_every_station_has_its_own_nodes_whatever_its_name(running):
    from asyncua import Client

    async def main():
        async with asyncio.timeout(60), Client(running.url) as client:
            expected = {name: running.day.inspect(name, "good", NOW) for name in NAMES}
            await wait_until(client, "all/InspectedToday", (len(NAMES), "Good"))
            await wait_for_heartbeats(client, 2)
            assert await variable(client, "stations/alpha/RecordId").read_value() == expected["alpha"]
            found = []
            for station in await variable(client, "stations").get_children():
                number = await station.get_child("2:RecordId")
                found.append(await number.read_value())
                same = client.get_node(number.nodeid.to_string())  # as PLC programs write it
                assert await same.read_value() == found[-1]
            assert sorted(found) == sorted(expected.values())

    asyncio.run(main())


@pytest.mark.slow
@sqlite_only
def test_an_error_of_one_station_or_of_the_record_is_reported_and_passes(running, metrics, monkeypatch):
    from asyncua import Client

    from api.delivery.opcua_metrics import register_opcua_metrics
    from api.delivery.opcua_nodes import LineNodes

    register_opcua_metrics(metrics, running.server)
    broken, empty = threading.Event(), threading.Event()
    add, read = LineNodes._add_set, LineStateReader.read

    async def fail_for_bad(nodes, station):
        if station == "bad":
            raise ValueError("no such node")
        await add(nodes, station)

    def fail_while_broken(state, connection):
        if broken.is_set():
            raise ValueError("no such date")
        states = read(state, connection)
        return {None: states[None]} if empty.is_set() else states

    monkeypatch.setattr(LineNodes, "_add_set", fail_for_bad)
    monkeypatch.setattr(LineStateReader, "read", fail_while_broken)

    async def main():
        async with asyncio.timeout(60), Client(running.url) as client:
            for station in ("bad", "good one"):
                running.day.inspect(station, "good", NOW)
            await wait_until(client, "stations/good one/InspectedToday", (1, "Good"))
            text = "OPC UA does not show 1 stations: the log names them."
            assert running.server.problems() == {"opcua_stations": text}
            assert {b"segdec_opcua_up 1.0", b"segdec_opcua_skipped_stations 1.0"} <= lines(metrics)
            broken.set()
            await wait_until(client, "all/InspectedToday", (None, "BadNoCommunication"))
            broken.clear()
            await wait_until(client, "all/InspectedToday", (2, "Good"))
            empty.set()  # the next day
            await wait_until(client, "stations/good one/InspectedToday", (0, "Good"))
            await wait_for_heartbeats(client, 2)

    asyncio.run(main())
    running.server.close()
    monkeypatch.setattr("api.delivery.opcua_server.MAX_AGE_S", 0.0)
    assert b"segdec_opcua_up 0.0" in lines(metrics)
    assert "does not show the line" in running.server.problems()["opcua_down"]


@pytest.mark.slow
@sqlite_only
def test_with_a_certificate_clients_encrypt_and_log_in(engine):
    from asyncua import Client
    from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
    from asyncua.ua.uaerrors import UaError

    pair = CERTIFICATES / "opcua.pem", CERTIFICATES / "opcua-key.pem"
    access = OpcUaAccess(anonymous=False, check_login=lambda *login: login == ("plc", "key"))
    running = RunningServer(engine, pair, access)

    async def log_in(user, password):
        client = Client(running.url)
        client.application_uri = "urn:segdec:test"
        await client.set_security(SecurityPolicyBasic256Sha256, *map(str, pair))
        if user is not None:
            client.set_user(user)
            client.set_password(password)
        async with asyncio.timeout(60), client:
            await wait_until(client, "all/InspectedToday", (0, "Good"))
            (shown, *_) = await client.get_endpoints()
            assert shown.Server.ApplicationUri == "urn:segdec:test"

    async def main():
        await log_in("plc", "key")
        for user, password in (("plc", "other"), ("admin", "key"), (None, None)):
            with pytest.raises(UaError):
                await log_in(user, password)
        with pytest.raises((UaError, ConnectionError, TimeoutError)):
            async with asyncio.timeout(60), Client(running.url):
                pass

    try:
        asyncio.run(main())
    finally:
        running.server.close()


@pytest.mark.parametrize(
    ("host", "flags", "expected"),
    [
        ("127.0.0.1", {}, (True, False)),
        ("localhost", {"review_keys": "k"}, None),
        ("0.0.0.0", {}, None),
        ("0.0.0.0", {"opcua_anonymous": True}, (True, False)),
        ("0.0.0.0", {"review_keys": "k"}, None),
        ("0.0.0.0", {"api_keys": "k", "opcua_certificate": "c"}, None),
        ("0.0.0.0", {"review_keys": "k", "opcua_certificate": "c"}, (False, True)),
    ],
)
def test_who_may_read(host, flags, expected):
    settings = Settings.model_validate({"model": "unused", **flags})
    endpoint = f"opc.tcp://{host}:4840/segdec"
    if expected is None:
        with pytest.raises(ConfigError, match="Nobody could read"):
            opcua_access(endpoint, settings, lambda *_: True)
    else:
        access = opcua_access(endpoint, settings, lambda *_: True)
        assert (access.anonymous, access.check_login is not None) == expected


@pytest.mark.slow
def test_an_invalid_certificate_stops_the_start(tmp_path, metrics):
    (tmp_path / "a.pem").write_text("no certificate")
    files = {"opcua_certificate": tmp_path / "a.pem", "opcua_key": tmp_path / "a.pem"}
    endpoint = f"opc.tcp://127.0.0.1:{free_port()}/segdec"
    files |= {"record_folder": tmp_path, "opcua_endpoint": endpoint}
    receivers = create_receivers(Settings(model=Path("unused"), record="required", **files), metrics)
    with pytest.raises(ConfigError, match=r"a\.pem cannot be used for OPC UA"):
        receivers.start(lambda: True)
    receivers.close()
