"""Names of folders state classes, at any depth."""

from pathlib import Path

import pytest

from datasets.layouts import folder
from datasets.sample import Dataset
from tests.datasets.conftest import WritePicture


def classes_of(dataset: Dataset) -> dict[str, str]:
    return {item.name: dataset.classes[item.label] for item in dataset.items}


@pytest.mark.parametrize(
    "expected",
    [
        {"d1/good/1": "good", "d1/dent/2": "dent", "d2/dent/3": "dent"},
        {"good/1": "good", "line2/good/2": "good", "line2/dent/3": "dent"},
        {"good/1": "good", "defect/dent/2": "dent", "defect/scratch/3": "scratch"},
        {"good/left/1": "good", "bad/left/2": "bad", "bad/right/3": "bad"},
        {"good/1": "good", "bad/2024-05-01/2": "bad"},
        {"train/good/1": "good", "train/Dent/2": "Dent", "test/dent/3": "Dent"},
    ],
)
def test_class_of_a_nested_folder(
    tmp_path: Path, write_picture: WritePicture, expected: dict[str, str]
) -> None:
    for name, label in expected.items():
        write_picture(tmp_path / f"{name}.jpg")
        if label != "good":
            write_picture(tmp_path / "masks" / f"{name}.png", mask=True)
    dataset = folder.index(tmp_path)
    assert (classes_of(dataset), dataset.problems) == (expected, ())


def test_masks_of_good_photographs_are_no_class(folder_root: Path, write_picture: WritePicture) -> None:
    write_picture(folder_root / "masks/good/a.png", mask=True, value=0)
    assert folder.index(folder_root).classes == ("good", "dent", "scratch")


def test_folders_of_network_storage_are_no_classes(folder_root: Path, write_picture: WritePicture) -> None:
    for name in ("@eaDir/a.jpg", "good/@eaDir/a.jpg/SYNOFILE_THUMB_M.jpg", "$RECYCLE.BIN/a.jpg"):
        write_picture(folder_root / name)
    assert len(folder.index(folder_root).items) == 4
