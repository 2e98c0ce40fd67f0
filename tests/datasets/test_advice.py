"""Advice in messages is right: a user who follows it gets the true masks and labels."""

import json
import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from datasets.__main__ import main
from datasets.checking import check_dataset
from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.mask_cover import check_mask_cover
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from segdec.errors import DatasetError

DEFECT = np.s_[2:9, 4:12]
DEFECT_PX = 7 * 8

Found = dict[str, tuple[str, int, int]]


def found(root: Path, layout: str = "folder", **options: object) -> Found:
    """Class, pixels of the defect and those of the true defect, of each photograph without a problem."""
    checked = check_dataset(load_dataset(layout, root, reading=ReadingOptions(**options)))
    check_mask_cover(checked, decided="invert_masks" in options)
    rows = {}
    for item in checked.dataset.items:
        mask = read(item).mask
        marked = np.zeros(1) if mask is None else mask > 0
        inside = 0 if mask is None else int(marked[DEFECT].sum())
        rows[item.name] = checked.dataset.classes[item.label], int(marked.sum()), inside
    return rows


def message(root: Path, layout: str = "folder", **options: object) -> str:
    """The first problem, or the error that listing or checking raises."""
    try:
        dataset = load_dataset(layout, root, reading=ReadingOptions(**options))
        checked = check_dataset(dataset)
        check_mask_cover(checked, decided="invert_masks" in options)
    except DatasetError as error:
        return str(error)
    return checked.dataset.problems[0].text


def followed(root: Path, *expected: str) -> Found:
    """The data set when the options of its messages are given, one after the other."""
    options: dict[str, object] = {}
    for _ in expected:
        text = message(root, **options)
        if threshold := re.search(r"give --mask-threshold (\d+), in an .* --data.mask-threshold \1\.", text):
            options["mask_threshold"] = int(threshold[1])
        elif "give --invert-masks (python -m training run: --data.invert-masks true)" in text:
            options["invert_masks"] = True
    assert options.keys() == set(expected)
    return found(root, **options)


TRUE = "dent", DEFECT_PX, DEFECT_PX
GOOD = "good", 0, 0


@pytest.fixture
def soft_mask() -> np.ndarray:
    mask = np.zeros((12, 20), np.uint8)
    mask[DEFECT] = 255
    return cv2.GaussianBlur(mask, (3, 3), 0)


@pytest.fixture
def parts(tmp_path, write_picture):
    """Writes photographs by their names, and masks of the true defect; returns the folder."""
    root = tmp_path / "parts"

    def write(*names, masks=(), mask=None):
        for name in names:
            write_picture(root / f"{name}.png")
        pixels = np.zeros((12, 20), np.uint8)
        pixels[DEFECT] = 255
        for name in masks:
            path = root / "masks" / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), pixels if mask is None else mask)
        return root

    return write


# === Options ===


@pytest.mark.parametrize("unsorted", [False, True])
def test_mask_threshold(parts, soft_mask, unsorted):
    dents, good = (["images/c", "images/d"], "images/a") if unsorted else (["dent/c", "dent/d"], "good/a")
    root = parts(*dents, good, masks=[name.removeprefix("images/") for name in dents], mask=soft_mask)
    if unsorted:  # a mask with noise, but without a defect
        cv2.imwrite(str(root / "masks/a.png"), np.clip(soft_mask, 0, 60))
    label = "defect" if unsorted else "dent"
    rows = {**dict.fromkeys(dents, (label, DEFECT_PX, DEFECT_PX)), good: GOOD}
    assert followed(root, "mask_threshold") == rows


def test_mask_threshold_of_masks_that_become_boxes(parts, soft_mask):
    root = parts("dent/a", "good/b", masks=["dent/a"], mask=soft_mask)
    threshold = int(re.search(r"give --mask-threshold (\d+),", message(root))[1])
    (root / "supervision.txt").write_text("box  dent\n")
    assert found(root, mask_threshold=threshold)["dent/a"] == TRUE


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("unsorted", [False, True])
def test_invert_masks(parts, soft_mask, soft, unsorted):
    white = 255 - (soft_mask if soft else np.where(soft_mask > 127, 255, 0).astype(np.uint8))
    dents, good = (["images/c", "images/d"], "images/a") if unsorted else (["dent/c", "dent/d"], "good/a")
    root = parts(*dents, good, masks=[name.removeprefix("images/") for name in dents], mask=white)
    if unsorted:
        cv2.imwrite(str(root / "masks/a.png"), np.full((12, 20), 255, np.uint8))
    label = "defect" if unsorted else "dent"
    rows = {**dict.fromkeys(dents, (label, DEFECT_PX, DEFECT_PX)), good: GOOD}
    assert followed(root, "invert_masks", *["mask_threshold"] * soft) == rows


