"""Events of inspections and reviews, and the routes of the outbox."""

import json
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime

import pytest

from api.record.events import MAX_REGIONS, inspected_event, reviewed_event
from api.record.initialization import DATABASE
from tests.api.conftest import PNG, ServiceClient
from tests.api.delivery.brokers import SmallBroker
from tests.api.delivery.outbox_messages import inspection

QUERY = "/v1/inspect?station=line%203/cam1&part_id=A17&metadata=%7B%22lot%22%3A7%7D"


@pytest.fixture
def sender(make_app, folder, tmp_path):
    """A client of a service that writes its events into a file."""
    settings = {"record": "required", "record_folder": folder, "outbox_jsonl": tmp_path / "events.jsonl"}
    with ServiceClient(make_app(**settings)) as client:
        yield client


def events(tmp_path, count):
    """Returns the events as soon as there are `count`."""
    file = tmp_path / "events.jsonl"
    while not file.exists() or len(lines := file.read_text().splitlines()) < count:
        threading.Event().wait(0.01)
    return sorted(map(json.loads, lines), key=lambda event: event["data"]["record_id"])


def test_the_event_of_an_inspection(sender, tmp_path, part):
    answer = sender.post(QUERY, content=part, headers=PNG).json()
    sender.post(QUERY, content=part, headers=PNG)  # a repeat has no event of its own
    other = sender.post("/v1/inspect", content=part, headers=PNG).json()
    first, second = events(tmp_path, 2)
    record = sender.get("/v1/records/1").json()
    assert datetime.fromisoformat(first.pop("time")) == datetime.fromisoformat(record["inspected_at"])
    assert len(first.pop("id")) == 36
    assert first == {
        "specversion": "1.0",
        "source": "/stations/line%203%2Fcam1",
        "type": "segdec.inspected",
        "subject": "records/1",
        "datacontenttype": "application/json",
        "data": {
            "record_id": 1,
            "url": None,
            **{"station": "line 3/cam1", "part_id": "A17", "verdict": "defect", "label": "scratch"},
            **{"score": answer["decision"]["score"], "threshold": 0.5, "review_threshold": None},
            **{"model": "unnamed", "version": "0"},
            "plan": None,
            "metadata": {"lot": 7},
            "region_count": 1,
            "regions": [{"bbox": [10, 8, 6, 4], "area_px": 24, "label": None}],
        },
    }
    assert (second["source"], second["data"]["part_id"]) == ("/stations/", None)
    assert second["data"]["record_id"] == other["record_id"]


def test_the_event_of_a_photograph_that_is_not_inspected(sender, tmp_path):
    answer = sender.post(QUERY, content=b"no picture", headers=PNG)
    (event,) = events(tmp_path, 1)
    at = sender.get("/v1/line").json()["uninspected"][0]["at"]
    assert datetime.fromisoformat(event.pop("time")) == datetime.fromisoformat(at)
    assert len(event.pop("id")) == 36
    assert event == {
        "specversion": "1.0",
        "source": "/stations/line%203%2Fcam1",
        "type": "segdec.not_inspected",
        "subject": "stations/line%203%2Fcam1/not_inspected",
        "datacontenttype": "application/json",
        "data": {
            "record_id": None,
            "url": None,
            **{"station": "line 3/cam1", "part_id": "A17", "verdict": "not_inspected", "label": None},
            **{"status": 422, "code": "unsupported_type", "detail": answer.json()["detail"], "count": 1},
        },
    }


def test_events_link_to_the_page_of_the_part():
    row, pages = inspection(7, "a"), "https://plant/inspect"
    withdrawn = {**row, "reviewed_label": None, "reviewed_at": None, "revision": 2}
    for event in (inspected_event(row, pages), reviewed_event(withdrawn, datetime.now(UTC), pages)):
        assert json.loads(event)["data"]["url"] == "https://plant/inspect/parts/7"
    assert json.loads(inspected_event(row))["data"]["url"] is None


def test_an_event_contains_the_largest_regions():
    regions = [{"bbox": [0, 0, n, 1], "area_px": n, "score_max": 1.0, "polygon": []} for n in range(1, 80)]
    event = json.loads(inspected_event(inspection(1, "a", answer=json.dumps({"regions": regions}))))
    assert event["data"]["region_count"] == 79
    assert [one["area_px"] for one in event["data"]["regions"]] == list(range(79, 79 - MAX_REGIONS, -1))


