"""The routes of data sets: a data set is filled, labelled and read again."""

import asyncio
import base64
import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.photograph_leases import release_all
from segdec.annotation_content import AnnotationContent
from segdec.images import decode_image, decode_mask_values, encode_png
from tests.api.conftest import PNG, problem
from tests.api.data_sets.conftest import SETS
from tests.api.data_sets.filled_data_set import EVERY_FIELD, mask_of, photograph_file
from tests.api.engineer_client import EngineerClient


def send(client, path, number, **query):
    answer = client.post(
        f"{path}/photographs", params=query, content=photograph_file(number).data, headers=PNG
    )
    assert answer.status_code in (200, 201), answer.text
    return answer.json()["photograph"]


def encode(mask):
    return base64.b64encode(encode_png(mask)).decode()


DENT = {"label": "dent", "mask": encode(mask_of((2, 2, 3), (255, 20, 30)))}


def test_a_data_set_is_created_and_changed(engineer, create):
    path = create("Brackets")
    assert problem(engineer.post(SETS, json={"name": "Brackets"})) == (409, "name_taken")
    changed = engineer.patch(path, json={"name": "Brackets 2", "add_classes": ["burr"]}).json()
    assert (changed["name"], changed["classes"]) == ("Brackets 2", ["scratch", "dent", "burr"])
    assert engineer.get(path).json() == changed
    assert "Brackets 2" in [one["name"] for one in engineer.get(SETS).json()["data_sets"]]
    assert problem(engineer.patch(path, json={"add_classes": ["OK"]})) == (400, "bad_class")
    assert problem(engineer.patch(path, json={"add_classes": ["no burr"]})) == (400, "bad_class")
    changes = engineer.get("/v1/audit").json()["changes"]
    assert [one["what"] for one in changes[:2]] == ["change a data set", "create a data set"]


def test_a_data_set_is_deleted_with_its_files(engineer, create):
    path = create("Housings")
    photograph = send(engineer, path, 77)
    folder = engineer.app.state.settings.record_folder
    stored = next((folder / "data_sets").glob(f"??/*{photograph['sha256']}*"))
    assert problem(engineer.delete(path)) == (400, "bad_parameter")
    assert problem(engineer.delete(path, params={"name": "Housing"})) == (400, "name_differs")
    answer = engineer.delete(path, params={"name": "Housings"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert not stored.exists()
    for gone in (path, f"{path}/photographs", f"{path}/photographs/{photograph['id']}", f"{path}/versions"):
        assert problem(engineer.get(gone)) == (404, "data_set_not_found")
    assert problem(engineer.delete(path, params={"name": "Housings"})) == (404, "data_set_not_found")


def test_a_photograph_is_stored_as_it_was_sent(engineer, create):
    path, file = create(), photograph_file(1)
    assert engineer.post(f"{path}/missing", json={"sha256": [file.sha256.hex()]}).json()["present"] == []
    first = engineer.post(f"{path}/photographs?name=line 3/a.png&part=7", content=file.data, headers=PNG)
    assert (first.status_code, first.json()["outcome"]) == (201, "added")
    again = engineer.post(f"{path}/photographs", files={"file": ("x.png", file.data)})
    assert (again.status_code, again.json()["outcome"]) == (200, "present")
    shown = first.json()["photograph"]
    assert again.json()["photograph"] == shown == engineer.get(f"{path}/photographs/{shown['id']}").json()
    assert (shown["name"], shown["part"], shown["format"]) == ("line 3/a.png", "7", "png")
    assert (shown["width"], shown["height"], shown["sha256"]) == (48, 32, file.sha256.hex())
    image = f"{path}/photographs/{shown['id']}/image"
    assert engineer.get(image).content == file.data
    assert engineer.get(image, params={"form": "png"}).headers["content-type"] == "image/png"
    thumbnail = engineer.get(image, params={"form": "thumbnail"})
    assert decode_image(thumbnail.content, "t").pixels.shape == (32, 48, 1)
    present = engineer.post(f"{path}/missing", json={"sha256": [file.sha256.hex()]}).json()
    assert present["missing"] == [] and present["present"][0]["id"] == shown["id"]


def test_a_photograph_is_sent_with_its_split(engineer, create):
    path, data = f"{create()}/photographs", photograph_file(1).data
    for word in ("Test", "test\n", "fold_0", "fold_11", "none", "", "a\0b"):
        refused = engineer.post(path, params={"split": word}, content=data, headers=PNG)
        assert problem(refused) == (400, "bad_parameter")
    assert engineer.get(path).json()["photographs"] == []
    sent = engineer.post(path, params={"split": "test"}, content=data, headers=PNG).json()["photograph"]
    assert sent["split"] == engineer.get(f"{path}/{sent['id']}").json()["split"] == "test"
    again = engineer.post(path, params={"split": "train"}, content=data, headers=PNG).json()
    assert (again["outcome"], again["photograph"]["split"]) == ("present", "test")


def test_thumbnails_of_large_photographs_are_small_and_have_their_colours(engineer, create):
    pixels = np.full((500, 1000, 3), (200, 30, 60), np.uint8)
    path = f"{create()}/photographs"
    sent = engineer.post(path, content=encode_png(pixels), headers=PNG).json()["photograph"]
    thumbnail = engineer.get(f"{path}/{sent['id']}/image?form=thumbnail").content
    decoded = decode_image(thumbnail, "t").pixels
    assert decoded.shape == (160, 320, 3)
    np.testing.assert_allclose(decoded.mean(axis=(0, 1)), (200, 30, 60), atol=3)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The file is not an image of a known type"),
        ("de", "Die Datei ist kein Bild eines bekannten Formats"),
    ],
)
def test_the_error_of_a_photograph_speaks_of_its_file_in_both_languages(engineer, create, language, text):
    headers = {**PNG, "Accept-Language": language}
    answer = engineer.post(f"{create()}/photographs", content=b"no photograph", headers=headers)
    assert text in answer.json()["detail"]


