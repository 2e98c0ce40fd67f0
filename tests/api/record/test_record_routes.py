"""Routes of the record: pages, pictures, masks, and the table of a day."""

import base64
import csv
import io
import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import cv2
import numpy as np
import pyarrow.parquet
import pytest
import segno

from api.record.initialization import DATABASE, PICTURES
from api.record.table_export import day_filters
from datasets.loading import load_dataset
from datasets.reading import read
from segdec.images import decode_image, encode_png
from segdec.imaging.overlay import draw_overlay
from tests.api.conftest import PNG, ServiceClient, part_image, problem

GOOD = encode_png(part_image(brightness=90))


def fill(client, part):
    """Inspects five parts: two of station a, two of b, one without; the second is good."""
    asked = [(part, "?station=a&part_id=1"), (GOOD, "?station=a&part_id=2"), (part, "?station=b&part_id=3")]
    for number, (body, query) in enumerate([*asked, (part, "?station=b"), (part, "")], 1):
        answer = client.post(f"/v1/inspect{query}", content=body, headers=PNG)
        assert answer.json()["record_id"] == number


@pytest.fixture
def line(recorder, part):
    fill(recorder, part)
    return recorder


@pytest.fixture(scope="module")
def filled(unchanged, part):
    fill(unchanged, part)
    return unchanged


def ids(client, query=""):
    return [record["record_id"] for record in client.get(f"/v1/records{query}").json()["records"]]


def test_pages_begin_with_the_newest_record(filled):
    before = ""
    for found in ([5, 4], [3, 2], [1]):
        page = filled.get(f"/v1/records?limit=2{before}").json()
        assert [record["record_id"] for record in page["records"]] == found
        before = f"&before={page['next_before']}"
    assert page["next_before"] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        *(("?station=a", [2, 1]), ("?station=", [5]), ("?label=good", [2]), ("?part_id=3", [3])),
        *(("?station=b&label=good", []), ("?reviewed=false&station=b", [4, 3]), ("?reviewed=true", [])),
    ],
)
def test_records_are_filtered(filled, query, found):
    assert ids(filled, query) == found


def test_records_are_filtered_by_time(filled):
    now = datetime.now(UTC)
    soon, before = ((now + timedelta(hours=shift)).strftime("%Y-%m-%dT%H:%M:%SZ") for shift in (1, -1))
    assert ids(filled, f"?since={before}&until={soon}&station=a") == [2, 1]
    assert ids(filled, f"?until={before}") == ids(filled, f"?since={soon}") == []


def test_a_record_contains_the_answer(recorder, predictor):
    predictor.review = 0.1
    query = "station=a&part_id=1&metadata=%7B%22lot%22%3A7%7D"
    sent = recorder.post(f"/v1/inspect?{query}", content=GOOD, headers=PNG).json()
    record = recorder.get("/v1/records/1").json()
    del sent["record_id"], sent["repeated"]
    assert record["answer"] == {**sent, "mask": None}
    assert (record["station"], record["part_id"], record["metadata"]) == ("a", "1", {"lot": 7})
    assert record["picture"]["bytes"] == len(GOOD) and record["picture"]["state"] == "kept"
    assert record["draw"] == {"drawn": True, "reason": "review", "probability": 1.0}
    assert record["review"] is None and record["revision"] == 0


def test_image_mask_and_overlay_of_a_record(filled, part):
    image = filled.get("/v1/records/1/image")
    assert (image.headers["Content-Type"], image.content) == ("image/png", part)
    predicted = filled.post("/v1/predict", content=part, headers={**PNG, "Accept": "image/png"})
    assert filled.get("/v1/records/1/mask").content == predicted.content
    overlay = decode_image(filled.get("/v1/records/1/overlay").content, "overlay").pixels
    mask = decode_image(predicted.content, "mask").pixels[..., 0]
    np.testing.assert_array_equal(overlay, draw_overlay(decode_image(part, "part").pixels, mask))
    for side, shape in ((16, (10, 16, 3)), (4000, (24, 40, 3))):
        overlay = filled.get(f"/v1/records/1/overlay?side={side}")
        assert decode_image(overlay.content, "overlay").pixels.shape == shape


def state_of_first(folder):
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        return database.execute(
            "SELECT p.state FROM inspections i JOIN pictures p ON i.picture = p.sha256 WHERE i.id = 1"
        ).fetchone()[0]


