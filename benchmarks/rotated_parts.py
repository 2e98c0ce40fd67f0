"""Copies a data set with each photograph rotated by a random angle, as parts in any orientation.

The copy is a data set of its own, for example for the suite:

    python -m benchmarks.rotated_parts data/capsule build/rotated
    python -m benchmarks.suite build/rotated --sets capsule --defects 0 --seeds 0 1 --encoder-weights imagenet
"""

import argparse
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.suite.sets import SuiteSet, load_set
from datasets.reading import read
from datasets.splitting import SPLITS_FILE
from segdec.images import write_png
from segdec.runtime.cli import clean_exit


def rotate(image: NDArray[np.uint8], degrees: float, interpolation: int) -> NDArray[np.uint8]:
    """Returns a square image: one [H, W, C] rotated about its centre, whose border is repeated outwards."""
    height, width = image.shape[:2]
    side = max(height, width)
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
    matrix[:, 2] += (side - width) / 2, (side - height) / 2
    rotated = cv2.warpAffine(
        image, matrix, (side, side), flags=interpolation, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(rotated, np.uint8)


def copy_rotated(source: SuiteSet, folder: Path, seed: int) -> None:
    """Writes a copy of a data set with its split to `folder`, which must not exist."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    lines = []
    for number, item in enumerate(source.dataset.items):
        sample, degrees = read(item), random.uniform(0, 360)
        name = f"{'defect' if sample.label else 'good'}/{number:05d}"
        for parent, image, interpolation in (
            (folder, sample.image, cv2.INTER_LINEAR),
            (folder / "masks", sample.mask, cv2.INTER_NEAREST),
        ):
            if image is not None and (parent == folder or image.any()):
                path = parent / f"{name}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_png(path, rotate(image, degrees, interpolation))
        lines.append(f"{item.split} {name}")
    (folder / SPLITS_FILE).write_text("\n".join([*lines, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path, help="folder of the data set")
    parser.add_argument("out", type=Path, help="folder for the copy, which gets the name of the data set")
    parser.add_argument("--seed", type=int, default=0, help="seed of the angles")
    options = parser.parse_args()
    with clean_exit():
        copy_rotated(load_set(options.root), options.out / options.root.resolve().name, options.seed)


if __name__ == "__main__":
    main()