def test_photographs_are_checked_as_for_an_inspection(engineer, create):
    path, data = create(), photograph_file(1).data
    expected = {
        data[:-30]: (422, "truncated_image"),
        b"": (422, "empty_image"),
        b"no photograph": (422, "unsupported_type"),
        encode_png(np.zeros((10, 70_000), np.uint8)): (413, "too_many_pixels"),
    }
    for content, wanted in expected.items():
        assert problem(engineer.post(f"{path}/photographs", content=content, headers=PNG)) == wanted
    assert problem(engineer.post(f"{path}/photographs?name=a%00b", content=data, headers=PNG)) == (
        (400, "bad_parameter")
    )
    assert problem(engineer.post(f"{SETS}/999/photographs", content=data, headers=PNG)) == (
        (404, "data_set_not_found")
    )
    assert engineer.get(f"{path}/photographs").json()["photographs"] == []


def test_a_photograph_is_labelled(engineer, create):
    path = create()
    number = send(engineer, path, 1)["id"]
    photograph, mask = f"{path}/photographs/{number}", mask_of((1, 2, 3), (2, 10, 20), (255, 20, 30))
    body = {"label": "dent", "mask": encode(mask), "based_on": None}
    first = engineer.put(f"{photograph}/annotation", json=body)
    assert first.status_code == 200 and first.json()["label"] == "dent" and first.json()["has_mask"]
    stored = engineer.get(f"{photograph}/mask").content
    np.testing.assert_array_equal(decode_mask_values(stored, "m", classes=[1, 2, 255]), mask)
    conflict = {"label": "good", "based_on": None}
    assert problem(engineer.put(f"{photograph}/annotation", json=conflict)) == (409, "annotation_changed")
    seen = {**conflict, "based_on": first.json()["annotation_id"]}
    assert engineer.put(f"{photograph}/annotation", json=seen).json()["label"] == "good"
    history = engineer.get(f"{photograph}/annotations").json()["annotations"]
    assert [one["label"] for one in history] == ["good", "dent"]
    assert history[0]["author"] == "ada"
    assert engineer.get(f"{photograph}/mask?annotation={history[1]['id']}").content == stored
    assert problem(engineer.get(f"{photograph}/mask")) == (404, "no_mask")
    counts = engineer.get(path).json()["counts"]
    assert (counts["labelled"], counts["labels"]) == (1, {"good": 1})