def test_a_lost_picture_is_reported_and_can_be_stored_again(line, folder, part):
    for path in (folder / PICTURES).glob("??/*"):
        path.unlink()
    for _ in range(2):
        answer = line.get("/v1/records/1/image")
        assert problem(answer) == (404, "picture_lost")
    assert state_of_first(folder) == "lost"
    assert line.get("/v1/records/1/mask").status_code == 200
    assert "segdec_record_lost_pictures_total 1.0" in line.get("/metrics").text
    line.post("/v1/inspect?station=new", content=part, headers=PNG)
    assert line.get("/v1/records/1/image").content == part
    assert state_of_first(folder) == "kept"


def test_a_picture_that_arrives_again_is_not_lost(line, folder, part, monkeypatch):
    monkeypatch.setattr("api.record.storage.pictures.FolderPictures.get", lambda *_: None)
    assert line.get("/v1/records/1/image").status_code == 404
    monkeypatch.undo()
    assert state_of_first(folder) == "kept"
    assert line.get("/v1/records/1/image").content == part


def test_a_missing_folder_loses_no_picture(line, folder):
    (folder / PICTURES).rename(folder / "elsewhere")
    rejected = line.post("/v1/inspect", content=encode_png(part_image(brightness=150)), headers=PNG)
    for answer in (line.get("/v1/records/1/image"), rejected):
        assert problem(answer) == (503, "record_unavailable")
    assert "its pictures cannot be written" in rejected.json()["detail"]
    assert state_of_first(folder) == "kept"


@pytest.mark.parametrize("state", ["expiring", "expired"])
def test_an_expired_picture_is_reported(line, folder, state):
    """Even while its file still exists."""
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute("UPDATE pictures SET state = ?", [state])
    for path in ("image", "overlay"):
        assert problem(line.get(f"/v1/records/1/{path}")) == (404, f"picture_{state}")
    assert line.get("/v1/records/1").json()["picture"]["state"] == state


@pytest.mark.parametrize("rows", [2, 2000])
def test_the_table_of_a_day(filled, monkeypatch, rows):
    monkeypatch.setattr("api.record.table_export.ROWS", rows)
    day = datetime.now(UTC).date().isoformat()
    answer = filled.get(f"/v1/records/days/{day}")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="segdec-inspections-{day}.csv"'
    found = [(row["record_id"], row["label"]) for row in csv.DictReader(io.StringIO(answer.text))]
    assert found == [(str(number), "good" if number == 2 else "scratch") for number in (5, 4, 3, 2, 1)]
    parquet = filled.get(f"/v1/records/days/{day}?format=parquet&station=a").content
    table = pyarrow.parquet.read_table(io.BytesIO(parquet))
    assert table["record_id"].to_pylist() == [2, 1]
    assert table["station"].to_pylist() == ["a", "a"]
    assert table["inspected_at"].type.tz == "UTC"


def test_a_table_as_csv_contains_no_formulas(recorder):
    query = "station=%3D1%2B1&part_id=-7"
    recorder.post(f"/v1/inspect?{query}", content=GOOD, headers=PNG)
    path = f"/v1/records/days/{datetime.now(UTC).date().isoformat()}"
    (row,) = csv.DictReader(io.StringIO(recorder.get(path).text))
    assert (row["station"], row["part_id"]) == ("'=1+1", "'-7")
    assert float(row["log_odds"]) < 0
    table = pyarrow.parquet.read_table(io.BytesIO(recorder.get(f"{path}?format=parquet").content))
    assert table["station"].to_pylist() == ["=1+1"]


def test_a_day_begins_at_the_midnight_of_its_zone(filled):
    filters = day_filters(date(2026, 10, 25), ZoneInfo("Europe/Berlin"), "a")
    assert filters.since == datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert filters.until == datetime(2026, 10, 25, 23, tzinfo=UTC)  # clocks go back that night
    far = datetime.now(UTC).date() + timedelta(days=2)
    assert filled.get(f"/v1/records/days/{far}?zone=Europe/Berlin").text.count("\n") == 1


@pytest.mark.parametrize(
    "path",
    [
        *("records/0", f"records/{2**63}", "records?station=%00", "records?since=2026-01-01"),
        *("records?since=0001-01-01T00:00:00Z", "records?before=99999999999999999999"),
        *("records/days/9999-12-31", "records/days/2026-01-01?zone=Mars"),
        *("records/days/2026-01-01?format=xls", "records/1/overlay?side=0", "records/1/image?form=gif"),
        *("line?station=a%00", f"line?station={'a' * 129}"),
    ],
)
def test_invalid_parameters_are_rejected(filled, path):
    assert problem(filled.get(f"/v1/{path}")) == (400, "bad_parameter")


