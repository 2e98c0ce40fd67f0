"""How far near twins lie apart from other photographs, on a set at hand, and how long looking for them takes.

    python -m benchmarks.near_duplicates kolektor data/kolektorsdd
    python -m benchmarks.near_duplicates toy data/toy --altered 20 --timed 10000

Photographs of different groups are taken to show different things: what is alike among them is a false alarm,
or a twin that nobody has known. Those of one group may be twins (exposures of a tile) or not (parts of an
item). Copies of some photographs are altered, each in one way, and looked for in the set.
"""

import argparse
import resource
import time
from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.loading import LAYOUTS, load_dataset
from datasets.near_duplicates import (
    MIN_PHOTOGRAPHS,
    THRESHOLD,
    THUMBNAIL_BYTES,
    distinctive_features,
    normalized_thumbnail,
    similar_pairs,
)
from datasets.reading import read
from datasets.sample import Record
from segdec.errors import DatasetError
from segdec.runtime.cli import clean_exit, progress_bar

Image = NDArray[np.uint8]

BINS = np.linspace(0, 1, 11)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="How far near twins lie apart from other photographs.")
    parser.add_argument("layout", choices=LAYOUTS, metavar="NAME", help="layout of the set")
    parser.add_argument("root", metavar="ROOT", help="its folder")
    parser.add_argument(
        "--altered", type=int, default=100, help="photographs to alter (default: %(default)s)"
    )
    parser.add_argument(
        "--timed", type=int, default=10_000, help="made-up photographs to time (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    with clean_exit(group="train"):
        records = load_dataset(options.layout, options.root).records
        if len(records) < MIN_PHOTOGRAPHS:
            raise DatasetError(
                f"{options.root} holds {len(records)} photographs. Expected {MIN_PHOTOGRAPHS} at least."
            )
        small = [normalized_thumbnail(read(record).image) for record in progress_bar(records, desc="reading")]
        print_likeness(records, distinctive_features(small))
        print_altered(records[:: -(-len(records) // options.altered)], records, small)
        print_time(options.timed)


def print_likeness(records: Sequence[Record], features: NDArray[np.float32]) -> None:
    """Prints how each photograph correlates with the nearest of another group, and of its own."""
    groups = np.unique([record.group for record in records], return_inverse=True)[1]
    alike, same = features @ features.T, groups[:, None] == groups
    others = np.where(same, -1, alike).max(axis=1)
    print(f"{len(records)} photographs in {groups.max() + 1} groups; twins correlate by {THRESHOLD} at least")
    print(f"nearest photograph of another group: {_spread(others)}")
    for low, count in zip(BINS[:-1], np.histogram(others.clip(0, 1), BINS)[0], strict=True):
        print(f"  from {low:.1f}  {count:>6}")
    one, other = np.unravel_index(np.where(same, -1, alike).argmax(), alike.shape)
    print(f"  the nearest: {records[int(one)].name} ~ {records[int(other)].name}")
    np.fill_diagonal(same, val=False)
    if same.any():
        own = np.where(same, alike, -1).max(axis=1)[same.any(axis=1)]
        print(f"nearest photograph of its own group: {_spread(own)}")


def print_altered(chosen: Sequence[Record], records: Sequence[Record], small: Sequence[bytes]) -> None:
    """Prints how altered copies, added to the set, correlate with what they were made of."""
    places = {record.name: place for place, record in enumerate(records)}
    originals = [places[record.name] for record in chosen]
    images = [read(record).image for record in chosen]
    print(f"altered copies of {len(chosen)} photographs, each with what it was made of:")
    for name, alter in ALTERATIONS.items():
        features = distinctive_features([*small, *(normalized_thumbnail(alter(image)) for image in images)])
        alike = (features[originals] * features[len(small) :]).sum(axis=1)
        print(f"  {name:<22}{_spread(alike)}")


def print_time(count: int) -> None:
    """Prints what comparing `count` photographs of noise takes."""
    drawn = np.random.default_rng(0).normal(0, 32, (count, THUMBNAIL_BYTES)).clip(-127, 127).astype(np.int8)
    small = [row.tobytes() for row in drawn]
    begun, begun_cpu = time.perf_counter(), _cpu_s()
    found = sum(len(block.first) for block in similar_pairs(distinctive_features(small)))
    wall_s, cpu_s = time.perf_counter() - begun, _cpu_s() - begun_cpu
    pairs = count * (count - 1) // 2
    print(f"{count} photographs, {pairs} pairs: {wall_s:.1f} s, {cpu_s:.1f} s of CPU; {found} twins")


def _spread(alike: NDArray[np.float32]) -> str:
    low, middle, high = np.percentile(alike, [5, 50, 95])
    share = (alike >= THRESHOLD).mean()
    return (
        f"5 % {low:.2f}, median {middle:.2f}, 95 % {high:.2f}, highest {alike.max():.2f}; twins {share:.1%}"
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _gain(factor: float) -> Callable[[Image], Image]:
    return lambda image: np.clip(factor * image, 0, 255).astype(np.uint8)


def _gamma(exponent: float) -> Callable[[Image], Image]:
    return lambda image: (255 * (image / 255) ** exponent).astype(np.uint8)


def _moved(share: float) -> Callable[[Image], Image]:
    """Moved by a share of height and width; the border is repeated."""

    def move(image: Image) -> Image:
        down, right = (round(share * side) for side in image.shape[:2])
        return np.pad(image, ((down, 0), (right, 0), (0, 0)), mode="edge")[: image.shape[0], : image.shape[1]]

    return move


def _cropped(share: float) -> Callable[[Image], Image]:
    """Without a share of height and width at each border."""

    def crop(image: Image) -> Image:
        down, right = (round(share * side) for side in image.shape[:2])
        return image[down : image.shape[0] - down, right : image.shape[1] - right]

    return crop


def _noisy(image: Image) -> Image:
    noise = np.random.default_rng(int(image.sum())).normal(0, 10, image.shape)  # of each, its own
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def _compressed(image: Image) -> Image:
    data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 50])[1]
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), np.uint8).reshape(image.shape)


def _lit_from_the_side(image: Image) -> Image:
    light = np.linspace(0.6, 1.3, image.shape[1])[None, :, None]
    return np.clip(light * image, 0, 255).astype(np.uint8)


ALTERATIONS: dict[str, Callable[[Image], Image]] = {
    "JPEG, quality 50": _compressed,
    "exposed × 0.5": _gain(0.5),
    "exposed × 1.5": _gain(1.5),
    "gamma 0.5": _gamma(0.5),
    "gamma 2": _gamma(2.0),
    "noise, 10 levels": _noisy,
    "lit from the side": _lit_from_the_side,
    "moved by 1 %": _moved(0.01),
    "moved by 2 %": _moved(0.02),
    "moved by 4 %": _moved(0.04),
    "cropped by 2 %": _cropped(0.02),
}


if __name__ == "__main__":
    main()