def test_a_client_that_does_not_know_a_field_does_not_delete_it(engineer, create):
    path = create()
    photograph = f"{path}/photographs/{send(engineer, path, 1)['id']}"
    known, based_on = {"label": EVERY_FIELD.label, "mask": encode(mask_of((1, 2, 3)))}, None
    for body in ({**EVERY_FIELD.model_dump(), **known}, known):
        answer = engineer.put(f"{photograph}/annotation", json={**body, "based_on": based_on}).json()
        based_on = answer["annotation_id"]
        assert AnnotationContent.model_validate(answer) == EVERY_FIELD


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"label": "burr"}, (400, "unknown_label")),
        ({"label": "scratch", "mask": "no base64!"}, (400, "bad_base64")),
        ({"label": "scratch", "mask": ""}, (422, "empty_image")),
        ({"label": "good", "mask": encode(mask_of((1, 2, 3)))}, (400, "bad_mask")),
        ({"label": "scratch", "mask": encode(np.zeros((9999, 9999), np.uint8))}, (413, "too_many_pixels")),
        ({"label": "good", "source": "guessed"}, (400, "bad_json")),
        ({"label": "a\nb"}, (400, "bad_json")),
    ],
)
def test_invalid_annotations_are_rejected(engineer, create, body, expected):
    path = create()
    photograph = f"{path}/photographs/{send(engineer, path, 1)['id']}"
    assert problem(engineer.put(f"{photograph}/annotation", json={"based_on": None, **body})) == expected
    assert engineer.get(f"{photograph}/annotations").json()["annotations"] == []


def test_two_tabs_do_not_get_the_same_photograph(engineer, create):
    path = create()
    numbers = [send(engineer, path, number)["id"] for number in (1, 2)]

    def take(session):
        answer = engineer.post(f"{path}/next", json={"session": session}).json()
        return next((shown["id"] for shown in answer["photographs"]), None)

    assert [take("a"), take("b"), take("c"), take("a")] == [*numbers, None, numbers[0]]
    lease = f"{path}/photographs/{numbers[0]}/lease"
    assert problem(engineer.post(lease, json={"session": "c"})) == (409, "leased")
    assert engineer.delete(lease, params={"session": "a"}).status_code == 204
    assert engineer.post(lease, json={"session": "c"}).json()["photographs"][0]["id"] == numbers[0]
    assert engineer.delete(f"{path}/leases", params={"session": "c"}).status_code == 204
    assert take("b") == numbers[1]
    assert take("d") == numbers[0]


@pytest.mark.parametrize("asked", ["next", "photographs/{}/lease"])
def test_a_page_that_is_left_while_photographs_are_leased_keeps_none(engineer, create, monkeypatch, asked):
    path = create()
    asked = asked.format(send(engineer, path, 1)["id"])
    write = DataSetStore.write

    async def leave_before(store, change, *args, **words):
        if change is not release_all:
            left = await asyncio.to_thread(engineer.delete, f"{path}/leases", params={"session": "a"})
            assert left.status_code == 204
        return await write(store, change, *args, **words)

    def take(session):
        return len(engineer.post(f"{path}/{asked}", json={"session": session}).json()["photographs"])

    with monkeypatch.context() as patch:
        patch.setattr(DataSetStore, "write", leave_before)
        take("a")
    assert take("b") == 1


def test_a_removed_photograph_comes_back_when_it_is_sent_again(engineer, create):
    path = create()
    number = send(engineer, path, 1)["id"]
    removed = engineer.delete(f"{path}/photographs/{number}").json()
    assert removed["removed_at"] is not None
    assert engineer.get(f"{path}/photographs").json()["photographs"] == []
    assert engineer.get(f"{path}/photographs?state=removed").json()["photographs"][0]["id"] == number
    assert send(engineer, path, 1)["id"] == number
    assert engineer.get(path).json()["counts"]["removed"] == 0


def test_a_lost_file_is_reported(engineer, create):
    path, file = create(), photograph_file(77)
    number = send(engineer, path, 77)["id"]
    record = engineer.app.state.settings.record_folder
    digest = hashlib.sha256(file.data).hexdigest()
    (record / "data_sets" / digest[:2] / digest).unlink()
    image = f"{path}/photographs/{number}/image"
    assert problem(engineer.get(image)) == (404, "file_lost")
    send(engineer, path, 77)
    assert engineer.get(image).content == file.data


def test_files_are_beside_the_pictures_of_the_record(folder, bucket, object_store):
    with EngineerClient(folder, record_pictures=f"s3://{bucket}/line3/") as client:
        path = f"{SETS}/{client.post(SETS, json={'name': 'a'}).json()['id']}"
        number = send(client, path, 1)["id"]
        assert client.get(f"{path}/photographs/{number}/image").content == photograph_file(1).data
    digest = photograph_file(1).sha256.hex()
    assert f"line3/data_sets/{digest[:2]}/{digest}" in object_store.keys(bucket)
    assert not (folder / "data_sets").exists()


