"""Questions about an archive are answered without a second upload."""

import shutil
from asyncio import CancelledError
from datetime import UTC, datetime, timedelta
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from PIL import Image

from api.data_sets import archive_import
from api.data_sets.archive_import import ArchiveImport
from api.data_sets.unanswered_archives import STORAGE_TIME, UnansweredArchives
from api.errors import RequestError
from api.jobs import runner
from api.messages.causes import Cause, JobError
from segdec.images import decode_mask_values
from tests.api.conftest import problem
from tests.api.data_sets.conftest import SETS, wait_for_job
from tests.api.data_sets.test_import_routes import ZIP, archive
from tests.api.data_sets.test_imports import PARTS, labelme, png
from tests.api.engineer_client import EngineerClient
from tests.image_files import encode

pytestmark = pytest.mark.usefixtures("program_in_this_process")
NOW = datetime(2026, 5, 4, tzinfo=UTC)
UNCLEAR = {
    **PARTS,
    "parts/images/e.png": png(5),
    "parts/images/e.json": labelme("e.png", ("no burr", 1)),
    "parts/images/f.png": png(6),
    "parts/images/f.json": labelme("f.png", ("--clean", 1)),
}


def rotated(seed, width=20, height=12):
    """A photograph with EXIF orientation 6, which stands upright as width × height reversed."""
    exif = Image.Exif()
    exif[0x0112] = 6
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width), np.uint8)
    return encode(pixels, "PNG", exif=exif)


def drawn(width, height):
    """The mask of a defect in the rows 2 and 3 and the columns 5 to 7."""
    pixels = np.zeros((height, width), np.uint8)
    pixels[2:4, 5:8] = 255
    return pixels


@pytest.fixture
def record_folder(tmp_path):
    return tmp_path / "record"


@pytest.fixture
def engineer(record_folder):
    with EngineerClient(record_folder, import_gb=0.001) as client:
        yield client


@pytest.fixture
def imported(engineer, path, wait_for):
    """Imports an archive of these entries; returns the path of the import and the answer about it."""

    def run(entries):
        sent = engineer.post(f"{path}/archives?name=parts.zip", content=archive(entries), headers=ZIP)
        place = f"{path}/imports/{sent.json()['id']}"
        return place, wait_for(place)

    return run


@pytest.fixture
def answered(engineer, path, wait_for):
    """Answers the questions of an import; returns the path of the next import and the answer about it."""

    def answer(place, **answers):
        started = engineer.post(f"{place}/answers", json=answers)
        assert started.status_code == 202, started.text
        place = f"{path}/imports/{started.json()['id']}"
        return place, wait_for(place)

    return answer


def test_unclear_labels_are_answered_one_after_the_other(engineer, path, imported, answered, record_folder):
    place, shown = imported(UNCLEAR)
    assert (shown["state"], shown["result"]["left_out"]) == ("done", 2)
    assert shown["result"]["unclear_labels"] == ["--clean", "no burr"]
    assert all("Answer the question of the import" in one["text"] for one in shown["result"]["problems"])
    started, until = map(datetime.fromisoformat, (shown["started_at"], shown["answerable_until"]))
    assert until > started
    place, shown = answered(place, good_labels=["--clean"])
    assert (shown["name"], shown["result"]["present"], shown["result"]["labelled"]) == ("parts.zip", 4, 1)
    assert shown["result"]["unclear_labels"] == ["no burr"]
    place, shown = answered(place, defect_labels=["no burr"])
    assert shown["state"] == "done", shown
    assert shown["answers"] == {
        "good_labels": ["--clean"],
        "defect_labels": ["no burr"],
        "annotations_before_rotation": None,
    }
    assert (shown["result"]["unclear_labels"], shown["answerable_until"]) == ([], None)
    found = engineer.get(path).json()
    assert found["counts"]["labels"] == {"dent": 2, "good": 2, "no burr": 1, "scratch": 1}
    assert "no burr" in found["classes"]
    assert not list(record_folder.glob("unanswered_imports/*/*"))
    assert list((record_folder / "jobs").iterdir()) == []


def test_spellings_of_a_label_are_one_question(imported, answered):
    """The program compares answers without case and separators: two of them could contradict each other."""
    entries = {
        **UNCLEAR,
        "parts/images/g.png": png(7),
        "parts/images/g.json": labelme("g.png", ("No_Burr", 1)),
    }
    place, shown = imported(entries)
    assert shown["result"]["unclear_labels"] == ["--clean", "No_Burr"]
    _, shown = answered(place, good_labels=["No_Burr"], defect_labels=["--clean"])
    assert (shown["state"], shown["result"]["labelled"]) == ("done", 3), shown


def test_an_archive_without_a_usable_photograph_can_be_answered(imported, answered):
    entries = {name: content for name, content in UNCLEAR.items() if name.startswith("parts/images/e")}
    place, shown = imported(entries)
    assert (shown["state"], shown["result"]["unclear_labels"]) == ("failed", ["no burr"])
    assert answered(place, good_labels=["no burr"])[1]["result"]["labelled"] == 1