def test_invert_masks_that_become_boxes(parts, soft_mask):
    white = np.where(soft_mask > 127, 0, 255).astype(np.uint8)
    root = parts("dent/a", "good/b", masks=["dent/a"], mask=white)
    assert "give --invert-masks" in message(root)
    (root / "supervision.txt").write_text("box  dent\n")
    assert found(root, invert_masks=True)["dent/a"] == TRUE


def test_no_invert_masks(parts, soft_mask):
    root = parts(
        "dent/a", "good/b", masks=["dent/a"], mask=np.where(soft_mask > 127, 0, 255).astype(np.uint8)
    )
    assert "if the defects are that large, --no-invert-masks" in message(root)
    assert found(root, invert_masks=False)["dent/a"] == ("dent", 240 - DEFECT_PX, 0)


@pytest.mark.parametrize(
    ("annotator", "row"),
    [("any", 6), ("all", 0), ("latest", 0), ("ann@parts.example", 6), ("bob@parts.example", 0)],
)
def test_annotator(parts, annotator, row):
    root = parts("a", "b")
    box = {"x": 25, "y": 25, "width": 15, "height": 100 / 6, "rotation": 0, "rectanglelabels": ["dent"]}
    shape = {"type": "rectanglelabels", "original_width": 20, "original_height": 12, "value": box}
    people = [("ann@parts.example", [shape], "2024-01-01"), ("bob@parts.example", [], "2024-02-01")]
    disputed = [
        {"result": result, "completed_by": {"id": number, "email": email}, "updated_at": day}
        for number, (email, result, day) in enumerate(people)
    ]
    tasks = [(["a"], [{"result": []}]), (["b"], disputed)]
    export = [
        {"id": name, "data": {"image": f"/data/upload/1/{name}.png"}, "annotations": annotations}
        for (name,), annotations in tasks
    ]
    (root / "export.json").write_text(json.dumps(export))
    text = message(root)
    assert "Choose with --annotator (data.annotator): any" in text and annotator in text
    assert found(root, annotator=annotator)["b"][:2] == ("dent" if row else "good", row)


def test_layout(parts, tmp_path, capsys):
    root = parts("good/a", "good/b", "dent/c", masks=["dent/c"])
    (root / "manifest.csv").write_text("image,label\ngood/a.png,good\n")
    with pytest.raises(DatasetError) as raised:
        detect_layout(root)
    layout, instead = re.search(r"--layout (\w+) .*or give (\w+) instead of auto", str(raised.value)).groups()
    assert layout == instead
    main(["inspect", instead, str(root), "--out", str(tmp_path / "sheet.png")])
    assert "dent" in capsys.readouterr().out


def test_white_level(tmp_path):
    (tmp_path / "good").mkdir()
    values = (np.arange(240).reshape(12, 20) * 17).astype(np.uint16)
    for name, shift in (("a", 0), ("b", 1)):
        cv2.imwrite(str(tmp_path / f"good/{name}.png"), values + shift)
    level = int(re.search(r"--white-level.*\((\d+) for 12-bit data", message(tmp_path))[1])
    checked = check_dataset(load_dataset("folder", tmp_path), white_level=level)
    assert (len(checked.photographs), checked.dataset.problems) == (2, ())


