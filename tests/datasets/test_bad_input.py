"""What a set may hold that cannot be learnt from: every offender is named at once, by the command itself."""

import json
import os
import tracemalloc

import cv2
import numpy as np
import pytest

from datasets import checking
from datasets.__main__ import main
from datasets.sample import Sample
from segdec.errors import ImageError

TWO_POINTS = [[2, 2, 9, 9]]


def folder(root, picture):
    """20×12 px (width × height)."""
    for name in (
        "good/a",
        "good/b",
        "good/c",
        "good/gone",
        "dent/d",
        "dent/e",
        "dent/f",
        "dent/g",
        "scratch/h",
    ):
        picture(root / f"{name}.png")
    for name in "fg":
        picture(root / f"masks/dent/{name}.png", mask=True)
    picture(root / "masks/dent/d.png", mask=True, size=(24, 12))
    picture(root / "masks/scratch/h.png", mask=True, size=(12, 20))
    cv2.imwrite(str(root / "masks/dent/e.png"), np.arange(240, dtype=np.uint8).reshape(12, 20))
    (root / "good/f.png").write_bytes((root / "dent/f.png").read_bytes())
    (root / "good/gone.png").unlink()
    (root / "good/gone.png").symlink_to(root / "good/gone.png")
    (root / "good/again").symlink_to(root)
    (root / "good/c.png").write_bytes(b"no picture")
    return [
        "dent/d.png is 24×12 pixels",
        "scratch/h.png is 12×20 pixels",
        "dent/e.png has 240 values: 0, 1, 2, 3, 4, 5, …",
        "good/f.png (good) is the same picture as",
        "dent/f.png (dent) is the same picture as",
        "gone.png cannot be read: Too many levels of symbolic links",
        "again is a folder in a class folder",
        "c.png is not an image",
    ]


def coco(root, picture):
    for name in "abcdefgh":
        picture(root / f"images/{name}.png")
    images = [
        {"id": number, "file_name": f"{name}.png", "width": 20, "height": 12}
        for number, name in enumerate("abcdefgh?")
    ]
    rle = [{"size": [12, 20], "counts": counts} for counts in ([200, 41], [230, 5, 6])]
    drawn = [*rle, TWO_POINTS, TWO_POINTS, [[2, 2, 9, 2, 9, 400]], [[2, 2, 9, 2, 9, 9]], [[2, 2, 9, 2, 9, 9]]]
    annotations = [
        {"id": number, "image_id": number, "category_id": 7 if number == 5 else 1, "segmentation": shapes}
        for number, shapes in enumerate(drawn)
    ]
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "dent"}]}
    (root / "annotations.json").write_text(json.dumps(content))
    return [
        "annotations[0]: The run lengths have 241 pixels",
        "annotations[1]: The run lengths have 241 pixels",
        "annotations[2]: A polygon of 2 different points",
        "annotations[3]: A polygon of 2 different points",
        "annotations[4]: Y = 400 is outside",
        "annotations[5]: No category has the id 7",
        "images[8]: The photograph",
    ]


def manifest(root, picture):
    for name in "abcdefg":
        picture(root / f"{name}.png")
    (root / "classes.txt").write_text("dent\n")
    lines = [
        "a.png,good,",
        "b.png,dnet,",
        "c.png,pore,",
        "x.png,good,",
        "y.png,dent,",
        "d.png,good,",
        "d.png,dent,",
    ]
    lines += ['e.png,dent,"1,1,5,5"', "f.png,good,", "g.png,dent,"]
    (root / "manifest.csv").write_text("\n".join(["image,label,polygon", *lines]))
    return [
        "line 3: The label 'dnet' is not one of the classes",
        "line 4: The label 'pore' is not one of the classes",
        "line 5: The image",
        "line 6: The image",
        "lines 7 and 8: The photograph",
        "line 9: A polygon of 2 different points",
    ]


def severstal(root, picture):
    for name in "abcdef":
        picture(root / f"train_images/{name}.jpg", size=(1600, 256))
    rows = ["a.jpg,1,409600 2", "b.jpg,2,0 3", "c.jpg,5,1 3", "x.jpg,1,1 3", "d.jpg,4,1 3"]
    (root / "train.csv").write_text("\n".join(["ImageId,ClassId,EncodedPixels", *rows]))
    return [
        "line 2: a.jpg: the run of 2 pixels from pixel 409600 exceeds the picture",
        "line 3: b.jpg: the run of 3 pixels from pixel 0 exceeds the picture",
        "line 4: c.jpg: the class '5' is not one of",
        "line 5: x.jpg: the photograph is not in train_images",
    ]


@pytest.mark.parametrize(
    ("layout", "build", "usable"),
    [
        ("folder", folder, ["dent/g", "good/a", "good/b"]),
        ("coco", coco, ["images/g", "images/h"]),
        ("manifest", manifest, ["a", "f", "g"]),
        ("severstal", severstal, ["d", "e", "f"]),
    ],
)
def test_every_offender_is_named_at_once_and_can_be_left_out(
    layout, build, usable, tmp_path, write_picture, capsys
):
    root, out = tmp_path / "set", tmp_path / "splits.txt"
    root.mkdir()
    expected = build(root, write_picture)
    for command in (["inspect", "--out", str(tmp_path / "sheet.png")], ["split", str(out)]):
        with pytest.raises(SystemExit):
            main([command[0], layout, str(root), *command[1:]])
        told = [line.removeprefix("  ") for line in capsys.readouterr().err.splitlines()[1:-1]]
        assert len(told) == len(expected)
        for words in expected:
            assert sum(words in line for line in told) == 1, (words, told)
    assert not out.exists()
    main(["split", layout, str(root), str(out), "--skip-broken", "--val", "0", "--test", "0"])
    left_out = [line.removeprefix("left out: ") for line in capsys.readouterr().err.splitlines()]
    assert [line for line in left_out if "image/s" not in line] == told
    assert [line.split()[1] for line in out.read_text().splitlines()[1:]] == usable


@pytest.mark.slow
def test_3000_photographs_with_one_that_is_unreadable(tmp_path, write_picture, monkeypatch, capsys):
    """Decoding is stood in for; each photograph holds a megapixel, and few are held at a time."""

    def decode(record, files, **_options):
        if not files.photograph:
            raise ImageError(f"{record.image_file} is empty", code="empty_image")
        mask = None if files.mask is None else np.ones((12, 20), np.uint8)
        return Sample(record.name, np.empty((1000, 1000, 1), np.uint8), mask, record.label)

    monkeypatch.setattr(checking, "decode", decode)
    monkeypatch.setattr(checking, "content_digest", lambda sample: sample.name)
    root = tmp_path / "set"
    picture = write_picture(root / "dent/a.png")
    (root / "good").mkdir()
    for number in range(3000):
        os.link(picture, root / f"good/{number:04d}.png")
    write_picture(root / "masks/a.png", mask=True)
    (root / "good/1234.png").unlink()
    (root / "good/1234.png").write_bytes(b"")
    tracemalloc.start()
    try:
        with pytest.raises(SystemExit):
            main(["inspect", "folder", str(root), "--out", str(tmp_path / "sheet.png")])
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    printed = capsys.readouterr()
    assert "The data set has 1 problem:" in printed.err
    assert "good/1234.png is empty" in printed.err
    assert next(line for line in printed.out.splitlines() if line.startswith("all ")).split()[-1] == "3000"
