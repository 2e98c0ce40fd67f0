"""Which layout a folder has, by what lies at its top."""

import json

import pytest

from datasets.detection import LAYOUT_SIGNS, detect_layout
from datasets.loading import LAYOUTS
from segdec.errors import DatasetError


def put(root, *names, text=""):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


COCO = json.dumps({"images": [], "annotations": [], "categories": []})
LABELME = json.dumps({"shapes": [], "imagePath": "1.png"})
STUDIO = json.dumps([{"data": {"image": "1.png"}, "annotations": []}])


@pytest.mark.parametrize(
    ("layout", "names", "text"),
    [
        ("folder", ["good/1.png"], ""),
        ("folder", ["OK/1.png", "dent/2.png"], ""),
        ("manifest", ["manifest.csv", "1.png"], ""),
        ("coco", ["annotations.json"], COCO),
        ("coco", ["annotations/instances.json"], COCO),
        ("labelme", ["line/1.json"], LABELME),
        ("cvat", ["annotations.xml"], ""),
        ("label_studio", ["export.json"], STUDIO),
        ("shards", ["index.json", "records.table"], "{}"),
        ("mvtec", ["train/good/000.png", "test/good/001.png"], ""),
        ("kolektor", ["kos01/Part0.jpg"], ""),
        ("kolektor2", ["train/1_GT.png", "test/2_GT.png"], ""),
        ("dagm", ["Class1/Train/1.PNG"], ""),
        ("dagm", ["Train/1.PNG", "Test/2.PNG"], ""),
        ("severstal", ["train.csv", "train_images/1.jpg"], ""),
        ("magnetic_tile", ["MT_Free/Imgs/1.jpg"], ""),
    ],
)
def test_each_layout_has_its_marks(tmp_path, layout, names, text):
    put(tmp_path, *names, text=text)
    assert detect_layout(tmp_path) == layout


def test_every_layout_can_be_found():
    assert set(LAYOUT_SIGNS) == set(LAYOUTS) - {"toy"}  # on disk a toy set is a folder


def test_a_file_may_be_the_root(tmp_path):
    put(tmp_path, "parts.csv")
    put(tmp_path, "parts.json", text=COCO)
    assert detect_layout(tmp_path / "parts.csv") == "manifest"
    assert detect_layout(tmp_path / "parts.json") == "coco"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["good/1.png", "manifest.csv"], r"several layouts: folder, manifest. Choose one with --layout"),
        (["1.png", "2.png"], r"(?s)holds 2 photographs, but does not show which .*masks/defect.*kos01/"),
        (["readme.txt"], r"(?s)holds no photograph. Expected.*Searched for:.*kos01/"),
    ],
)
def test_folder_that_matches_several_layouts_or_none_is_refused(tmp_path, names, words):
    put(tmp_path, *names)
    with pytest.raises(DatasetError, match=words):
        detect_layout(tmp_path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match=r"does not exist"):
        detect_layout(tmp_path / "nothing")


def test_broken_json_is_no_mark(tmp_path):
    put(tmp_path, "good/1.png")
    put(tmp_path, "notes.json", text="{")
    assert detect_layout(tmp_path) == "folder"
    with pytest.raises(DatasetError, match=r"1\.png is a file, but neither COCO annotations nor"):
        detect_layout(tmp_path / "good/1.png")