def test_a_missing_record_is_not_found(filled):
    for path in ("", "/image", "/mask", "/overlay"):
        assert problem(filled.get(f"/v1/records/7{path}")) == (404, "record_not_found")


def test_without_a_record_there_are_no_routes_for_it(client, part):
    for path in ("/v1/records", "/v1/line", "/line"):
        assert client.get(path).status_code == 404
    answer = client.post("/v1/inspect", content=part, headers=PNG).json()
    assert answer["record_id"] is None
    assert answer["warnings"] == ["This inspection is not recorded: the service keeps no record."]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        *(("?verdict=defect", [5, 4, 3, 1]), ("?verdict=defect&station=a", [1]), ("?verdict=good", [2])),
        *(("?reviewer=Ada", []), ("?version=7", []), ("?metadata=lot:4711", []), ("?station=%25", [])),
    ],
)
def test_records_are_searched(filled, query, found):
    assert ids(filled, query) == found


def test_records_are_searched_by_metadata(recorder, part):
    for lot in ("L1", "a:b"):
        query = urlencode({"metadata": json.dumps({"lot": lot, "mould": 3})})
        recorder.post(f"/v1/inspect?{query}", content=part, headers=PNG)
    assert ids(recorder, "?metadata=lot:L1") == [1]
    assert ids(recorder, "?metadata=lot:a:b&verdict=defect") == [2]
    assert ids(recorder, "?metadata=mould:3") == [2, 1]
    names = recorder.get("/v1/records/names").json()
    assert names == {"stations": [""], "labels": ["scratch"], "reviewers": [], "metadata": ["lot", "mould"]}


def test_names_of_stations_are_searched(recorder, part):
    for number, station in enumerate(("Hall1-cam1", "hall1-cam2", "hall2-cam1", "50%_a", "50x_a")):
        recorder.post(
            f"/v1/inspect?{urlencode({'station': station, 'part_id': number})}", content=part, headers=PNG
        )

    def stations(text):
        return recorder.get(f"/v1/records/names?{urlencode({'station': text})}").json()["stations"]

    assert stations("HALL1") == ["Hall1-cam1", "hall1-cam2"]
    assert stations("cam1") == ["Hall1-cam1", "hall2-cam1"]
    assert stations("0%_") == ["50%_a"] and stations("none") == []
    assert problem(recorder.get("/v1/records/names?station=%00")) == (400, "bad_parameter")
    names = recorder.get("/v1/records/names?station=none").json()
    assert names["labels"] == ["scratch"]


@pytest.mark.parametrize(
    "query", ["metadata=lot", "metadata=:7", "metadata=lot:", "verdict=bad", "version=%00"]
)
def test_a_malformed_search_is_rejected(filled, query):
    assert problem(filled.get(f"/v1/records?{query}")) == (400, "bad_parameter")


def test_the_heat_map_of_a_defect_covers_its_photograph(filled, part):
    headers = {**PNG, "Accept": "image/png"}
    asked = filled.post("/v1/predict?mask=scores", content=part, headers=headers)
    scores = decode_image(asked.content, "scores").pixels[..., 0]
    found = decode_image(filled.get("/v1/records/1/heat-map").content, "heat map").pixels[..., 0]
    assert (found.shape, scores.shape) == ((3, 5), (24, 40))
    np.testing.assert_allclose(found, cv2.resize(scores, (5, 3), interpolation=cv2.INTER_AREA), atol=1)
    assert filled.get("/v1/records/1").json()["has_heat_map"]


def test_a_good_part_that_is_not_sampled_has_no_heat_map(make_app, folder):
    shares = {"record_good_share": 0, "record_sample_share": 0, "record_near": 1}
    with ServiceClient(make_app(record="required", record_folder=folder, **shares)) as client:
        client.post("/v1/inspect", content=GOOD, headers=PNG)
        assert client.get("/v1/records/1").json()["has_heat_map"] is False
        assert problem(client.get("/v1/records/1/heat-map")) == (404, "no_heat_map")


