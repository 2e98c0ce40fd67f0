"""What is unusual about single photographs."""

import json
import shutil

import cv2
import numpy as np
import pytest

from datasets.__main__ import main
from datasets.layouts.toy import write_toy


@pytest.fixture
def root(tmp_path):
    """Twelve toy parts; one of them again, brighter by one."""
    write_toy(tmp_path / "toy", 24, size=64)
    shutil.copytree(tmp_path / "toy/good", tmp_path / "own/good")
    pixels = cv2.imread(str(tmp_path / "own/good/00000.png"), cv2.IMREAD_UNCHANGED)
    cv2.imwrite(str(tmp_path / "own/good/brighter.png"), np.minimum(pixels, 254) + 1)
    return tmp_path / "own"


def found(root, out):
    main(["findings", "folder", str(root), str(out)])
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return [(line["kind"], line["names"]) for line in lines]


def test_each_kind_is_found(root, tmp_path):
    pair = ["good/00000", "good/brighter"]
    assert found(root, tmp_path / "one") == [("near_duplicates", pair)]
    shutil.copy(root / "good/00002.png", root / "good/copy.png")
    (root / "good/broken.png").write_bytes(b"no picture")
    cv2.imwrite(str(root / "good/flat.png"), np.full((64, 64), 9, np.uint8))
    cv2.imwrite(str(root / "good/small.png"), np.random.default_rng(0).integers(0, 255, (32, 48), np.uint8))
    assert found(root, tmp_path / "other") == [
        ("problem", ["good/broken"]),
        ("equal", ["good/00002", "good/copy"]),
        ("near_duplicates", pair),
        ("size", ["good/small"]),
        ("one_colour", ["good/flat"]),
    ]


def test_near_duplicates_of_one_part_are_in_one_split_anyway(root, tmp_path):
    names = sorted(path.name for path in (root / "good").iterdir())
    same = {"00000.png", "brighter.png"}
    lines = [f"good/{name},good,{'same' if name in same else ''}" for name in names]
    (root / "classes.txt").write_text("scratch\n")
    (root / "manifest.csv").write_text("\n".join(["image,label,group", *lines]))
    main(["findings", "manifest", str(root), str(tmp_path / "out")])
    assert (tmp_path / "out").read_text() == ""