@pytest.mark.parametrize("command", ["split", "convert"])
def test_skip_broken(parts, tmp_path, monkeypatch, capsys, command):
    names = [f"{kind}/{kind}{number}" for kind in ("good", "dent") for number in range(6)]
    root = parts(*names, masks=[name for name in names if "dent" in name])
    (root / "good/good5.png").write_bytes(b"broken")
    monkeypatch.chdir(tmp_path)
    arguments = [command, "folder", str(root), str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main(arguments)
    assert re.search(rf"--skip-broken \(python -m training fit, .*{command}", capsys.readouterr().err)
    main([*arguments, "--skip-broken"])
    assert "left out: " in capsys.readouterr().err


def test_equal_pictures_in_two_splits(parts, tmp_path, capsys):
    names = [f"{kind}/{kind}{number}" for kind in ("good", "dent") for number in range(6)]
    root = parts(*names, masks=[name for name in names if "dent" in name])
    shutil.copy(root / "good/good0.png", root / "good/good5.png")
    words = ["train", "val", "test"] * 4
    (root / "splits.txt").write_text(
        "".join(f"{word}  {name}\n" for word, name in zip(words, names, strict=True))
    )
    inspect = ["inspect", "folder", str(root), "--out", str(tmp_path / "sheet.png")]
    with pytest.raises(SystemExit):
        main(inspect)
    text = capsys.readouterr().err
    pair = re.search(r"(good/\S+) \(train\) = (good/\S+) \(test\)", text).groups()
    assert "--allow-leak" in text and "python -m datasets split does" in text
    main([*inspect, *(word for name in pair for word in ("--allow-leak", name))])
    (root / "splits.txt").unlink()
    main(["split", "folder", str(root), str(tmp_path / "new.txt")])
    main([*inspect, "--splits", str(tmp_path / "new.txt")])


# === Files ===


@pytest.mark.parametrize(
    ("names", "masks"),
    [
        (["good/a", "dent/b"], []),
        (["images/good/a", "images/dent/b"], []),
        (["good/a", "dent/a1", "dent/more/b"], ["dent/more/b"]),
        (["good/a", "dent/a1", "dent/more/b"], []),
        (["train/good/1", "train/dent/1", "test/good/1", "test/dent/1"], []),
    ],
)
@pytest.mark.parametrize("drawn", [False, True])
def test_defects_without_a_mask(parts, names, masks, drawn):
    root = parts(*names, masks=masks)
    problems = load_dataset("folder", root).problems
    if drawn:
        paths = [re.search(r"Draw (\S+\.png),", problem.text)[1] for problem in problems]
        parts(masks=[str(Path(path).relative_to(root / "masks").with_suffix("")) for path in paths])
        expected = {name: TRUE if "dent" in name else GOOD for name in names}
    else:
        lines = re.findall(r"'(label  [^']+)'", " ".join(problem.text for problem in problems))
        assert f"add to {root}/supervision.txt" in problems[0].text
        (root / "supervision.txt").write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))
        expected = {
            name: GOOD if "good" in name else TRUE if name in masks else ("dent", 0, 0) for name in names
        }
    assert load_dataset("folder", root).problems == ()
    assert found(root) == expected


def test_a_mask_of_several_photographs(parts):
    root = parts("good/g", "dent/1", "scratch/1", masks=["1", "scratch/1"])
    folder = Path(re.search(r"name of its photograph, such as (\S+)\.$", message(root))[1])
    folder.mkdir(parents=True)
    shutil.move(root / "masks/1.png", folder)
    assert found(root) == {"good/g": GOOD, "dent/1": TRUE, "scratch/1": ("scratch", *TRUE[1:])}


def test_a_mask_of_a_photograph_in_two_splits(parts):
    root = parts(
        "train/good/g", "train/dent/1", "test/good/h", "test/dent/1", masks=["test/dent/1", "dent/1"]
    )
    (folder,) = {
        re.search(r"such as (\S+)\.$", problem.text)[1]
        for problem in load_dataset("folder", root).problems
        if "may belong to" in problem.text
    }
    Path(folder).mkdir(parents=True)
    shutil.move(root / "masks/dent/1.png", folder)
    rows = found(root)
    assert {name for name, row in rows.items() if row == TRUE} >= {
        Path(folder).relative_to(root / "masks").as_posix()
    }


def test_a_mask_without_a_photograph(parts):
    root = parts("good/g", "dent/1", masks=["dent/1", "dent/2_mask"])
    stem = re.search(r"Expected one named '(\w+)' in the folder of its class", message(root))[1]
    parts(f"dent/{stem}")
    assert found(root) == {"good/g": GOOD, "dent/1": TRUE, "dent/2": TRUE}


@pytest.mark.parametrize(
    "names",
    [["good/a", "dent/b", "c"], ["train/good/a", "train/dent/b", "test/good/d", "test/dent/e", "test/c"]],
)
def test_a_photograph_without_a_class(parts, names):
    root = parts(*names, masks=[name for name in names if "dent" in name])
    good = Path(re.search(r"Move it to (\S+), or to", message(root))[1])
    good.mkdir(exist_ok=True)
    shutil.move(root / f"{names[-1]}.png", good)
    dataset = load_dataset("folder", root)
    assert (dataset.problems, dataset.notes, len(dataset.items)) == ((), (), len(names))
    moved = next(item for item in dataset.items if item.name.endswith("good/c"))
    assert moved.label == 0 and (moved.split == "test" or "train" not in names[0])


def test_photographs_without_any_class(parts):
    root = parts("a", "b")
    folders = re.search(
        r"good ones into (\S+), .*; put defective ones into (\S+) and their masks into (\S+)\. ",
        message(root),
    )
    good, defect, masks = map(Path, folders.groups())
    for folder, name in ((good, "a"), (defect, "b")):
        folder.mkdir()
        shutil.move(root / f"{name}.png", folder)
    parts(masks=[str((masks / "b").relative_to(root / "masks"))])
    assert found(root) == {"good/a": GOOD, "defect/b": ("defect", *TRUE[1:])}