def test_a_class_that_may_mean_good_is_no_problem_of_the_check(engineer, path, imported, answered, wait_for):
    answered(imported(UNCLEAR)[0], defect_labels=["no burr", "--clean"])
    engineer.post(f"{path}/check")
    check = wait_for(f"{path}/check")
    assert (check["state"], check["checked"], check["findings"]) == ("done", 6, []), check


@pytest.mark.parametrize("height", [12, 20])  # the size shows the question, or only a warning
def test_the_rotation_of_annotations_is_answered(engineer, path, imported, answered, height):
    entries = {
        "parts/good/a.png": png(1),
        "parts/dent/b.png": rotated(7, 20, height),
        "parts/masks/dent/b.png": encode(drawn(20, height), "PNG"),
    }
    place, shown = imported(entries)
    assert shown["result"]["unclear_rotation"], shown
    _, shown = answered(place, annotations_before_rotation=True)
    assert (shown["state"], shown["result"]["labelled"]) == ("done", 1), shown
    assert not shown["result"]["unclear_rotation"]
    listed = engineer.get(f"{path}/photographs").json()["photographs"]
    (number,) = (one["id"] for one in listed if one["label"] == "dent")
    stored = engineer.get(f"{path}/photographs/{number}/mask").content
    mask = decode_mask_values(stored, "mask", classes=())
    np.testing.assert_array_equal(np.argwhere(mask)[[0, -1]], [(5, height - 4), (7, height - 3)])


def test_a_declined_rotation_is_not_asked_again(imported, answered):
    entries = {**PARTS, "parts/dent/b.png": rotated(7)}
    place, shown = imported(entries)
    assert shown["result"]["unclear_rotation"]
    _, shown = answered(place, annotations_before_rotation=False)
    assert (shown["result"]["unclear_rotation"], shown["answerable_until"]) == (False, None)
    assert shown["result"]["left_out"] == 1


def test_labels_that_people_gave_stay(engineer, path, imported, answered):
    square = {"parts/dent/b.png": rotated(7, 20, 20), "parts/masks/dent/b.png": encode(drawn(20, 20), "PNG")}
    entries = {**UNCLEAR, **square}
    place, _ = imported(entries)
    listed = engineer.get(f"{path}/photographs").json()["photographs"]
    (one,) = (one for one in listed if one["name"].endswith("dent/b"))
    sent = {"label": "scratch", "mask": None, "source": "drawn", "based_on": one["annotation_id"]}
    engineer.put(f"{path}/photographs/{one['id']}/annotation", json=sent)
    _, shown = answered(place, annotations_before_rotation=True)
    assert shown["result"]["kept"] == 1
    assert engineer.get(f"{path}/photographs/{one['id']}").json()["label"] == "scratch"


def test_labels_of_other_archives_stay(engineer, path, imported, answered):
    """The import has kept them, and so does the next one."""
    imported({"images/d.png": png(4), "images/d.json": labelme("d.png", ("scratch", 1))})
    place, shown = imported(UNCLEAR)
    assert (shown["result"]["labelled"], shown["result"]["kept"]) == (3, 1)
    before = engineer.get(path).json()["counts"]["labels"]
    place, _ = answered(place, good_labels=["no burr"])
    _, shown = answered(place, good_labels=["--clean"])
    assert engineer.get(path).json()["counts"]["labels"] == {**before, "good": before["good"] + 2}
    assert shown["result"]["kept"] == 1


def test_photographs_that_a_person_has_open_are_left_to_that_person(engineer, path, imported, answered):
    entries = {**UNCLEAR, "parts/dent/r.png": rotated(7, 20, 20)}
    entries["parts/masks/dent/r.png"] = encode(drawn(20, 20), "PNG")
    place, _ = imported(entries)
    for one in engineer.get(f"{path}/photographs").json()["photographs"]:
        opened = engineer.post(f"{path}/photographs/{one['id']}/lease", json={"session": "of a person"})
        assert opened.status_code == 200
    _, shown = answered(place, good_labels=["no burr"], annotations_before_rotation=True)
    assert shown["state"] == "done", shown
    assert (shown["result"]["labelled"], shown["result"]["kept"]) == (
        1,
        1,
    )  # the new one, and the rotated one


def test_bad_answers_are_refused_and_can_be_corrected(engineer, imported, answered, monkeypatch):
    place, _ = imported(UNCLEAR)
    for answers in (
        {},
        {"good_labels": ["dent"]},
        {"good_labels": ["no burr"], "defect_labels": ["no burr"]},
        {"good_labels": ["no burr", "no burr"]},
    ):
        answer = engineer.post(f"{place}/answers", json=answers)
        assert problem(answer) == (400, "bad_answers")
        assert "--clean, no burr" in answer.json()["detail"]
    assert problem(engineer.post(f"{place}/answers", json={"good": ["no burr"]})) == (400, "bad_json")
    with monkeypatch.context() as full:
        full.setattr(runner, "MAX_WAITING", 0)
        sent = {"good_labels": ["no burr"]}
        assert problem(engineer.post(f"{place}/answers", json=sent)) == (503, "jobs_full")
    assert answered(place, good_labels=["no burr"])[1]["state"] == "done"
    again = engineer.post(f"{place}/answers", json={"good_labels": ["no burr"]})  # of a second tab
    assert problem(again) == (409, "archive_deleted")


