"""What is left in a folder beside photographs and annotations never turns a defect into a good photograph."""

import json
from pathlib import Path

import pytest

from datasets.layouts import folder
from segdec.errors import DatasetError
from tests.datasets.conftest import WritePicture


def write_labelme(path: Path, photograph: str, label: str = "dent") -> None:
    shape = {"label": label, "points": [[5, 4], [8, 4], [8, 6], [5, 6]], "shape_type": "polygon"}
    path.write_text(json.dumps({"shapes": [shape], "imagePath": photograph}))


def test_a_renamed_photograph_is_not_good(tmp_path: Path, write_picture: WritePicture) -> None:
    for name in ("new", "b"):
        write_picture(tmp_path / f"{name}.png")
    write_labelme(tmp_path / "old.json", "old.png")
    write_labelme(tmp_path / "b.json", "b.png")
    dataset = folder.index(tmp_path)
    assert [item.name for item in dataset.items] == ["b"]
    assert "renamed" in dataset.problems[0].text


def test_labels_that_differ_in_case_are_one_class(tmp_path: Path, write_picture: WritePicture) -> None:
    for name, label in (("a", "dent"), ("b", "Dent"), ("c", "dent "), ("d", "good")):
        write_picture(tmp_path / f"{name}.png")
        write_labelme(tmp_path / f"{name}.json", f"{name}.png", label)
    dataset = folder.index(tmp_path)
    assert dataset.classes == ("good", "dent")
    assert "The labels 'dent', 'Dent' were read as 'dent'." in dataset.notes


def test_pictures_that_labelme_exported_are_left_out(tmp_path: Path, write_picture: WritePicture) -> None:
    write_picture(tmp_path / "a.png")
    write_labelme(tmp_path / "a.json", "a.png")
    for name in ("img", "label", "label_viz"):
        write_picture(tmp_path / f"a_json/{name}.png")
    (tmp_path / "a_json/label_names.txt").write_text("_background_\ndent\n")
    assert [item.name for item in folder.index(tmp_path).items] == ["a"]


@pytest.mark.parametrize(("root", "expected"), [("", "not read: 1 (x.zip). Unpack"), ("x.zip", "Unpack it")])
def test_an_archive_has_to_be_unpacked(
    tmp_path: Path, write_picture: WritePicture, root: str, expected: str
) -> None:
    write_picture(tmp_path / "a.png")
    (tmp_path / "x.zip").write_bytes(b"PK")
    with pytest.raises(DatasetError) as error:
        folder.index(tmp_path / root)
    assert expected in str(error.value)
