"""Inspections that are recorded, repeated or rejected."""

import base64
import hashlib
import json
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy.exc import OperationalError

from api.record import queries
from segdec.images import encode_png
from tests.api.conftest import PNG, ServiceClient, part_image


def inspect(client, body, query="", **headers):
    return client.post(f"/v1/inspect{query}", content=body, headers={**PNG, **headers})


def rows(folder, columns="*", table="inspections"):
    with closing(sqlite3.connect(folder / "record.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(f"SELECT {columns} FROM {table}")]


def pictures(folder):
    return sorted(path for path in (folder / "pictures").glob("??/*"))


def has_stored_nothing(client):
    folder = client.app.state.settings.record_folder
    return rows(folder) == [] and pictures(folder) == []


def test_an_inspection_is_answered_like_predict_and_stored(recorder, part, folder):
    answer = inspect(recorder, part, "?station=line3&part_id=A17&metadata=%7B%22shift%22%3A2%7D").json()
    predicted = recorder.post("/v1/predict", content=part, headers=PNG).json()
    assert answer.pop("record_id") == 1
    assert answer.pop("repeated") is False
    for found in (answer, predicted):
        found.pop("id"), found.pop("timing_ms")
    assert answer == predicted
    row = rows(folder)[0]
    digest = hashlib.sha256(part).digest()
    assert [row[name] for name in ("id", "station", "part_id", "label", "picture", "details")] == [
        *(1, "line3", "A17", "scratch", digest, '{"shift": 2}')
    ]
    assert [path.name for path in pictures(folder)] == [digest.hex()]
    assert pictures(folder)[0].read_bytes() == part
    assert not list((folder / "pictures" / "unsettled").iterdir())


@pytest.mark.parametrize("form", ["none", "png", "rle", "polygon", "class_rle"])
def test_a_repeated_inspection_gets_the_first_answer(recorder, predictor, part, form):
    if form.startswith("class"):
        predictor.have_classes(spot_from=13)
    first = inspect(recorder, part, "?station=a&part_id=7&mask=rle").json()
    predictor.config = predictor.config.model_copy(update={"classes": ("good", "dent", "spot")})
    again = inspect(recorder, part, f"?station=a&part_id=7&mask={form}").json()
    assert again["repeated"] is True
    asked_anew = recorder.post(f"/v1/predict?mask={form}", content=part, headers=PNG).json()
    assert again["mask"] == asked_anew["mask"]
    for found in (first, again):
        found.pop("repeated"), found.pop("mask")
    assert again == first


def test_station_part_and_metadata_in_the_query_or_the_body(recorder, part, folder):
    facts = {"station": "line3", "part_id": "A17", "metadata": {"shift": 2}}
    texts = {**facts, "metadata": json.dumps(facts["metadata"])}
    image = {"b64": base64.b64encode(part).decode()}
    answers = [
        recorder.post("/v1/inspect", content=part, headers=PNG, params=texts),
        recorder.post("/v1/inspect", files={"file": part}, data=texts),
        recorder.post("/v1/inspect", json={"image": image, **facts}),
    ]
    assert [answer.json()["repeated"] for answer in answers] == [False, True, True]
    assert rows(folder, "station, part_id, details") == [
        {"station": "line3", "part_id": "A17", "details": texts["metadata"]}
    ]


@pytest.mark.parametrize(
    ("query", "body", "detail"),
    [
        ("?station=a", {"station": "b"}, "station is 'a' in the query and 'b' in the body."),
        ("", {"part_id": ""}, "body part_id is ''. String should have at least 1 character."),
        ("", {"metadata": {"a": "x" * 4096}}, "body metadata is {'a': 'xxx"),
        ("", {"metadata": [1]}, "body metadata is [1]. Expected an object."),
        ("", {"shift": 2}, "shift: Extra inputs are not permitted."),
    ],
)
def test_invalid_facts_in_a_json_body_are_rejected(unchanged, part, query, body, detail):
    image = {"b64": base64.b64encode(part).decode()}
    answer = unchanged.post(f"/v1/inspect{query}", json={"image": image, **body})
    assert answer.status_code == 400 and answer.json()["detail"].startswith(detail)
    assert has_stored_nothing(unchanged)


def test_invalid_facts_in_a_form_are_rejected(unchanged, part):
    for field, detail in (("shift", "The form has"), ("metadata", "form metadata is '{'. Expected a JSON")):
        answer = unchanged.post("/v1/inspect", files={"file": part}, data={field: "{"})
        assert answer.status_code == 400 and answer.json()["detail"].startswith(detail)
    assert unchanged.post("/v1/predict", files={"file": part}, data={"station": "a"}).status_code == 400


def test_another_station_part_or_picture_is_not_a_repeat(recorder, part):
    other = encode_png(part_image(brightness=90))
    asked = [(part, "?station=a&part_id=7"), (part, "?station=b&part_id=7"), (part, "?station=a&part_id=8")]
    asked += [(other, "?station=a&part_id=7"), (part, "?station=a"), (part, "?station=a")]
    answers = [inspect(recorder, body, query).json() for body, query in asked]
    assert [answer["record_id"] for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert not any(answer["repeated"] for answer in answers)


def test_an_idempotency_key_identifies_one_photograph(recorder, part):
    key = {"Idempotency-Key": "shot-1"}
    assert inspect(recorder, part, **key).json()["record_id"] == 1
    again = recorder.post("/v1/models/unnamed/inspect", content=part, headers={**PNG, **key}).json()
    assert again["record_id"] == 1 and again["repeated"]
    assert recorder.post("/v1/models/other/inspect", content=part, headers=PNG).status_code == 404


def test_the_mask_file_has_the_record_in_its_headers(recorder, part):
    for repeated in ("false", "true"):
        answer = inspect(recorder, part, "?part_id=7", Accept="image/png")
        assert answer.headers["X-Segdec-Record"] == "1"
        assert answer.headers["X-Segdec-Repeated"] == repeated
        assert answer.headers["X-Segdec-Label"] == "scratch"
    predicted = recorder.post("/v1/predict", content=part, headers={**PNG, "Accept": "image/png"})
    assert answer.content == predicted.content


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("mask=scores", "query mask is 'scores'. Expected 'none', 'png', 'rle', 'polygon', 'classes'"),
        ("space=model", "query space is 'model'. Expected 'input'."),
        ("part_id=", "query part_id is ''. String should have at least 1 character."),
        ("station=a%C2%85", "query station is 'a\\x85'. The character U+0085 is not allowed. Expected text"),
        ("part_id=%EF%BF%BF", "query part_id is '\\uffff'. The character U+FFFF is not allowed."),
        ("metadata=[1]", "query metadata is [1]. Expected a valid dictionary."),
        ("metadata={", "query metadata is '{'. Expected a JSON object: EOF"),
        ("part=7", "query: unknown parameter 'part'; did you mean 'part_id'?"),
    ],
)
def test_invalid_query_parameters_are_rejected(unchanged, part, query, detail):
    answer = inspect(unchanged, part, f"?{query}")
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(detail)
    assert inspect(unchanged, part[:-20]).status_code == 422
    assert has_stored_nothing(unchanged)


@pytest.mark.parametrize(("key", "status"), [("Ä-1", 200), ("a\x85", 400), ("\u202e", 400)])
def test_an_idempotency_key_is_utf_8_without_forbidden_characters(recorder, part, key, status):
    answer = inspect(recorder, part, **{"Idempotency-Key": key.encode()})
    assert answer.status_code == status
    assert status == 200 or "is not allowed" in answer.json()["detail"]


def test_a_record_that_fails_to_open_is_opened_later(make_app, folder, part, monkeypatch, caplog):
    monkeypatch.setattr("api.record.record.REOPEN_S", 0.0)
    newest_hour = queries.newest_hour

    def fail(_):
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(queries, "newest_hour", fail)
    with ServiceClient(make_app(record="required", record_folder=folder)) as client:
        assert "segdec_record_usable 0.0" in client.get("/metrics").text
        assert "/v1/inspect answers 503 until the record can be opened" in caplog.text
        monkeypatch.setattr(queries, "newest_hour", newest_hour)
        assert inspect(client, part).json()["record_id"] == 1
        assert "segdec_record_usable 1.0" in client.get("/metrics").text


@pytest.mark.parametrize("number", ["NaN", "-1e999"])
def test_metadata_with_numbers_that_json_lacks_is_rejected(unchanged, part, number):
    metadata = f'{{"weight": {number}}}'
    body = f'{{"image": {{"b64": "{base64.b64encode(part).decode()}"}}, "metadata": {metadata}}}'
    for answer in (
        unchanged.post("/v1/inspect", content=body, headers={"Content-Type": "application/json"}),
        unchanged.post("/v1/inspect", files={"file": part}, data={"metadata": metadata}),
        unchanged.post("/v1/inspect", content=part, headers=PNG, params={"metadata": metadata}),
    ):
        assert answer.status_code == 400 and "metadata" in answer.json()["detail"]