@pytest.mark.parametrize("kind", ["folder", "labelme", "manifest"])
def test_a_reserved_class(parts, kind):
    root = parts("good/a", "unsure/c" if kind == "folder" else "images/c")
    if kind == "labelme":
        points = [[4, 2], [12, 2], [12, 9], [4, 9]]
        shape = {"label": "unsure", "shape_type": "polygon", "points": points}
        content = {"imageHeight": 12, "imageWidth": 20, "imagePath": "c.png", "shapes": [shape]}
        (root / "images/c.json").write_text(json.dumps(content))
    lines = ["image,label", "good/a.png,good", "images/c.png,unsure", ""]
    if kind == "manifest":
        (root / "manifest.csv").write_text("\n".join(lines))
    layout = "manifest" if kind == "manifest" else "folder"
    assert "move them to a folder `ignore` (in a manifest: remove their lines)" in message(root, layout)
    if kind == "manifest":
        (root / "manifest.csv").write_text("\n".join([*lines[:2], ""]))
    else:
        (root / ("unsure" if kind == "folder" else "images")).rename(root / "ignore")
    assert found(root, layout) == {"good/a": GOOD}


def test_orientation(parts):
    root = parts("good/a", masks=["dent/b"])
    (root / "dent").mkdir()
    picture, exif = (
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (12, 20), np.uint8)),
        Image.Exif(),
    )
    exif[274] = 6
    picture.save(root / "dent/b.jpg", exif=exif)
    assert "If the annotation tool ignored the EXIF orientation, remove it" in message(root)
    picture.save(root / "dent/b.jpg")
    assert found(root) == {"dent/b": TRUE, "good/a": GOOD}


def test_a_folder_that_is_not_a_class(parts):
    root = parts("good/a", "dent/b", "line2/c", masks=["dent/b"])
    points = [[4, 2], [12, 2], [12, 9], [4, 9]]
    shape = {"label": "dent", "shape_type": "polygon", "points": points}
    content = {"imageHeight": 12, "imageWidth": 20, "imagePath": "c.png", "shapes": [shape]}
    (root / "line2/c.json").write_text(json.dumps(content))
    folder, name = re.search(r"If '(\w+)' is not a class, name the folder '(\w+)'", message(root)).groups()
    (root / folder).rename(root / name)
    assert found(root) == {"good/a": GOOD, "dent/b": TRUE, "images/c": TRUE}


@pytest.mark.parametrize("tool", ["yolo", "voc"])
def test_names_of_classes(parts, tool):
    root = parts("images/a", "images/b")
    if tool == "yolo":
        (root / "labels").mkdir()
        (root / "labels/b.txt").write_text("1 0.4 0.458333 0.4 0.583333\n")
    else:
        mask = np.zeros((12, 20), np.uint8)
        mask[DEFECT] = 2
        (root / "SegmentationClass").mkdir()
        for name, pixels in (("a", mask * 0), ("b", mask)):
            cv2.imwrite(str(root / f"SegmentationClass/{name}.png"), pixels)
    note = next(note for note in load_dataset("folder", root).notes if "no file names" in note.lower())
    file = re.search(r"Add a (\w+\.txt) with a name in each line", note)[1]
    first = ["background"] if "the background first" in note else []
    (root / file).write_text("\n".join([*first, "scratch", "dent", ""]))
    assert found(root) == {"images/a": GOOD, "images/b": TRUE}


def test_a_value_without_a_class(parts, soft_mask):
    both = np.where(soft_mask > 127, 10, 0).astype(np.uint8)
    both[0, 0] = 200
    root = parts("good/a", "dent/b", masks=["dent/b"], mask=both)
    text = message(root, mask_values={"dent": 10})
    assert "holds the values 200" in text and "('ignore' for pixels of unknown class)" in text
    assert found(root, mask_values={"dent": 10, "ignore": 200}) == {"good/a": GOOD, "dent/b": TRUE}


def test_max_pixels_of_masks_that_state_the_class(parts):
    root = parts("images/a", "images/b", masks=["a", "b"])
    assert "raise the limit max_pixels" in message(root, max_pixels=239)
    assert load_dataset("folder", root, reading=ReadingOptions(max_pixels=240)).problems == ()


def test_max_pixels_of_photographs_whose_annotation_has_no_size(tmp_path):
    Image.new("1", (8200, 8200)).save(tmp_path / "b.png")  # above the default limit
    Image.new("1", (20, 12)).save(tmp_path / "a.png")
    (tmp_path / "b.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "classes.txt").write_text("dent\n")
    dataset = load_dataset("folder", tmp_path)
    assert (dataset.problems, [item.label for item in dataset.items]) == ((), [0, 1])
    assert "raise the limit max_pixels" in check_dataset(dataset).dataset.problems[0].text