def test_questions_survive_a_restart_and_end_with_the_data_set(record_folder):
    with EngineerClient(record_folder) as first:
        number = first.post(SETS, json={"name": "Brackets", "classes": []}).json()["id"]
        path = f"{SETS}/{number}"
        sent = first.post(f"{path}/archives", content=archive(UNCLEAR), headers=ZIP).json()
        shown = wait_for_job(first, f"{path}/imports/{sent['id']}")
        assert shown["result"]["unclear_labels"]
    with EngineerClient(record_folder) as second:
        assert second.get(f"{path}/imports").json()["imports"] == [shown]
        assert second.delete(f"{path}?name=Brackets").status_code == 204
    assert not list(record_folder.glob("unanswered_imports/*"))


@pytest.mark.parametrize("failure", [JobError("It failed.", Cause(code="reading_memory")), CancelledError()])
def test_an_import_with_answers_that_fails_can_be_repeated(imported, answered, monkeypatch, failure):
    place, _ = imported(UNCLEAR)
    sent = {"good_labels": ["no burr"], "defect_labels": ["--clean"]}
    with monkeypatch.context() as failing:
        failing.setattr(archive_import, "run_datasets", AsyncMock(side_effect=failure))
        assert answered(place, **sent)[1]["state"] == "failed"
    _, shown = answered(place, **sent)
    assert (shown["state"], shown["result"]["labelled"]) == ("done", 2)


def test_answers_while_no_job_can_be_stored_are_to_be_repeated(engineer, imported, answered, record_folder):
    place, _ = imported(UNCLEAR)
    jobs = record_folder / "jobs"
    jobs.rmdir()
    jobs.touch()  # no folder can be created in it, as on a full disk
    sent = {"good_labels": ["no burr"]}
    assert problem(engineer.post(f"{place}/answers", json=sent)) == (507, "no_space")
    jobs.unlink()
    assert answered(place, **sent)[1]["state"] == "done"


def test_no_archive_of_a_data_set_that_is_deleted_meanwhile_is_stored(
    engineer, imported, record_folder, monkeypatch
):
    place, _ = imported(UNCLEAR)
    deleted = RequestError(404, "data_set_not_found", "There is no such data set.")
    monkeypatch.setattr(ArchiveImport, "start_row", Mock(side_effect=deleted))
    answer = engineer.post(f"{place}/answers", json={"good_labels": ["no burr"]})
    assert problem(answer) == (404, "data_set_not_found")
    assert not list(record_folder.glob("unanswered_imports/*/*"))


# === Storage ===


@pytest.fixture
def archives(tmp_path):
    """Stores at most 100 bytes; the import `n` is added `n` minutes after `NOW` with 40 bytes."""
    stored = UnansweredArchives(tmp_path / "unanswered", max_bytes=100)

    def add(number):
        unpacked = tmp_path / "unpacked"
        (unpacked / "parts").mkdir(parents=True)
        (unpacked / "parts/a.png").write_bytes(bytes(40))
        stored.add(1, number, unpacked, NOW + timedelta(minutes=number))

    stored.add_example = add
    return stored


def numbers_of(archives):
    return [number for number in range(10) if archives.answerable_until(1, number) is not None]


def test_archives_are_deleted_after_a_day(archives):
    archives.add_example(1)
    archives.add_example(2)
    assert archives.answerable_until(1, 2) == NOW + timedelta(minutes=2) + STORAGE_TIME
    archives.delete_old(NOW + timedelta(minutes=1) + STORAGE_TIME)
    assert numbers_of(archives) == [1, 2]
    archives.delete_old(NOW + timedelta(minutes=1, seconds=1) + STORAGE_TIME)
    assert numbers_of(archives) == [2]


def test_the_newest_archives_that_fit_are_stored(archives):
    for number in (1, 2, 3):
        archives.add_example(number)
    assert numbers_of(archives) == [2, 3]


def test_an_archive_is_taken_once(archives, tmp_path):
    archives.add_example(1)
    archives.take(1, 1, tmp_path / "job")
    assert (tmp_path / "job/parts/a.png").is_file()
    with pytest.raises(RequestError, match="The import 1 has no open question") as raised:
        archives.take(1, 1, tmp_path / "other")
    assert raised.value.values == {"number": 1, "hours": 24}


def test_an_archive_that_is_being_deleted_cannot_be_taken(archives, tmp_path, monkeypatch):
    """Otherwise some of its photographs would be missing."""
    archives.add_example(1)
    delete, deleted = shutil.rmtree, []

    def take_and_delete(path, **words):
        with pytest.raises(RequestError, match="The import 1 has no open question"):
            archives.take(1, 1, tmp_path / "job")
        deleted.append(path)
        delete(path, **words)

    monkeypatch.setattr(shutil, "rmtree", take_and_delete)
    archives.delete_old(NOW + 2 * STORAGE_TIME)
    assert len(deleted) == 1 and not list((tmp_path / "unanswered/1").iterdir())
