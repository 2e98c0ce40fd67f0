"""Near duplicates that are found among altered copies, and photographs that are grouped without a reason.

    python -m benchmarks.near_duplicates data/capsule data/magnetic_tile

For each alteration, altered copies of some photographs are added to the set. A copy is found if it is in the
cluster of its original. `grouped` is the share of the original photographs that are in a cluster with a
photograph of another group; `group found` is the share of photographs of groups with several photographs
that are in a cluster with one of them. Groups mean something only in layouts that know parts, such as
`magnetic_tile`. `any angle` is `grouped` after each photograph has been rotated by a random angle.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import markdown_table
from datasets.checked_photograph import CheckedPhotograph
from datasets.detection import detect_layout
from datasets.leaks import near_duplicates
from datasets.loading import load_dataset
from datasets.near_duplicates import normalized_thumbnail
from datasets.reading import read
from datasets.sample import DataSetItem
from segdec.runtime.cli import clean_exit

Image = NDArray[np.uint8]
Alteration = Callable[[Image, np.random.Generator], Image]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each data set."""
    parser = argparse.ArgumentParser(description="Recall and false positives of near duplicates.")
    parser.add_argument("roots", type=Path, nargs="+", metavar="FOLDER", help="data sets")
    parser.add_argument("--copies", type=int, default=40, help="of each alteration; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(arguments)
    heading = ["set", "photographs", "grouped", "any angle", "group found", *ALTERATIONS, "s"]
    rows = [[root.name, *measure(root, options.copies, options.seed)] for root in options.roots]
    print(markdown_table(heading, rows))


def measure(root: Path, copies: int, seed: int) -> list[str]:
    """Returns the cells of a row after the name."""
    items = load_dataset(detect_layout(root), root).items
    images = [read(item, white_level=65535).image for item in items]
    originals = [_checked(item, image) for item, image in zip(items, images, strict=True)]
    start = time.perf_counter()
    clusters = _clusters(originals)
    seconds = time.perf_counter() - start
    groups = {item.name: item.group for item in items}
    several = [name for name, group in groups.items() if list(groups.values()).count(group) > 1]
    random = np.random.default_rng(seed)
    turned = [
        _checked(item, _moved(image, degrees=random.uniform(0, 360)))
        for item, image in zip(items, images, strict=True)
    ]
    with_own = {
        name for c in clusters for name in c if [groups[other] for other in c].count(groups[name]) > 1
    }
    found = f"{np.mean([name in with_own for name in several]):.2f}" if several else "–"
    cells = [
        str(len(items)),
        _grouped_share(clusters, groups),
        _grouped_share(_clusters(turned), groups),
        found,
    ]
    for number, alter in enumerate(ALTERATIONS.values()):
        random = np.random.default_rng([seed, number])
        chosen = random.choice(len(items), min(copies, len(items)), replace=False)
        altered = [
            _checked(_copied(items[index]), np.ascontiguousarray(alter(images[index], random)))
            for index in chosen
        ]
        together = {name for c in _clusters([*originals, *altered]) for name in c if _copy_name(name) in c}
        cells.append(f"{len(together) / len(altered):.2f}")
    return [*cells, f"{seconds:.1f}"]


def _grouped_share(clusters: Sequence[set[str]], groups: Mapping[str, str]) -> str:
    """Returns the share of photographs that are in a cluster with one of another group."""
    names = {name for c in clusters for name in c if len({groups[other] for other in c}) > 1}
    return f"{len(names) / len(groups):.3f}"


# === Alterations ===


def _shift(image: Image, random: np.random.Generator) -> Image:
    """By 1 to 2 % of height and width; mirrored at the border."""
    return _moved(image, shift=_signed(random, 0.01, 0.02, 2))


def _crop(image: Image, random: np.random.Generator) -> Image:
    """2 to 4 % of height and width."""
    height, width = (round(side * (1 - random.uniform(0.02, 0.04))) for side in image.shape[:2])
    top, left = random.integers(0, (image.shape[0] - height + 1, image.shape[1] - width + 1))
    return image[top : top + height, left : left + width]


def _rotate(image: Image, random: np.random.Generator) -> Image:
    """By 1 to 2°."""
    return _moved(image, degrees=float(_signed(random, 1, 2, 1)[0]))


def _brighten(image: Image, random: np.random.Generator) -> Image:
    """15 % darker or brighter."""
    return np.asarray(np.clip(image * random.choice([0.85, 1.15]), 0, 255), np.uint8)


def _compress(image: Image, _: np.random.Generator) -> Image:
    """JPEG of quality 60."""
    encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 60])[1]
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED), np.uint8).reshape(image.shape)


def _combine(image: Image, random: np.random.Generator) -> Image:
    """A crop, half of the shift and of the rotation, brightness and compression."""
    image = _crop(image, random)
    shift, degrees = _signed(random, 0.005, 0.01, 2), float(_signed(random, 0.5, 1, 1)[0])
    return _compress(_brighten(_moved(image, shift=shift, degrees=degrees), random), random)


ALTERATIONS: dict[str, Alteration] = {
    "shift": _shift,
    "crop": _crop,
    "rotation": _rotate,
    "brightness": _brighten,
    "JPEG 60": _compress,
    "combined": _combine,
    "180°": lambda image, _: image[::-1, ::-1],
    "mirrored": lambda image, _: image[:, ::-1],
}


def _moved(
    image: Image, *, shift: Sequence[float] | NDArray[np.float64] = (0, 0), degrees: float = 0
) -> Image:
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    matrix[:, 2] += np.multiply(shift, (width, height))
    moved = cv2.warpAffine(image, matrix, (width, height), borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(moved, np.uint8).reshape(image.shape)


def _signed(random: np.random.Generator, low: float, high: float, count: int) -> NDArray[np.float64]:
    return np.asarray(random.uniform(low, high, count) * random.choice([-1, 1], count), np.float64)


# === Clusters ===


def _checked(item: DataSetItem, image: Image) -> CheckedPhotograph:
    height, width, channels = image.shape
    return CheckedPhotograph(
        item, height, width, channels, None, item.name, thumbnail=normalized_thumbnail(image)
    )


def _copied(item: DataSetItem) -> DataSetItem:
    return replace(item, name=_copy_name(item.name))


def _copy_name(name: str) -> str:
    return f"{name} (altered)"


def _clusters(photographs: Sequence[CheckedPhotograph]) -> list[set[str]]:
    return [{photograph.item.name for photograph in cluster} for cluster in near_duplicates(photographs)]


if __name__ == "__main__":
    with clean_exit():
        main()
