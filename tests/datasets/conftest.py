"""Small data sets on disk, written afresh for each test that changes them."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from datasets.sample import Dataset, DataSetItem

WritePicture = Callable[..., Path]


@pytest.fixture
def write_picture() -> WritePicture:
    """Writes a grey picture, or a mask with a 3×2 defect of `value`, and makes its folder."""
    numbers: dict[Path, int] = {}

    def write(path: Path, *, mask: bool = False, value: int = 255, size: tuple[int, int] = (20, 12)) -> Path:
        pixels = np.full(size[::-1], 0 if mask else 90, np.uint8)
        if mask:
            pixels[4:6, 5:8] = value
        else:  # no two are equal, not even as JPEG
            lower, upper = divmod(numbers.setdefault(path, len(numbers)), 100)
            pixels[: size[1] // 2], pixels[size[1] // 2 :] = 20 + upper, 130 + lower
        path.parent.mkdir(parents=True, exist_ok=True)
        assert cv2.imwrite(str(path), pixels)
        return path

    return write


@pytest.fixture
def kolektor_root(tmp_path: Path, write_picture: WritePicture) -> Path:
    """Two commutators of two parts; kos01/Part1 is defective."""
    root = tmp_path / "kolektor"
    for item in ("kos01", "kos21"):
        for part in ("Part0", "Part1"):
            write_picture(root / item / f"{part}.jpg")
            value = 85 if (item, part) == ("kos01", "Part1") else 0
            write_picture(root / item / f"{part}_label.bmp", mask=True, value=value)
    return root


@pytest.fixture
def folder_root(tmp_path: Path, write_picture: WritePicture) -> Path:
    """Two good photographs, a dent and a scratch with masks in their class folders."""
    root = tmp_path / "own"
    for name in ("good/a", "good/b", "dent/c", "scratch/d"):
        write_picture(root / f"{name}.png")
    write_picture(root / "masks/dent/c.png", mask=True)
    write_picture(root / "masks/scratch/d.png", mask=True)
    return root


@pytest.fixture
def ten_parts() -> Dataset:
    """Ten parts with two photographs each, without files; the second one of each odd part is defective."""
    items = tuple(
        DataSetItem(f"kos{i:02d}/Part{p}", Path("image"), None, label=int(p and i % 2), group=f"kos{i:02d}")
        for i in range(1, 11)
        for p in (0, 1)
    )
    return Dataset(classes=("good", "defect"), items=items)
