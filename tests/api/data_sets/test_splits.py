"""Versions keep the split that photographs came with, so that training tests on the published photographs."""

import io
import json
import random
import zipfile

import pytest
from sqlalchemy import select

from api.data_sets.photographs import PhotographFilters, list_photographs, remove_photograph
from api.data_sets.splits import LEFT_OUT, SPLITS, place_photographs
from api.data_sets.tables import data_set_photographs
from api.data_sets.version_export import export_version
from api.data_sets.versions import find_exported, read_manifest, show_version
from datasets import pushing
from datasets.loading import load_dataset
from datasets.splitting import SPLIT_WORDS, has_own_split
from tests.api.data_sets.filled_data_set import NOW


def rows_of(*facts):
    return [dict(zip(("name", "part", "split"), row, strict=True)) for row in facts]


def placed(*facts):
    return [tuple(one) for one in place_photographs(rows_of(*facts))]


def test_the_words_are_those_of_split_files():
    assert {*SPLIT_WORDS, LEFT_OUT} == set(SPLITS)
    assert pushing.LEFT_OUT == LEFT_OUT


def test_without_a_split_none_is_stated():
    assert placed(("a", "", None), ("b", "7", None)) == [("", ""), ("", "7")]
    assert placed(("a", "", LEFT_OUT), ("b", "7", None)) == [("", ""), ("", "7")]
    assert placed() == []


def test_new_photographs_are_in_the_split_of_their_part_or_in_train():
    found = placed(
        ("a", "7", "test"), ("b", "7", None), ("c", "", None), ("d", "8", LEFT_OUT), ("e", "", "fold_2")
    )
    assert found == [("test", "7"), ("test", "7"), ("train", ""), ("", "8"), ("fold_2", "")]
    assert placed(("7", "", "val"), ("b", "7", None)) == [("val", ""), ("val", "7")]  # a name is a group, too


def test_a_part_in_several_splits_becomes_several_groups():
    found = placed(
        ("7 (test)", "", "val"),
        ("a", "7", "train"),
        ("b", "7", "test"),
        ("c", "7", None),
        ("d", "7", LEFT_OUT),
    )
    assert found == [
        ("val", ""),
        ("train", "7 (train)"),
        ("test", "7 (test)*"),
        ("train", "7 (train)"),
        ("", "7"),
    ]


def test_any_photographs_give_groups_in_one_split():
    names = ["a", "b", "a (test)", "a (train)", "a (test)*", "b (val)", "c"]
    for seed in range(300):
        choose = random.Random(seed)
        rows = [
            {
                "name": name,
                "part": choose.choice(["", "", *names]),
                "split": choose.choice([None, "train", "val", "test", "fold_1", LEFT_OUT]),
            }
            for name in choose.sample(names, choose.randint(1, len(names)))
        ]
        splits = {}
        for row, (split, group) in zip(rows, place_photographs(rows), strict=True):
            if row["split"] not in (None, LEFT_OUT):
                assert split == row["split"]
            if split:
                assert splits.setdefault(group or row["name"], split) == split, (rows, group)


@pytest.fixture
def published(filled):
    """Photographs with a published split, one that it leaves out, and new ones; part 7 is in two splits."""
    splits = ["train", "train", "val", "val", "test", "test", LEFT_OUT, None]
    for number, split in enumerate(splits):
        facts = {} if split is None else {"split": split}
        added = filled.add(number, part="plate 7" if number in (0, 4) else "", **facts)
        filled.annotate(added.id, "scratch" if number % 2 else "good")
    return filled


SPLITS_OF_VERSION = ["train", "train", "val", "val", "test", "test", None, "train"]


def test_a_version_keeps_the_split(published):
    published.make_version()
    digest = bytes.fromhex(published.read(show_version, 1).digest)
    entries = read_manifest(published.stored.get(digest))
    assert [one.get("split") for one in entries] == SPLITS_OF_VERSION
    assert [one.get("group") for one in entries] == [
        "plate 7 (train)",
        *[None] * 3,
        "plate 7 (test)",
        *[None] * 3,
    ]
    page = published.read(list_photographs, PhotographFilters(), 0, 100, NOW)
    assert [one.split for one in page.photographs] == [*SPLITS_OF_VERSION[:6], LEFT_OUT, None]


def export(filled, form, folder):
    version = filled.read(find_exported, filled.make_version())
    content = b"".join(export_version(version, form, filled.stored))
    zipfile.ZipFile(io.BytesIO(content)).extractall(folder)


def test_exports_keep_the_split(published, tmp_path):
    export(published, "folder", tmp_path / "folder")
    dataset = load_dataset("manifest", tmp_path / "folder")
    assert not dataset.problems
    assert [record.split for record in dataset.items] == SPLITS_OF_VERSION
    assert has_own_split(dataset, tmp_path / "folder")  # so that `fit` keeps it
    export(published, "coco", tmp_path / "coco")
    images = json.loads((tmp_path / "coco/annotations.json").read_text())["images"]
    assert {one["name"]: one.get("split") for one in images} == {
        "0": "train",
        "2": "val",
        "4": "test",
        "6": None,
    }


def split_of(filled, name):
    with filled.engine.connect() as connection:
        columns = data_set_photographs.c
        return connection.execute(select(columns.split).where(columns.name == name)).scalar_one()


def test_a_photograph_gets_a_split_once(filled):
    number = filled.add(1).id
    assert split_of(filled, "1") is None
    assert filled.add(1, split="test").outcome == "present"
    assert split_of(filled, "1") == "test"
    assert filled.add(1, split="train").outcome == filled.add(1).outcome == "present"
    filled.write(remove_photograph, number, "Ada", NOW)
    assert filled.add(1, split="val").outcome == "restored"
    assert split_of(filled, "1") == "test"