def test_the_qr_code_has_the_address_of_the_page(make_app, folder, part, key_files, monkeypatch):
    asked = []
    make = segno.make
    monkeypatch.setattr("segno.make", lambda text, **words: asked.append(text) or make(text, **words))
    for public_url in (None, "https://plant/inspect"):
        settings = {"record": "required", "record_folder": folder, "public_url": public_url}
        with ServiceClient(make_app(**settings, review_keys=key_files["review_keys"])) as client:
            client.post("/v1/inspect", content=part, headers=PNG)
            answer = client.get("/v1/records/1/qr-code", headers={"X-API-Key": "review"})
            assert answer.headers["Content-Type"] == "image/svg+xml" and "<svg xmlns" in answer.text
    assert asked[0].endswith("/parts/1") and asked[1] == "https://plant/inspect/parts/1"


def test_the_changes_of_a_record_name_people(recorder, part):
    recorder.post("/v1/inspect", content=part, headers=PNG)
    png = base64.b64encode(encode_png(np.full((24, 40), 255, np.uint8))).decode()
    sent = {"label": "spot", "reviewer": "Ada", "reason": "<b>=1+1", "mask": {"png": png}}
    answer = recorder.request("PUT", "/v1/records/1/review", json=sent, headers={"If-Match": '"0"'})
    assert answer.status_code == 200
    (change,) = recorder.get("/v1/records/1/audit").json()["changes"]
    assert recorder.get("/v1/audit?who=Ada").json() == {"changes": [change], "next_before": None}
    assert recorder.get("/v1/audit?who=Eva").json()["changes"] == []
    assert (change["who"], change["what"]) == ("Ada", "review")
    assert change["before"]["reviewed_label"] is None and change["before"]["reviewed_mask"] is False
    assert (change["after"]["reviewed_label"], change["after"]["reviewed_mask"]) == ("spot", True)
    assert problem(recorder.get("/v1/records/9/audit")) == (404, "record_not_found")


def test_a_search_is_exported_as_a_table(filled):
    answer = filled.get("/v1/records/export?station=a&format=csv&until=2999-01-31T06:00:00Z")
    name = "segdec-inspections-until-2999-01-31-0600-a.csv"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert [row["record_id"] for row in csv.DictReader(io.StringIO(answer.text))] == ["2", "1"]
    parquet = filled.get("/v1/records/export?verdict=defect&format=parquet").content
    assert pyarrow.parquet.read_table(io.BytesIO(parquet))["record_id"].to_pylist() == [5, 4, 3, 1]


def test_a_search_is_exported_as_a_data_set(line, part, tmp_path):
    sent = {"label": "spot", "reviewer": "Ada"}
    line.request("PUT", "/v1/records/3/review", json=sent, headers={"If-Match": '"0"'})
    answer = line.get("/v1/records/export?since=2020-01-01T00:00:00Z&format=coco")
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        file.extractall(tmp_path / "data")
    assert (tmp_path / "data/images/1.png").read_bytes() == part
    dataset = load_dataset("coco", str(tmp_path / "data"))
    assert set(dataset.classes) == {"good", "scratch", "spot"}
    masks = {record.name.rpartition("/")[2]: read(record) for record in dataset.items}
    assert {name: dataset.classes[one.label] for name, one in masks.items()} == {
        **dict.fromkeys(("1", "4", "5"), "scratch"),
        "2": "good",
        "3": "spot",
    }
    predicted = line.get("/v1/records/1/mask").content
    np.testing.assert_array_equal(masks["1"].mask > 0, decode_image(predicted, "mask").pixels[..., 0] > 0)


def test_a_reviewed_class_replaces_those_of_a_predicted_mask(make_app, folder, predictor, part):
    predictor.spot_from = 20
    with ServiceClient(make_app(record="required", record_folder=folder)) as client:
        client.post("/v1/inspect", content=part, headers=PNG)
        label = client.get("/v1/records/1").json()["answer"]["decision"]["label"]
        other = {"scratch": "spot", "spot": "scratch"}[label]
        for expected in (label, other):
            with zipfile.ZipFile(io.BytesIO(client.get("/v1/records/export?format=coco").content)) as file:
                found = json.loads(file.read("annotations.json"))
            assert [category["name"] for category in found["categories"]] == [expected]
            sent = {"label": other, "reviewer": "Ada"}
            client.request("PUT", "/v1/records/1/review", json=sent, headers={"If-Match": '"0"'})
