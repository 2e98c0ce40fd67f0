"""Masks are never photographs, whatever their names and folders."""

from pathlib import Path

import pytest

from datasets.layouts import folder
from datasets.reading import read
from tests.datasets.conftest import WritePicture

DEFECT_PX = 6


@pytest.mark.parametrize(
    "masks",
    [
        ["dent/1.png"],
        ["dent/1_Maske.png"],
        ["dent/1_annotation.png"],
        ["dent/mask_1.png"],
        ["annotations/dent/1.png"],
        ["labels/1.png"],
        ["segmentation/1.png"],
        ["dent_masks/1.png"],
        ["mask_images/1.png"],
        ["masks/1/001.png", "masks/1/002.png"],
    ],
)
def test_a_mask_is_found(tmp_path: Path, write_picture: WritePicture, masks: list[str]) -> None:
    write_picture(tmp_path / "good/0.jpg")
    write_picture(tmp_path / "dent/1.jpg")
    for name in masks:
        write_picture(tmp_path / name, mask=True)
    dataset = folder.index(tmp_path)
    assert [item.name for item in dataset.items] == ["dent/1", "good/0"]
    mask = read(dataset.items[0]).mask
    assert mask is not None and (mask > 0).sum() == DEFECT_PX


def test_a_mask_as_jpeg_beside_its_photograph_is_a_problem(
    folder_root: Path, write_picture: WritePicture
) -> None:
    write_picture(folder_root / "dent/x.jpg")
    write_picture(folder_root / "dent/x_mask.jpg", mask=True)
    (found,) = folder.index(folder_root).problems
    assert found.name == "dent/x" and "lossy" in found.text


def test_a_class_with_the_word_mask_stays_a_class(folder_root: Path, write_picture: WritePicture) -> None:
    write_picture(folder_root / "solder_mask/x.png")
    write_picture(folder_root / "masks/solder_mask/x.png", mask=True)
    assert "solder_mask" in folder.index(folder_root).classes
