"""A converted data set is read equally: classes, splits, groups, supervision and pixels."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

from datasets.__main__ import main
from datasets.checking import check_dataset
from datasets.conversion import convert
from datasets.detection import detect_layout
from datasets.layouts.toy import write_toy
from datasets.loading import LAYOUTS, load_dataset
from datasets.reading import read
from datasets.splitting import has_own_split
from tests.datasets.mixed_folder import write_mixed_folder

# === One small data set of each layout ===


def dagm(root, write_picture):
    for name, stems in (("Train", range(1, 7)), ("Test", range(1, 3))):
        lines = ["1"]
        for stem in stems:
            write_picture(root / f"Class1/{name}/{stem:04}.PNG")
            mask = f"{stem:04}_label.PNG" if stem % 2 else "0"
            lines.append(f"{stem}\t{stem % 2}\t{stem:04}.PNG\t0\t{mask}")
            if stem % 2:
                write_picture(root / f"Class1/{name}/Label/{mask}", mask=True)
        (root / f"Class1/{name}/Label/Labels.txt").write_text("\n".join(lines))


def kolektor(root, write_picture):
    for item in range(5):
        for part in (0, 1):
            write_picture(root / f"kos{item:02}/Part{part}.jpg")
            write_picture(root / f"kos{item:02}/Part{part}_label.bmp", mask=True, value=255 * (part & item))


def kolektor2(root, write_picture):
    for folder in ("train", "test"):
        for number in range(6):
            write_picture(root / f"{folder}/{number}.png")
            write_picture(root / f"{folder}/{number}_GT.png", mask=True, value=255 * (number % 2))


def magnetic_tile(root, write_picture):
    for name, value in (("Free", 0), ("Blowhole", 128), ("Uneven", 255)):
        for number in range(3):
            stem = root / f"MT_{name}/Imgs/exp{number}_num_{number}{value}"
            write_picture(stem.with_suffix(".jpg"))
            write_picture(stem.with_suffix(".png"), mask=True, value=value)


def manifest(root, write_picture):
    """Each kind of annotation, folds, and equal photographs of one group."""
    lines = [
        {"image": "a.png", "label": "good", "split": "fold_1"},
        {"image": "b.bmp", "label": "dent", "mask": "masks/b.png", "group": "plate", "split": "fold_2"},
        {"image": "c.png", "label": "bent", "boxes": [[2, 1, 3, 2], [6, 4, 1, 1]], "split": "val"},
        {
            "image": "d.png",
            "label": "dent",
            "polygon": [2, 1, 5, 1, 5, 3],
            "group": "plate",
            "split": "fold_2",
        },
        {"image": "e.png", "label": "dent", "name": "../odd: name", "split": "test"},
        {"image": "f.tif", "label": "dent", "class_mask": "masks/f.png", "split": "test"},
        {"image": "g.png", "label": "good", "class_mask": "masks/g.png", "split": "test"},
        {"image": "h.png", "label": "good"},
    ]
    for line in lines:
        write_picture(root / line["image"])
    write_picture(root / "masks/b.png", mask=True)
    several = np.zeros((12, 20), np.uint8)
    several[:2], several[4:6], several[8:] = 255, 1, 2
    cv2.imwrite(str(root / "masks/f.png"), several)
    cv2.imwrite(str(root / "masks/g.png"), np.where(several == 255, several, 0))
    (root / "classes.txt").write_text("dent\nbent\n")
    (root / "manifest.jsonl").write_text("\n".join(map(json.dumps, lines)))


def severstal(root, write_picture):
    for name in "abcdef":
        write_picture(root / f"train_images/{name}.jpg", size=(1600, 256))
    (root / "train.csv").write_text("ImageId,ClassId,EncodedPixels\na.jpg,3,1 2 257 1\na.jpg,1,409600 1\n")


def toy(root, _):
    write_toy(root, 18, size=32, classes=4)


def folder(root, write_picture):
    """Photographs in every way, one with an area that is ignored beside two classes."""
    write_mixed_folder(root, 2)

    def box(label, left):
        return {"label": label, "shape_type": "rectangle", "points": [[left, 2], [left + 3, 6]]}

    write_picture(root / "images/ignored.png")
    shapes = [box("dent", 1), box("Kratzer", 6), box("__ignore__", 12)]
    content = {"imagePath": "ignored.png", "imageHeight": 12, "imageWidth": 20, "shapes": shapes}
    (root / "images/ignored.json").write_text(json.dumps(content))


def mvtec(root, write_picture):
    for name in ("train/good/0", "train/good/1", "test/good/0", "test/dent/0", "test/bent/0", "test/bent/1"):
        write_picture(root / f"{name}.png")
    for name in ("dent/0", "bent/0", "bent/1"):
        write_picture(root / f"ground_truth/{name}_mask.png", mask=True)


def cvat(root, write_picture):
    lines = ["<annotations><version>1.1</version>"]
    for number in range(4):
        write_picture(root / f"images/{number}.png")
        drawn = '<box label="dent" xtl="2" ytl="1" xbr="5" ybr="3"/>' * (number % 2)
        lines.append(f'<image id="{number}" name="{number}.png" width="20" height="12">{drawn}</image>')
    (root / "annotations.xml").write_text("\n".join([*lines, "</annotations>"]))


WRITERS = {each.__name__: each for each in (dagm, kolektor, kolektor2, magnetic_tile, manifest, severstal)}
WRITERS |= {each.__name__: each for each in (toy, folder, mvtec, cvat)}
READ_BY_FOLDER = {"coco", "label_studio", "labelme", "voc", "yolo"}
"""Formats that `folder` writes."""


def test_each_layout_is_converted_by_a_test():
    assert {*WRITERS, *READ_BY_FOLDER, "shards"} == set(LAYOUTS)


# === Equality ===


def contents(dataset):
    """Everything that training sees: names, classes, splits, supervision, and digests of the pixels."""
    return {item.name: describe(dataset, item) for item in dataset.items}


def describe(dataset, item):
    sample = read(item)
    drawn = (sample.mask, sample.classes, sample.ignored)
    if sample.mask is None or not (sample.mask.any() or sample.ignored is not None):
        drawn = (None, None, None)  # a mask without defects says what its absence says
    return (
        dataset.classes[item.label],
        item.group,
        item.split_word,
        item.supervision,
        *(None if pixels is None else (pixels.shape, pixels.tobytes()) for pixels in (sample.image, *drawn)),
    )


def checked(layout, root):
    dataset = check_dataset(load_dataset(layout, root)).dataset
    assert not dataset.problems
    return dataset


@pytest.mark.parametrize("layout", WRITERS)
def test_converted_set_is_read_equally(tmp_path, write_picture, layout):
    root, out = tmp_path / "own", tmp_path / "converted"
    WRITERS[layout](root, write_picture)
    dataset = checked(layout, root)
    convert(dataset, out)
    again = checked("manifest", out)
    assert detect_layout(out) == "manifest"
    assert again.classes == dataset.classes
    if layout == "kolektor":  # only split files give its photographs a split, a manifest has a default one
        again = replace(again, items=tuple(item.with_split(None) for item in again.items))
    assert contents(again) == contents(dataset)
    files = {item.name: item.image_file.read_bytes() for item in dataset.items}
    assert {item.name: item.image_file.read_bytes() for item in again.items} == files


def test_shards_are_converted(tmp_path, folder_root):
    pytest.importorskip("tensorflow")
    from datasets.sharding.packing import pack

    dataset = checked("folder", folder_root)
    pack(dataset, str(tmp_path / "packed"))
    main(["convert", "auto", str(tmp_path / "packed"), str(tmp_path / "converted")])
    assert contents(checked("manifest", tmp_path / "converted")) == contents(dataset)


# === The command ===


def refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main([str(argument) for argument in arguments])
    return capsys.readouterr().err


def test_command_detects_the_layout_and_lists_problems(tmp_path, folder_root, capsys):
    (folder_root / "good/broken.png").write_bytes(b"no picture")
    (folder_root / "splits.txt").write_text("train good/a\nval good/b\ntrain dent\n")
    out, problems = tmp_path / "out", tmp_path / "problems.jsonl"
    command = ["convert", "auto", folder_root, out, "--problems", problems]
    assert "broken.png is not an image" in refused(command, capsys)
    assert not out.exists()
    main([*map(str, command), "--skip-broken"])
    printed = capsys.readouterr()
    assert f"layout: folder ({folder_root})" in printed.out and f"4 photographs in {out}" in printed.out
    assert "left out:" in printed.err
    (problem,) = map(json.loads, problems.read_text().splitlines())
    assert (problem["name"], problem["left_out"]) == ("good/broken", True)
    assert "is not an image" in problem["text"]
    splits = {item.name: item.split for item in load_dataset("manifest", out).items}
    assert splits == {"good/a": "train", "good/b": "val", "dent/c": "train", "scratch/d": None}
    assert f"{out} exists" in refused(command, capsys)


def test_good_photographs_alone_are_converted(tmp_path, write_picture):
    for name in "abc":
        write_picture(tmp_path / f"own/good/{name}.png")
    convert(checked("folder", tmp_path / "own"), tmp_path / "out")
    assert checked("manifest", tmp_path / "out").classes == ("good", "defect")
    (tmp_path / "out/classes.txt").write_text("good\n")
    assert checked("manifest", tmp_path / "out").classes == ("good", "defect")


@pytest.mark.parametrize("labels", [("no burr", "dent"), ("uncapped", "capped")])
def test_answers_about_labels_are_part_of_the_manifest(tmp_path, write_picture, labels):
    for name in ("good", *labels):
        write_picture(tmp_path / f"own/{name}/a.png")
    (tmp_path / "own/supervision.txt").write_text("".join(f"label  {name}\n" for name in labels))
    answers = [f"--defect={name}" for name in labels]
    main(["convert", "folder", str(tmp_path / "own"), str(tmp_path / "out"), *answers])
    assert {*checked("manifest", tmp_path / "out").classes} == {"good", *labels}


def test_names_that_a_manifest_cannot_hold_are_problems(tmp_path, write_picture, capsys):
    for name in ("a\u200bb", "c"):
        write_picture(tmp_path / f"own/good/{name}.png")
    command = ["convert", "auto", tmp_path / "own", tmp_path / "out"]
    assert "unprintable characters" in refused(command, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
    main([*map(str, command), "--skip-broken"])
    assert [item.name for item in load_dataset("manifest", tmp_path / "out").items] == ["good/c"]


def test_photographs_are_converted_without_labels(tmp_path, write_picture):
    for name in ("good/a.png", "dent/b.png", "dent/b_mask.png", "c.png", "c.jpg"):
        write_picture(tmp_path / "own" / name, mask="mask" in name)
    main(["convert", "auto", str(tmp_path / "own"), str(tmp_path / "out"), "--unlabelled"])
    lines = [json.loads(line) for line in (tmp_path / "out/manifest.jsonl").read_text().splitlines()]
    assert {line["label"] for line in lines} == {"ignore"}
    names = [line["name"] for line in lines]
    assert names == ["c.jpg", "c.png", "dent/b", "dent/b_mask", "good/a"]


def test_nothing_usable_is_an_error(tmp_path, capsys):
    (tmp_path / "own/good").mkdir(parents=True)
    (tmp_path / "own/good/a.png").write_bytes(b"no picture")
    words = refused(["convert", "auto", tmp_path / "own", tmp_path / "out", "--skip-broken"], capsys)
    assert "has no photograph that can be used" in words
    assert not (tmp_path / "out").exists()


# === Splits ===


def splits_of(out):
    lines = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    return {line["name"]: line.get("split") for line in lines}


def converted(root, out, *options):
    main(["convert", "auto", str(root), str(out), *options])
    return splits_of(out)


def test_a_split_file_replaces_the_split_of_a_published_layout(tmp_path, write_picture):
    kolektor2(tmp_path / "own", write_picture)
    words = [
        "test train/0",
        "test train/1",
        "val test/0",
        "val test/1",
        *(f"train train/{n}" for n in (2, 3)),
    ]
    (tmp_path / "own/splits.txt").write_text("\n".join(words))
    found = converted(tmp_path / "own", tmp_path / "out")
    assert {name: split for name, split in found.items() if split} == {
        **dict.fromkeys(("train/0", "train/1"), "test"),
        **dict.fromkeys(("test/0", "test/1"), "val"),
        **dict.fromkeys(("train/2", "train/3"), "train"),
    }
    assert splits_of(tmp_path / "out") == {
        item.name: item.split for item in load_dataset("kolektor2", tmp_path / "own").items
    }


def test_the_published_split_is_written_and_the_default_one_is_not(tmp_path, write_picture):
    kolektor2(tmp_path / "published", write_picture)
    magnetic_tile(tmp_path / "own", write_picture)
    published = converted(tmp_path / "published", tmp_path / "a")
    assert {name.partition("/")[0] for name, split in published.items() if split == "test"} == {"test"}
    assert set(published.values()) == {"train", "val", "test"}
    assert set(converted(tmp_path / "own", tmp_path / "b").values()) == {None}


@pytest.mark.parametrize(
    ("text", "message"), [("maybe good/a\n", "invalid line 'maybe good/a'"), ("", "has no line with a name")]
)
def test_an_invalid_split_file_can_be_ignored(tmp_path, folder_root, text, message, capsys):
    (folder_root / "splits.txt").write_text(text)
    assert message in refused(["convert", "auto", folder_root, tmp_path / "out"], capsys)
    assert set(converted(folder_root, tmp_path / "out", "--skip-bad-split-file").values()) == {None}
    printed = capsys.readouterr().err
    assert "note: No split is used, because the split file is invalid." in printed and message in printed


def test_published_layouts_are_read_without_a_split_file_that_divides_groups(tmp_path, write_picture, capsys):
    """Published splits may divide groups; then the split is that of the layout, here none."""
    root = tmp_path / "own"
    WRITERS["kolektor"](root, write_picture)
    (root / "splits.txt").write_text("train kos00/Part0\ntest kos00/Part1\n")
    assert set(converted(root, tmp_path / "out").values()) == {None}
    printed = capsys.readouterr().err
    assert "note: The split file is not used, because it is invalid." in printed
    assert "the group 'kos00' is assigned to 'test'" in printed
    dataset = load_dataset("kolektor", root)
    assert not has_own_split(dataset, root)