def test_data_sets_survive_a_restart(folder):
    with EngineerClient(folder) as client:
        path = f"{SETS}/{client.post(SETS, json={'name': 'a'}).json()['id']}"
        number = send(client, path, 1)["id"]
    left = folder / "data_sets/unsettled" / f"{'0' * 64}.1"
    left.write_bytes(b"of a crash")
    with EngineerClient(folder) as client:
        assert client.get(f"{path}/photographs/{number}/image").content == photograph_file(1).data
    assert not left.exists()
    (folder / "data_sets/store-id").write_text("another")
    with EngineerClient(folder) as client:
        answer = client.get(f"{path}/photographs/{number}/image")
        assert problem(answer) == (503, "record_unavailable")
        assert "belong to another record" in answer.json()["detail"]
        assert client.get("/v1/records").status_code == 200


# === Versions ===


def test_versions_are_made_fetched_and_compared(engineer, create):
    path = create()
    assert problem(engineer.post(f"{path}/versions", json={})) == (409, "nothing_labelled")
    numbers = [send(engineer, path, number, name=f"part {number}")["id"] for number in range(3)]
    for number, body in zip(numbers, ({"label": "good"}, DENT), strict=False):
        photograph = f"{path}/photographs/{number}/annotation"
        engineer.put(photograph, json={"based_on": None, **body})
    made = engineer.post(f"{path}/versions", json={"note": "first"})
    assert (made.status_code, made.json()["number"], made.json()["counts"]["photographs"]) == (201, 1, 2)
    manifest = engineer.get(f"{path}/versions/1/manifest")
    assert hashlib.sha256(manifest.content).hexdigest() == made.json()["digest"]
    lines = [json.loads(line) for line in manifest.text.splitlines()]
    assert [line["label"] for line in lines] == ["good", "dent"]
    for file in (lines[1]["image"], lines[1]["class_mask"]):
        digest = file.split("/")[1].split(".")[0]
        answer = engineer.get(f"{path}/versions/1/files/{digest}")
        assert hashlib.sha256(answer.content).hexdigest() == digest
        assert answer.headers["etag"] == f'"{digest}"'
        other = create()
        assert problem(engineer.get(f"{other}/versions/1/files/{digest}")) == (404, "version_not_found")
    engineer.put(f"{path}/photographs/{numbers[2]}/annotation", json={"label": "good", "based_on": None})
    engineer.post(f"{path}/versions", json={})
    assert [one["number"] for one in engineer.get(f"{path}/versions").json()["versions"]] == [2, 1]
    assert engineer.get(f"{path}/versions/1").json() == made.json()
    compared = engineer.get(f"{path}/versions/compare?from=1&to=2").json()
    assert (compared["added"], compared["unchanged"]) == (1, 2)
    assert problem(engineer.get(f"{path}/versions/compare?from=1&to=3")) == (404, "version_not_found")


def test_exports_are_files_with_a_name(engineer, create):
    path = create()
    photograph = f"{path}/photographs/{send(engineer, path, 1)['id']}/annotation"
    engineer.put(photograph, json={"based_on": None, **DENT})
    engineer.post(f"{path}/versions", json={})
    for form, file in (("folder", "manifest.jsonl"), ("coco", "annotations.json")):
        answer = engineer.get(f"{path}/versions/1/export?format={form}")
        assert f"version-1-{form}.zip" in answer.headers["content-disposition"]
        with zipfile.ZipFile(io.BytesIO(answer.content)) as exported:
            assert file in exported.namelist()
    assert problem(engineer.get(f"{path}/versions/1/export?format=csv")) == (400, "bad_parameter")
    digest = photograph_file(1).sha256.hex()
    lost = engineer.app.state.settings.record_folder / "data_sets" / digest[:2] / digest
    lost.rename(lost.with_suffix(".away"))
    try:
        assert problem(engineer.get(f"{path}/versions/1/files/{digest}")) == (404, "file_lost")
    finally:
        lost.with_suffix(".away").rename(lost)
    assert problem(engineer.get(f"{path}/versions/1/files/{digest[:-1]}x")) == (400, "bad_parameter")
    assert problem(engineer.get(f"{path}/versions/1/files/{'0' * 64}")) == (404, "file_not_found")
