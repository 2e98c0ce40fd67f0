"""The toy set: synthetic parts with and without defects.

A sample depends on its index, the seed and the surface alone. The default surface, `brushed`, is grey metal
under uneven light. Dust, reflections and machining marks are on good and defective parts, so that a threshold
on the difference to a blurred image does not solve it (`benchmarks/toy_difficulty.py` measures that). The
other surfaces are in colour. On disk the set has the layout `folder`, with its split in `splits.txt`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datasets.layouts import folder
from datasets.layouts.class_folders import MASKS
from datasets.sample import Dataset, Sample
from datasets.splitting import SPLITS_FILE, default_split, write_splits
from datasets.toy_board import CIRCUIT_BOARD
from datasets.toy_materials import METAL, WOOD, Material, render
from datasets.toy_surface import DEFECTS, Canvas, distractors, light, texture, visible
from segdec.errors import DatasetError
from segdec.images import encode_png
from segdec.runtime.counts import count_of
from segdec.runtime.files import atomic_folder

BRUSHED = "brushed"
MATERIALS: dict[str, Material] = {"metal": METAL, "wood": WOOD, "circuit_board": CIRCUIT_BOARD}
SURFACES = (BRUSHED, *MATERIALS)
CLASS_COUNTS = (2, 4)

MIN_SIZE = 32
MIN_COUNT = 18
"""Below it, a class may be missing from one of the splits."""

MARK = "toy set"

Progress = Callable[[Iterable[int]], Iterable[int]]
Painting = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def index(root: Path) -> Dataset:
    """Lists a toy set that `write_toy` has written; see `datasets.layouts.folder.index`."""
    if not root.exists():
        raise DatasetError(f"There is no toy set at {root}. Write one with: python -m datasets toy {root}")
    return folder.index(root)


def make_sample(
    index: int, *, seed: int = 0, size: int = 128, classes: int = 2, surface: str = BRUSHED
) -> Sample:
    """Makes one sample: even indices are good, odd ones show one of three kinds of defect in turn.

    Another `seed` gives another set. With 2 `classes`, good and defect, or 4, good and the kinds of defect,
    the pixels are the same. `size` is height and width, px; `surface` a name in `SURFACES`.

    Returns:
        Image uint8 [size, size, C] (C is 1 for `brushed`, else 3), mask uint8 [size, size], 255 where the
        defect shows.

    Raises:
        DatasetError: If an argument is out of range.
    """
    _check(index, seed, size, classes, surface)
    kinds = tuple(DEFECTS) if surface == BRUSHED else MATERIALS[surface].kinds
    kind = kinds[index // 2 % len(kinds)] if index % 2 else None
    names = ("good", "defect") if classes == 2 else ("good", *kinds)
    label = 0 if kind is None else min(1 + kinds.index(kind), classes - 1)
    paint = _paint_brushed if surface == BRUSHED else partial(_paint_material, MATERIALS[surface])
    image, mask = paint(index, seed, size, kind)
    return Sample(f"{names[label]}/{index:05d}", image, mask, label)


def _paint_brushed(index: int, seed: int, size: int, kind: str | None) -> Painting:
    rng = _generator(seed, index)
    canvas = Canvas(size, brushing=rng.uniform(-0.25, 0.25))
    part = light(rng, canvas) * texture(rng, canvas) + distractors(rng, canvas)
    grain = rng.normal(0, rng.uniform(1.5, 3.5), (size, size))
    change = DEFECTS[kind](rng, canvas) if kind else canvas.empty()
    image = np.clip(np.rint(part + change + grain), 0, 255).astype(np.uint8)
    return image[..., None], visible(change)


def _paint_material(material: Material, index: int, seed: int, size: int, kind: str | None) -> Painting:
    rng = _generator(seed, index)
    canvas = Canvas(size, brushing=rng.uniform(-0.08, 0.08))
    painted, covered = material.paint(rng, _generator(seed), canvas, kind)
    return render(rng, canvas, painted), np.where(covered, np.uint8(255), np.uint8(0))


def _generator(*seeds: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seeds)))


def write_toy(
    out: Path,
    count: int,
    *,
    size: int = 128,
    classes: int = 2,
    seed: int = 0,
    surface: str = BRUSHED,
    overwrite: bool = False,
    progress: Progress = iter,
) -> None:
    """Writes samples 0 to `count` - 1 as a `folder` set with a 60/20/20 split, atomically.

    `count` is at least 18, so that each split has all classes. `size`, `classes`, `seed` and `surface` as for
    `make_sample`; `progress` wraps the loop over the samples, for example `tqdm`. With `overwrite`, a toy set
    at `out` is replaced, and nothing but a toy set.

    Raises:
        DatasetError: If an argument is out of range, or `out` cannot be written, or exists and may not
            be replaced.
    """
    _check(0, seed, size, classes, surface)
    if count < MIN_COUNT:
        raise DatasetError(
            f"A toy set of {count_of(count, 'sample')} is too small to split. Ask for at least {MIN_COUNT}."
        )
    _check_free(out, overwrite)
    try:
        with atomic_folder(out, overwrite=overwrite) as root:
            for number in progress(range(count)):
                sample = make_sample(number, seed=seed, size=size, classes=classes, surface=surface)
                _write_sample(root, sample)
            items = default_split(folder.list_items(root), seed=seed).items
            comment = f"{MARK}: {count} samples of {size}×{size} pixels, {classes} classes, seed {seed}"
            comment += "" if surface == BRUSHED else f", {surface}"
            write_splits(root / SPLITS_FILE, items, comment=comment)
    except OSError as error:
        raise DatasetError(
            f"The toy set cannot be written to {out} ({error}). Choose another folder."
        ) from error


def _check(index: int, seed: int, size: int, classes: int, surface: str) -> None:
    if classes not in CLASS_COUNTS:
        raise DatasetError(f"A toy set cannot have {classes} classes. Expected 2 or 4.")
    if surface not in SURFACES:
        raise DatasetError(f"Unknown surface '{surface}'. Expected one of {', '.join(SURFACES)}.")
    if size < MIN_SIZE:
        raise DatasetError(f"A toy sample of {size} pixels is too small. Expected at least {MIN_SIZE}.")
    if index < 0 or seed < 0:
        raise DatasetError(
            f"The toy set has no sample {index} with seed {seed}. Expected 0 or more for both."
        )


def _check_free(out: Path, overwrite: bool) -> None:
    splits = out / SPLITS_FILE
    if out.exists() and not overwrite:
        raise DatasetError(f"{out} exists. Choose another folder, or give --overwrite to replace a toy set.")
    if out.exists() and not (splits.is_file() and splits.read_bytes().startswith(f"# {MARK}:".encode())):
        raise DatasetError(
            f"{out} exists and is not a toy set, so it is not replaced. Choose another folder."
        )


def _write_sample(root: Path, sample: Sample) -> None:
    pictures = {root / f"{sample.name}.png": sample.image}
    if sample.label > 0 and sample.mask is not None:
        pictures[root / MASKS / f"{sample.name}.png"] = sample.mask
    for path, pixels in pictures.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_png(pixels))
