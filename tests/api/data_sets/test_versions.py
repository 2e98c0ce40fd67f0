"""Versions of a data set: they never change, and `datasets` reads their exports."""

import io
import json
import zipfile

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from api.data_sets import versions
from api.data_sets.definitions import change_data_set
from api.data_sets.photographs import remove_photograph
from api.data_sets.version_comparison import compare_versions
from api.data_sets.version_export import export_version
from api.data_sets.versions import find_exported, find_file, list_versions, read_manifest, show_version
from api.database.database import write_transaction
from api.errors import RequestError
from datasets.loading import load_dataset
from datasets.reading import read
from tests.api.data_sets.filled_data_set import NOW, mask_of, photograph_file
from tests.api.record.databases import both_databases

MASK = mask_of((1, 2, 3), (2, 10, 20), (255, 20, 30))


@pytest.fixture
def labelled(filled):
    """Photographs: good, good with an ignored area, two classes, boxes, a class alone, ignore, no label."""
    ids = [filled.add(number, part="plate 7" if number in (0, 1) else "").id for number in range(7)]
    filled.annotate(ids[0], "good")
    filled.annotate(ids[1], "good", mask_of((255, 2, 3)))
    filled.annotate(ids[2], "dent", MASK)
    filled.annotate(ids[3], "scratch", mask_of((1, 8, 8)), is_boxes=True)
    filled.annotate(ids[4], "scratch")
    filled.annotate(ids[5], "ignore")
    return filled


def code_of(refusal):
    return refusal.value.status, refusal.value.code


def manifest_of(filled, number):
    return filled.stored.get(bytes.fromhex(filled.read(show_version, number).digest))


@both_databases
def test_a_version_has_the_labelled_photographs(labelled):
    assert labelled.make_version("first") == 1
    entries = read_manifest(manifest_of(labelled, 1))
    assert [(one["name"], one["label"]) for one in entries] == [
        ("0", "good"),
        ("1", "good"),
        ("2", "dent"),
        ("3", "scratch"),
        ("4", "scratch"),
    ]
    assert [one.get("group") for one in entries] == ["plate 7", "plate 7", None, None, None]
    assert entries[0]["image"] == f"photographs/{photograph_file(0).sha256.hex()}.png"
    (shown,) = labelled.read(list_versions).versions
    assert (shown.number, shown.note, shown.classes) == (1, "first", ["scratch", "dent"])
    expected = {"photographs": 5, "labels": {"dent": 1, "good": 2, "scratch": 2}, "masks": 3, "parts": 4}
    assert shown.counts.model_dump() == expected


def test_equal_content_is_the_same_version(labelled):
    number = labelled.add(0).id
    assert [labelled.make_version(), labelled.make_version("again")] == [1, 1]
    labelled.write(remove_photograph, number, "Ada", NOW)
    assert labelled.make_version() == 2
    labelled.add(0)
    assert labelled.make_version() == 3
    digests = [labelled.read(show_version, version).digest for version in (1, 2, 3)]
    assert digests[0] == digests[2] != digests[1]
    with write_transaction(labelled.engine) as connection:
        change_data_set(connection, labelled.id, None, ["burr"], False, "Ada")
    assert labelled.make_version() == 4
    assert labelled.read(show_version, 3).classes == ["scratch", "dent"]


def test_the_newest_versions_are_listed(labelled, monkeypatch):
    monkeypatch.setattr(versions, "MAX_LISTED", 2)
    for number in range(3):
        assert labelled.make_version() == number + 1
        labelled.write(remove_photograph, number + 1, "Ada", NOW)
    assert [version.number for version in labelled.read(list_versions).versions] == [3, 2]
    assert labelled.read(show_version, 1).number == 1


def test_later_changes_do_not_change_a_version(labelled):
    labelled.make_version()
    before = manifest_of(labelled, 1)
    labelled.write(remove_photograph, 1, "Ada", NOW)
    latest = labelled.annotate(3, "scratch", mask_of((1, 2, 3)), based_on=3)
    labelled.annotate(3, None, based_on=latest)
    assert manifest_of(labelled, 1) == before
    for entry in read_manifest(before):
        for path in filter(None, (entry["image"], entry.get("class_mask"))):
            digest = bytes.fromhex(path.split("/")[1].split(".")[0])
            assert labelled.stored.contains(digest) and labelled.read(find_file, digest)["format"] == "png"


@both_databases
@pytest.mark.parametrize("change", ["UPDATE {} SET note = 'x'", "DELETE FROM {}"])
def test_versions_cannot_be_changed(labelled, change):
    labelled.make_version()
    with pytest.raises(DBAPIError, match="append-only"), write_transaction(labelled.engine) as connection:
        connection.execute(text(change.format("data_set_versions")))


def test_versions_are_compared(labelled):
    labelled.make_version()
    labelled.write(remove_photograph, 1, "Ada", NOW)
    labelled.annotate(2, "scratch", mask_of((1, 2, 3)), based_on=2)
    labelled.annotate(3, "dent", mask_of((2, 2, 3)), based_on=3)
    labelled.annotate(7, "good")
    labelled.make_version()
    manifests = [(number, manifest_of(labelled, number)) for number in (1, 2)]
    found = compare_versions(*manifests)
    kinds = ("added", "removed", "relabelled", "masks_changed", "unchanged")
    assert [getattr(found, kind) for kind in kinds] == [1, 1, 1, 2, 2] and found.splits_changed == 0
    changes = [(one.name, one.label_before, one.label_after, one.mask_changed) for one in found.photographs]
    assert changes == [
        ("0", "good", None, False),
        ("1", "good", "scratch", True),
        ("2", "dent", "dent", True),
        ("6", None, "good", False),
    ]
    assert compare_versions(manifests[0], manifests[0]).unchanged == 5


