"""Reviews over HTTP: leases, reviews, undo, corrected masks, and rejected requests."""

import base64
import csv
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import cv2
import numpy as np
import pytest

from api.errors import RequestError
from api.record.initialization import DATABASE, PICTURES
from api.record.storage.retention_class import RetentionClass
from segdec.images import decode_image, encode_png
from tests.api.conftest import PNG, ServiceClient, know_training, part_image, problem


def rows(folder, statement):
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        return database.execute(statement).fetchall()


@pytest.fixture
def line(recorder):
    """A recorder with four defects, each with another picture."""
    for number in range(4):
        picture = encode_png(part_image(brightness=200 + number))
        answer = recorder.post(f"/v1/inspect?station=s{number % 2}", content=picture, headers=PNG)
        assert answer.json()["decision"]["label"] == "scratch"
    return recorder


@pytest.fixture(scope="module")
def defect(unchanged):
    """A recorder with a defect that no rejected request may change."""
    unchanged.post("/v1/inspect", content=encode_png(part_image()), headers=PNG)
    yield unchanged
    assert unchanged.get("/v1/records/1").json()["revision"] == 0


def ask(client, session="mine", **more):
    answer = client.post("/v1/review/next", json={"session": session, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(tasks):
    return [task["record"]["record_id"] for task in tasks["tasks"]]


def review(client, record_id=1, label="good", revision=0, **more):
    headers, body = {"If-Match": f'"{revision}"'}, {"label": label, **more}
    return client.request("PUT", f"/v1/records/{record_id}/review", json=body, headers=headers)


def undo(client, record_id=1, revision=1, query=""):
    headers = {"If-Match": f'"{revision}"'}
    return client.request("DELETE", f"/v1/records/{record_id}/review{query}", headers=headers)


def mask_file(pixels):
    return {"png": base64.b64encode(encode_png(pixels)).decode()}


def test_tasks_are_leased_to_a_session(line):
    first = ask(line, count=2)
    assert ids(first) == [1, 2] and first["waiting"] == 4
    task = first["tasks"][0]
    assert (task["why"], task["shadows"], task["labels"]) == ("defect", [], ["good", "scratch", "spot"])
    assert task["record"] == line.get("/v1/records/1").json()
    assert ids(ask(line, "other", count=5)) == [3, 4]
    assert ids(ask(line, skip=[2])) == [1]
    assert ids(ask(line, "other", count=5, station="s0")) == [3]


def test_a_review_is_stored_with_its_reviewer(line, folder):
    ask(line)
    assert problem(review(line, session="other")) == (409, "leased")
    answer = review(line, session="mine", reason="dust", reviewer="Ada")
    assert answer.status_code == 200 and answer.headers["ETag"] == '"1"'
    record = answer.json()
    assert record == line.get("/v1/records/1").json()
    assert line.get("/v1/records/1").headers["ETag"] == '"1"'
    stored = record["review"]
    assert (stored["label"], stored["reviewer"], stored["reason"]) == ("good", "Ada", "dust")
    assert record["answer"]["decision"]["label"] == "scratch"
    assert ids(ask(line, count=5)) == [2, 3, 4]
    assert rows(folder, "SELECT worth FROM pictures ORDER BY stored_at")[0] == (RetentionClass.REVIEWED,)
    assert rows(folder, "SELECT who, what, record_id FROM audit") == [("Ada", "review", 1)]
    assert 'segdec_record_reviews_total{label="good"} 1.0' in line.get("/metrics").text


# === Photographs without a verdict ===


@pytest.fixture
def dark(make_app, folder, predictor, grey_training):
    """A recorder with a good inspection, number 1, and a photograph that is too dark, number 2."""
    like, black = know_training(predictor, grey_training)
    app = make_app(record="required", record_folder=folder, record_good_share=0, record_near=1)
    with ServiceClient(app) as client:
        client.post("/v1/inspect?station=a&part_id=7", content=like, headers=PNG)
        answer = client.post("/v1/inspect?station=a&part_id=8", content=black, headers=PNG)
        assert problem(answer) == (422, "unlike_training")
        yield client


def test_a_photograph_without_a_verdict_is_reviewed(dark, folder):
    (task,) = ask(dark)["tasks"]
    assert (task["why"], task["labels"]) == ("not_inspected", ["good", "scratch", "spot"])
    record = task["record"]
    assert (record["record_id"], record["part_id"], record["answer"], record["draw"]) == (2, "8", None, None)
    refusal = record["refusal"]
    assert (refusal["code"], refusal["image"]["height"]) == ("unlike_training", 32)
    assert refusal["detail"].startswith("The photograph is black or almost black (lamp off, lens cap).")
    assert record["distances"]["brightness"] > 1
    assert dark.get("/v1/records/1").json()["distances"]["brightness"] < 1
    assert decode_image(dark.get("/v1/records/2/image").content, "x").pixels.shape == (32, 48, 1)
    assert not decode_image(dark.get("/v1/records/2/mask").content, "x").pixels.any()
    assert problem(review(dark, 2, "stone")) == (400, "unknown_label")
    mask = np.zeros((32, 48), np.uint8)
    mask[:4] = 255
    answer = review(dark, 2, "scratch", session="mine", mask=mask_file(mask))
    assert answer.json()["review"]["label"] == "scratch"
    assert rows(folder, "SELECT worth FROM pictures ORDER BY stored_at")[1] == (RetentionClass.REVIEWED,)
    assert ids(ask(dark)) == []
    assert undo(dark, 2, 1, "?session=mine").status_code == 200
    assert ids(ask(dark)) == [2]
    assert rows(folder, "SELECT worth FROM pictures ORDER BY stored_at")[1] == (RetentionClass.TO_REVIEW,)


def test_a_photograph_without_a_verdict_has_a_mask_with_the_classes_of_the_model(
    recorder, predictor, grey_training
):
    _, black = know_training(predictor, grey_training)
    predictor.have_classes(spot_from=20)
    assert recorder.post("/v1/inspect", content=black, headers=PNG).status_code == 422
    answer = recorder.get("/v1/records/1/mask?values=any")
    assert answer.headers["X-Segdec-Values"] == "class"
    mask = np.zeros((32, 48), np.uint8)
    mask[:4] = 2
    assert review(recorder, label="spot", mask=mask_file(mask)).status_code == 200
    corrected = recorder.get("/v1/records/1/mask?which=reviewed&values=class").content
    assert np.array_equal(decode_image(corrected, "x").pixels[..., 0], mask)


def test_a_dismissed_photograph_is_not_kept_longer(dark, folder):
    assert review(dark, 2, "unsure").status_code == 200
    assert rows(folder, "SELECT worth FROM pictures ORDER BY stored_at")[1] == (RetentionClass.TO_REVIEW,)
    assert ids(ask(dark)) == []


def test_a_photograph_without_a_verdict_counts_as_no_inspection(dark):
    status, statistics = (dark.get(f"/v1/{path}").json() for path in ("line", "review/statistics"))
    assert (status["last"]["record_id"], status["shift"]["inspected"], status["defects"]) == (1, 1, [])
    assert status["shift"]["not_inspected"] == 1
    assert (statistics["inspected"], statistics["drawn"]) == (1, 0)
    assert [one["record_id"] for one in dark.get("/v1/records").json()["records"]] == [2, 1]
    found = dark.get("/v1/records?label=not_inspected&since=2026-01-01T00:00:00Z").json()["records"]
    assert [one["record_id"] for one in found] == [2]
    for least, number in (("0.5", [2]), ("1e9", [])):
        found_far = dark.get(f"/v1/records?min_distance={least}&station=a").json()["records"]
        assert [one["record_id"] for one in found_far] == number
    assert problem(dark.get("/v1/records?min_distance=0.1")) == (400, "bad_parameter")
    day = datetime.fromisoformat(found[0]["inspected_at"]).date()
    table = dark.get(f"/v1/records/days/{day}").text.splitlines()
    values = next(csv.DictReader(table))
    assert (values["label"], values["score"], values["drawn"]) == ("not_inspected", "", "")
    assert '"brightness"' in values["distances"]


def test_many_photographs_without_a_verdict_are_not_all_kept(dark, predictor, grey_training, folder):
    """A repeated one of the same part is kept once; each station has its own limit."""
    _, black = know_training(predictor, grey_training)
    for number in range(30):
        for query in ("station=a&part_id=8", f"station=b&part_id={number}"):
            dark.post(f"/v1/inspect?{query}", content=black, headers={**PNG, "Idempotency-Key": query})
    found = rows(folder, "SELECT station, count(*) FROM inspections WHERE label = 'not_inspected' GROUP BY 1")
    assert found == [("a", 1), ("b", 20)]
    assert dark.get("/v1/line").json()["shift"]["not_inspected"] == 61


def test_another_photograph_of_the_part_may_have_the_same_key(dark, predictor, grey_training):
    like, black = know_training(predictor, grey_training)
    headers = {**PNG, "Idempotency-Key": "one"}
    assert dark.post("/v1/inspect?part_id=9", content=black, headers=headers).status_code == 422
    assert dark.post("/v1/inspect?part_id=9", content=like, headers=headers).status_code == 200


def test_a_record_that_fails_does_not_change_the_answer(dark, predictor, grey_training, monkeypatch, caplog):
    _, black = know_training(predictor, grey_training)

    async def fail(*_):
        raise RequestError(503, "record_unavailable", "The disk is full.")

    monkeypatch.setattr(dark.app.state.service.recording, "store", fail)
    assert problem(dark.post("/v1/inspect", content=black, headers=PNG)) == (422, "unlike_training")
    assert "is not kept for review: The disk is full." in caplog.text


# === Names and revisions ===


@pytest.mark.parametrize(
    ("key", "body", "query", "reviewed_by", "undone_by"),
    [
        (None, {"reviewer": "Ada"}, "?session=mine&reviewer=Grace", "Ada", "Grace"),
        (None, {"reviewer": " "}, "", "unknown person at 127.0.0.1", "unknown person at 127.0.0.1"),
        ("review", {"reviewer": "Ada"}, "?reviewer=Ada", "review/Ada", "review/Ada"),
        ("review", {}, "", "review", "review"),
    ],
)
def test_each_review_and_undo_names_the_person_or_the_key(
    make_app, folder, part, role_keys, key, body, query, reviewed_by, undone_by
):
    secrets, files = role_keys
    headers = {} if key is None else {"X-API-Key": secrets[key]}
    with ServiceClient(make_app(record="required", record_folder=folder, **(files if key else {}))) as client:
        client.post("/v1/inspect", content=part, headers=PNG | headers)
        path = "/v1/records/1/review"
        body, headers = {"label": "good", **body}, {"If-Match": '"0"', **headers}
        assert client.request("PUT", path, json=body, headers=headers).status_code == 200
        headers["If-Match"] = '"1"'
        assert client.request("DELETE", path + "?reviewer=%00", headers=headers).status_code == 400
        assert client.request("DELETE", path + query, headers=headers).status_code == 200
    found = rows(folder, "SELECT who, what FROM audit")
    assert found == [(reviewed_by, "review"), (undone_by, "undo")]


@pytest.mark.parametrize("key", [None, "review"])
def test_keys_are_not_stored_as_names_or_reasons(make_app, folder, part, role_keys, key):
    secrets, files = role_keys
    headers = {} if key is None else {"X-API-Key": secrets[key]}
    with ServiceClient(make_app(record="required", record_folder=folder, **(files if key else {}))) as client:
        client.post("/v1/inspect", content=part, headers=PNG | headers)
        headers["If-Match"] = '"0"'
        path = "/v1/records/1/review"
        for word in ["segdec_" + 10 * "aB3_-", *([f" {secrets['admin']} "] if key else [])]:
            for field in ({"reviewer": word}, {"reviewer": f"Ada {word}"}, {"reason": f"my key is {word}"}):
                sent = client.request("PUT", path, json={"label": "good", **field}, headers=headers)
                assert problem(sent) == (400, "key_in_text") and word.strip() not in sent.json()["detail"]
            asked = {"session": "mine", "reviewer": word}
            assert client.post("/v1/review/next", json=asked, headers=headers).status_code == 400
            undone = client.request("DELETE", path, params={"reviewer": word}, headers=headers)
            assert problem(undone) == (400, "key_in_text")
    assert rows(folder, "SELECT who FROM audit") == []


def test_a_review_needs_the_current_revision(line):
    assert review(line, revision=0).status_code == 200
    for answer in (review(line, label="spot", revision=0), undo(line, revision=0)):
        assert problem(answer) == (412, "changed_meanwhile")
    answer = line.request("PUT", "/v1/records/1/review", json={"label": "good"})
    assert problem(answer) == (428, "precondition_required")
    weak = line.request("PUT", "/v1/records/1/review", json={"label": "spot"}, headers={"If-Match": 'W/"1"'})
    assert weak.status_code == 200


def test_a_corrected_mask_is_returned(line):
    corrected = np.zeros((24, 40), np.uint8)
    corrected[2:4, 5:9] = 255
    assert problem(line.get("/v1/records/1/mask?which=reviewed")) == (404, "no_corrected_mask")
    uri = f"data:image/png;base64,{mask_file(corrected)['png']}"  # as a canvas of a page makes it
    answer = review(line, label="scratch", mask={"png": uri})
    assert answer.json()["review"]["corrected_mask"]["encoding"] == "rle"
    seen = line.get("/v1/records/1/mask?which=reviewed")
    np.testing.assert_array_equal(decode_image(seen.content, "mask").pixels[..., 0], corrected)
    assert line.get("/v1/records/1/mask").content != seen.content
    assert problem(line.get("/v1/records/1/mask?values=class")) == (400, "no_mask_classes")
    assert line.get("/v1/records/1/mask?values=any").headers["X-Segdec-Values"] == "defect"


def test_a_corrected_mask_with_classes_is_returned(recorder, predictor, part):
    predictor.have_classes(spot_from=20)
    recorder.post("/v1/inspect", content=part, headers=PNG)
    answer = recorder.get("/v1/records/1/mask?values=any")
    assert answer.headers["X-Segdec-Values"] == "class"
    predicted = decode_image(answer.content, "mask")
    assert set(np.unique(predicted.pixels)) == {0, 1}
    corrected = np.zeros((24, 40), np.uint8)
    corrected[2:4, 5:9], corrected[6:8, 5:9] = 1, 2
    answer = review(recorder, label="spot", mask=mask_file(corrected))
    assert answer.json()["review"]["corrected_mask"]["encoding"] == "class_rle"
    seen = decode_image(recorder.get("/v1/records/1/mask?which=reviewed&values=class").content, "mask")
    np.testing.assert_array_equal(seen.pixels[..., 0], corrected)
    refused = review(recorder, label="spot", revision=1, mask=mask_file(np.full((24, 40), 3, np.uint8)))
    assert "good, scratch, spot" in refused.json()["detail"]


FULL, SMALL, HIGH = (np.full((height, 40), 255, np.uint8) for height in (24, 23, 25))


@pytest.mark.parametrize(
    ("label", "mask", "status", "code"),
    [
        ("scratch", {"png": "!"}, 400, "bad_base64"),
        ("scratch", {"png": base64.b64encode(b"nothing").decode()}, 422, "unsupported_type"),
        ("scratch", mask_file(SMALL), 400, "bad_mask"),
        ("scratch", mask_file(HIGH), 413, "too_many_pixels"),
        ("scratch", mask_file(0 * FULL), 400, "bad_mask"),
        ("good", mask_file(FULL), 400, "bad_mask"),
        ("dent", None, 400, "unknown_label"),
    ],
)
def test_invalid_labels_and_masks_are_rejected(defect, label, mask, status, code):
    answer = review(defect, label=label, mask=mask)
    assert problem(answer) == (status, code)
    if code == "unknown_label":
        assert "Expected one of: good, scratch, spot, unsure" in answer.json()["detail"]


NEXT, REVIEW = ("POST", "/v1/review/next"), ("PUT", "/v1/records/1/review")
MALFORMED = [
    (NEXT, b'{"session": "a", "count": 6}', 400, "bad_json"),
    (NEXT, b'{"session": "a", "skip": [99999999999999999999]}', 400, "bad_json"),
    (NEXT, b'{"session": "a", "skip": [' + b"1," * 1000 + b"1]}", 400, "bad_json"),
    (NEXT, b"[" * 20_000, 400, "bad_json"),
    (NEXT, b'"' + b"x" * 70_000 + b'"', 413, "body_too_large"),
    (REVIEW, b'{"label": "good", "reason": "\\u0000"}', 400, "bad_json"),
    (REVIEW, b'{"label": "good", "reviewer": "a\\nb"}', 400, "bad_json"),
    (REVIEW, b'{"label": "good", "mask": "x"}', 400, "bad_json"),
]


@pytest.mark.parametrize(("where", "body", "status", "code"), MALFORMED)
def test_malformed_bodies_are_rejected(defect, where, body, status, code):
    headers = {"Content-Type": "application/json", "If-Match": '"0"'}
    answer = defect.request(*where, content=body, headers=headers)
    assert problem(answer) == (status, code)


def test_a_missing_record_is_not_found(defect):
    for answer in (review(defect, 7), undo(defect, 7)):
        assert problem(answer) == (404, "record_not_found")


def test_an_administrator_deletes_a_picture_and_keys_name_client_and_reviewer(
    make_app, folder, role_keys, part
):
    secrets, files = role_keys
    keys = {role: {"X-API-Key": secret} for role, secret in secrets.items()}
    with ServiceClient(make_app(record="required", record_folder=folder, **files)) as client:
        for _ in range(2):
            client.post("/v1/inspect", content=part, headers=PNG | keys["api"])
        body, headers = {"label": "good", "reviewer": "Ada"}, {"If-Match": '"0"', **keys["review"]}
        record = client.request("PUT", "/v1/records/2/review", json=body, headers=headers).json()
        assert (record["client"], record["review"]["reviewer"]) == ("api", "review/Ada")
        assert client.request("DELETE", "/v1/records/1", headers=headers).status_code == 405
        admin = keys["admin"]
        assert client.request("DELETE", "/v1/admin/records/9/picture", headers=admin).status_code == 404
        for _ in range(2):
            answer = client.request("DELETE", "/v1/admin/records/1/picture", headers=admin)
            assert answer.json()["picture"]["state"] == "expired"
        picture = client.get("/v1/records/2", headers=admin).json()["picture"]  # of the same photograph
        assert (picture["state"], picture["deleted_by"]) == ("expired", "admin")
        deleted_at = datetime.fromisoformat(picture["deleted_at"])
        assert abs(datetime.now(UTC) - deleted_at) < timedelta(minutes=5)
        problem = client.get("/v1/records/2/image", headers=admin).json()
        words = f"The picture of record 2 was deleted by admin at {deleted_at:%Y-%m-%d %H:%M} UTC."
        assert (problem["code"], problem["detail"]) == ("picture_expired", words)
        assert not list((folder / PICTURES).glob("??/*"))
        assert rows(folder, "SELECT count(heat_map) FROM inspections") == [(0,)]
        assert rows(folder, "SELECT count(*) FROM review_queue") == [(0,)]
        assert rows(folder, "SELECT who, what FROM audit")[1:] == [("admin", "delete a picture")]
        assert rows(folder, "SELECT bytes FROM store") == [(0,)]


def test_statistics(line):
    for record_id, label in enumerate(("good", "scratch", "spot", "good"), 1):
        review(line, record_id, label)
    found = line.get("/v1/review/statistics").json()
    assert (found["inspected"], found["called_defective"], found["reviewed"]) == (4, 4, 4)
    assert found["false_alarm_share"] == {"value": 0.5, "low": 0.5, "high": 0.5}
    assert line.get("/v1/review/statistics?station=s1").json()["false_alarms"]["value"] == 1.0
    later = line.get("/v1/review/statistics?since=2990-01-01T00:00:00Z").json()
    assert later["inspected"] == 0 and later["false_alarm_share"]["value"] is None
    assert line.get("/v1/review/statistics?since=yesterday").status_code == 400


def test_the_image_as_the_network_saw_it(recorder):
    deep = np.full((24, 40), 1000, np.uint16)
    deep[8:12, 10:16] = 60_000
    picture = bytes(cv2.imencode(".png", deep)[1])
    recorder.post("/v1/inspect", content=picture, headers=PNG)
    assert recorder.get("/v1/records/1/image?form=sent").content == picture
    shown = recorder.get("/v1/records/1/image?form=png")
    assert shown.headers["Content-Type"] == "image/png"
    pixels = decode_image(shown.content, "shown")
    assert pixels.bit_depth == 8 and pixels.pixels.max() == 233