def test_the_events_of_a_review_and_its_withdrawal(sender, tmp_path, part):
    sender.post(QUERY, content=part, headers=PNG)
    review = {"json": {"label": "good", "reviewer": "anna"}, "headers": {"If-Match": '"0"'}}
    assert sender.request("PUT", "/v1/records/1/review", **review).status_code == 200
    assert sender.request("PUT", "/v1/records/1/review", **review).status_code == 412  # without an event
    assert sender.request("DELETE", "/v1/records/1/review", headers={"If-Match": '"1"'}).status_code == 200
    inspected, reviewed, undone = events(tmp_path, 3)
    assert inspected["type"] == "segdec.inspected"
    assert [event["type"] for event in (reviewed, undone)] == ["segdec.reviewed"] * 2
    data = reviewed["data"]
    assert data.pop("reviewed_at") <= reviewed["time"]
    part = {"url": None, "station": "line 3/cam1", "part_id": "A17", "label": "scratch", "verdict": "defect"}
    assert data == {"record_id": 1, **part, "reviewed_label": "good", "revision": 1}
    assert undone["data"] == {**data, "reviewed_label": None, "reviewed_at": None, "revision": 2}
    assert "anna" not in json.dumps([inspected, reviewed, undone])


# === Dead letters ===


@pytest.fixture
def administered(make_app, folder, role_keys, part):
    """A client whose outbox has a dead letter and a failing event, of a sink without a sender."""
    keys, files = role_keys
    with ServiceClient(make_app(record="required", record_folder=folder, **files)) as client:
        client.keys = {role: {"X-API-Key": key} for role, key in keys.items()}
        client.post("/v1/inspect?station=a", content=part, headers=PNG | client.keys["api"])
        with closing(sqlite3.connect(folder / DATABASE)) as database, database:
            event, values = inspected_event(inspection(1, "a")), ", ".join("?" * 8)
            columns = "station, created_at, next_at, sink, event, state, attempts, error"
            for failure in (("dead", 3, "HTTP 400 Bad Request"), ("waiting", 1, "connection refused")):
                row = "a", *["2026-01-01 00:00:00"] * 2, "webhook", event, *failure
                database.execute(f"INSERT INTO outbox ({columns}) VALUES ({values})", row)
        yield client


def state_of(client):
    (sink,) = client.get("/v1/outbox", headers=client.keys["review"]).json()["sinks"]
    return sink


def audit(folder):
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        return database.execute("SELECT who, what, record_id FROM audit ORDER BY id").fetchall()


def test_the_outbox_says_that_the_broker_has_no_mqtt_5(make_app, folder, part):
    broker = SmallBroker(4)
    url = f"mqtt://127.0.0.1:{broker.port}/plant"
    with ServiceClient(make_app(record="required", record_folder=folder, outbox_mqtt=url)) as client:
        client.post("/v1/inspect?station=a", content=part, headers=PNG)
        while not broker.topics:
            threading.Event().wait(0.01)
        (sink,) = client.get("/v1/outbox").json()["sinks"]
    broker.close()
    assert sink["remark"].startswith("connected with MQTT 3.1.1, because the broker closes the connection")


def test_a_dead_letter_is_shown_and_requeued(administered, folder):
    shown = state_of(administered)
    assert (shown["waiting"], shown["dead"], shown["oldest_at"][:10]) == (1, 1, "2026-01-01")
    (dead_letter,), (failing,) = shown["dead_letters"], shown["failing"]
    assert (dead_letter["id"], dead_letter["error"], dead_letter["attempts"]) == (
        1,
        "HTTP 400 Bad Request",
        3,
    )
    assert (failing["id"], failing["error"]) == (2, "connection refused")
    assert failing["event"]["data"]["record_id"] == 1
    admin = administered.keys["admin"]
    assert administered.post("/v1/admin/outbox/1/retry", headers=admin).json() == {"changed": 1}
    shown = state_of(administered)
    assert (shown["waiting"], shown["dead"], shown["dead_letters"]) == (2, 0, [])
    assert administered.post("/v1/admin/outbox/1/retry", headers=admin).json()["code"] == "event_waits"
    assert audit(folder) == [("admin", "retry an event", 1)]


def test_all_dead_letters_of_a_receiver_are_requeued(administered, folder):
    admin = administered.keys["admin"]
    for changed in (1, 0):
        answer = administered.post("/v1/admin/outbox/retry?sink=webhook", headers=admin)
        assert answer.json() == {"changed": changed}
    assert state_of(administered)["waiting"] == 2
    assert audit(folder) == [("admin", "retry events", None)]
    for query in ("", "?sink=%00"):
        assert administered.post(f"/v1/admin/outbox/retry{query}", headers=admin).status_code == 400


def test_an_event_is_discarded(administered, folder):
    admin = administered.keys["admin"]
    for number in (1, 2):
        answer = administered.post(f"/v1/admin/outbox/{number}/discard", headers=admin)
        assert answer.json() == {"changed": 1}
    assert administered.get("/v1/outbox", headers=admin).json() == {"sinks": []}
    assert [what for _, what, _ in audit(folder)] == ["discard an event"] * 2
    for action in ("discard", "retry"):
        answer = administered.post(f"/v1/admin/outbox/1/{action}", headers=admin)
        assert (answer.status_code, answer.json()["code"]) == (404, "event_not_found")