def test_a_comparison_names_photographs_whose_split_changed():
    entries = [
        {"image": f"photographs/{number:064x}.png", "label": "good", "name": str(number)}
        for number in range(4)
    ]
    splits = ({0: "train", 1: "train", 2: "train"}, {0: "train", 1: "test", 3: "test"})
    lines = (
        [{**entry, "split": stated[n]} if n in stated else entry for n, entry in enumerate(entries)]
        for stated in splits
    )
    first, second = ("".join(json.dumps(entry) + "\n" for entry in version).encode() for version in lines)
    found = compare_versions((1, first), (2, second))
    assert (found.splits_changed, found.unchanged, found.masks_changed) == (3, 1, 0)
    assert [(one.name, one.split_changed) for one in found.photographs] == [
        ("1", True),
        ("2", True),
        ("3", True),
    ]


def test_a_mask_that_becomes_boxes_is_changed():
    entry = {"image": "photographs/0a.png", "label": "dent", "name": "a", "class_mask": "masks/0b.png"}
    first, second = (json.dumps(each).encode() for each in (entry, {**entry, "supervision": "box"}))
    found = compare_versions((1, first), (2, second))
    assert (found.masks_changed, found.unchanged) == (1, 0)


def test_a_photograph_of_another_part_or_name_is_changed():
    entry = {"image": "photographs/0a.png", "label": "good", "name": "a", "group": "plate 1"}
    second = [{**entry, "group": "plate 2"}, {**entry, "image": "photographs/0b.png", "name": "c"}]
    first = [entry, {**entry, "image": "photographs/0b.png", "name": "b"}]
    contents = ("\n".join(map(json.dumps, version)).encode() for version in (first, second))
    found = compare_versions(*enumerate(contents, 1))
    assert (found.parts_changed, found.renamed, found.unchanged) == (1, 1, 0)
    changes = [(one.name, one.part_changed, one.name_before) for one in found.photographs]
    assert changes == [("a", True, "a"), ("c", False, "b")]


# === Exports ===


def export(filled, form, folder, number=1):
    version = filled.read(find_exported, number)
    content = b"".join(export_version(version, form, filled.stored))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.testzip() is None
        file.extractall(folder)


def test_datasets_reads_an_exported_folder(labelled, tmp_path):
    labelled.make_version()
    export(labelled, "folder", tmp_path / "out")
    dataset = load_dataset("manifest", tmp_path / "out")
    assert dataset.classes == ("good", "scratch", "dent") and not dataset.problems
    records = {record.name: record for record in dataset.items}
    assert [record.label for record in dataset.items] == [0, 0, 2, 1, 1]
    assert [records[name].supervision for name in "01234"] == ["mask", "mask", "mask", "box", "label"]
    assert [records[name].group for name in "012"] == ["plate 7", "plate 7", "2"]
    assert records["0"].image_file.read_bytes() == photograph_file(0).data
    sample = read(records["2"])
    np.testing.assert_array_equal(sample.mask > 0, (MASK == 1) | (MASK == 2))
    np.testing.assert_array_equal(sample.classes[sample.mask > 0], MASK[(MASK == 1) | (MASK == 2)])
    np.testing.assert_array_equal(sample.ignored > 0, MASK == 255)
    good = read(records["1"])
    assert not good.mask.any() and (good.ignored > 0).sum() == 16


def test_an_exported_class_that_may_mean_good_stays_a_class(labelled, tmp_path):
    with write_transaction(labelled.engine) as connection:
        connection.execute(text('UPDATE data_sets SET classes = \'["no burr", "dent"]\''))
        connection.execute(text("UPDATE data_set_photographs SET label = 'no burr' WHERE label = 'scratch'"))
    labelled.make_version()
    export(labelled, "folder", tmp_path / "out")
    dataset = load_dataset("manifest", tmp_path / "out")
    assert dataset.problems == ()
    assert dataset.classes == ("good", "no burr", "dent")
    classes = read(dataset.items[2]).classes
    assert [{*classes[value == MASK].tolist()} for value in (1, 2)] == [{1}, {2}]


def test_datasets_reads_an_exported_coco_file(labelled, tmp_path):
    labelled.make_version()
    export(labelled, "coco", tmp_path / "out")
    dataset = load_dataset("coco", tmp_path / "out")
    assert dataset.classes == ("good", "dent", "scratch") and not dataset.problems
    labels = [dataset.classes[record.label] for record in dataset.items]
    assert sorted(labels) == ["dent", "good", "good", "scratch"]  # the class without a mask is left out
    (dented,) = (record for record in dataset.items if dataset.classes[record.label] == "dent")
    sample = read(dented)
    np.testing.assert_array_equal(sample.mask > 0, (MASK == 1) | (MASK == 2))
    np.testing.assert_array_equal(sample.ignored > 0, MASK == 255)
    (boxed,) = (record for record in dataset.items if record.supervision == "box")
    assert dataset.classes[boxed.label] == "scratch" and (read(boxed).mask > 0).sum() == 16


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_lost_file_is_not_left_out_silently(labelled, damage, tmp_path):
    labelled.make_version()
    digest = photograph_file(2).sha256.hex()
    path = tmp_path / "data_sets" / digest[:2] / digest
    path.unlink()
    if damage == "damaged":
        path.write_bytes(b"other bytes")
    with pytest.raises(RequestError, match=f"file {digest} is") as refusal:
        export(labelled, "folder", tmp_path / "out")
    assert code_of(refusal) == (404, "file_lost")
