"""Which layout a folder has, by what is at its top."""

import pytest

from datasets.detection import SIGNS, detect_layout, find_root
from datasets.loading import FOLDER_LAYOUTS
from segdec.errors import DatasetError


def put(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        ("folder", ["good/1.png"]),
        ("folder", ["OK/1.png", "dent/2.png"]),
        ("folder", ["Train/OK/1.png", "Test/NOK/2.png"]),
        ("folder", ["annotations.json", "images/1.png"]),
        ("folder", ["train/good/000.png", "test/good/001.png"]),
        ("manifest", ["manifest.csv", "1.png"]),
        ("shards", ["index.json", "records.table"]),
        ("kolektor", ["kos01/Part0.jpg"]),
        ("kolektor2", ["train/1_GT.png", "test/2_GT.png"]),
        ("dagm", ["Class1/Train/Label/Labels.txt"]),
        ("dagm", ["Train/1.PNG", "Test/Label/Labels.txt"]),
        ("severstal", ["train.csv", "train_images/1.jpg"]),
        ("magnetic_tile", ["MT_Free/Imgs/1.jpg"]),
    ],
)
def test_each_layout_has_its_signs(tmp_path, layout, names):
    put(tmp_path, *names)
    assert detect_layout(tmp_path) == layout


def test_every_layout_can_be_found():
    assert set(SIGNS) == {"folder", "shards", *FOLDER_LAYOUTS} - {"toy"}  # on disk a toy set is a folder


def test_a_file_may_be_the_root(tmp_path):
    put(tmp_path, "parts.csv", "parts.json")
    assert detect_layout(tmp_path / "parts.csv") == "manifest"
    assert detect_layout(tmp_path / "parts.json") == "folder"


def test_folder_that_matches_several_layouts_is_refused(tmp_path):
    put(tmp_path, "good/1.png", "manifest.csv")
    with pytest.raises(DatasetError, match=r"several layouts: folder, manifest. Choose one with --layout"):
        detect_layout(tmp_path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match=r"does not exist"):
        detect_layout(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("parts/good/a.png", "parts/dent/b.png"), "parts"),
        (("archive/parts/a.png", "archive/parts/a.json"), "archive/parts"),
        (("archive/manifest.csv", "archive/a.png"), "archive"),
        (("dent/a.png", "dent/a_mask.png"), "."),  # the name of the folder is the class
        (("good/sub/a.png",), "."),
        (("one/good/a.png", "other/good/a.png"), "."),
        (("parts/good/a.png", "readme.txt"), "."),
        (("parts/good/a.png", "__MACOSX/parts/good/._a.png"), "parts"),
    ],
)
def test_folder_that_holds_everything_is_found(tmp_path, names, expected):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert find_root(tmp_path) == tmp_path / expected
