"""A made-up data set: brushed metal under uneven light, with scratches, spots and stains.

A sample is a function of its index and the seed alone. Dust, reflections and machining marks lie on
good and defective parts alike, so that a threshold on the difference to a blurred image does not
solve it: `benchmarks/toy_difficulty.py` measures how far it gets. On disk the set has the layout
`folder`, with its split in `splits.txt`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from datasets.layouts import folder
from datasets.layouts.split_assignment import SPLITS_FILE
from datasets.sample import Dataset, Sample
from datasets.splitting import default_split, write_splits
from datasets.toy_surface import DEFECTS, Canvas, distractors, light, texture, visible
from segdec.errors import DatasetError
from segdec.images import encode_png
from segdec.runtime.files import atomic_folder

KINDS = tuple(DEFECTS)
CLASSES: dict[int, tuple[str, ...]] = {2: ("good", "defect"), 4: ("good", *KINDS)}

MIN_SIZE = 32
MIN_COUNT = 18
"""Below it, a class may be missing from one of the splits."""

MARK = "toy set"

Progress = Callable[[Iterable[int]], Iterable[int]]


def index(root: Path) -> Dataset:
    """Lists a toy set that `write_toy` has written; see `datasets.layouts.folder.index`."""
    if not root.exists():
        raise DatasetError(f"There is no toy set at {root}. Write one with: python -m datasets toy {root}")
    return folder.index(root)


def make_sample(index: int, *, seed: int = 0, size: int = 128, classes: int = 2) -> Sample:
    """Makes one sample: even indices are good, odd ones show a scratch, a spot or a stain in turn.

    Args:
        index: Number of the sample, from 0.
        seed: Another seed, another set.
        size: Height and width, pixels.
        classes: 2 (good, defect) or 4 (good, scratch, spot, stain); the pixels are the same.

    Returns:
        Image uint8 [size, size, 1], mask uint8 [size, size] (255 where the defect shows).

    Raises:
        DatasetError: If an argument is out of range.
    """
    _check(index, seed, size, classes)
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, index])))
    canvas = Canvas(size, brushing=rng.uniform(-0.25, 0.25))
    part = light(rng, canvas) * texture(rng, canvas) + distractors(rng, canvas)
    grain = rng.normal(0, rng.uniform(1.5, 3.5), (size, size))
    kind = (index // 2) % len(KINDS)
    change = DEFECTS[KINDS[kind]](rng, canvas) if index % 2 else canvas.empty()
    label = 0 if index % 2 == 0 else min(1 + kind, classes - 1)
    return Sample(
        name=f"{CLASSES[classes][label]}/{index:05d}",
        image=np.clip(np.rint(part + change + grain), 0, 255).astype(np.uint8)[..., None],
        mask=visible(change),
        label=label,
    )


def write_toy(
    out: Path,
    count: int,
    *,
    size: int = 128,
    classes: int = 2,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress = iter,
) -> None:
    """Writes samples 0 to `count` - 1 as a `folder` set with a 60/20/20 split: all of it, or nothing.

    Args:
        out: The folder to make.
        count: Number of samples, at least 18, so that each split has each class.
        size: Height and width, pixels.
        classes: 2 or 4; see `make_sample`.
        seed: Another seed, another set.
        overwrite: Replace a toy set at `out`; nothing but a toy set is ever replaced.
        progress: Wraps the loop over the samples, for example `tqdm`.

    Raises:
        DatasetError: If an argument is out of range, or `out` cannot be written, or exists and may not
            be replaced.
    """
    _check(0, seed, size, classes)
    if count < MIN_COUNT:
        raise DatasetError(
            f"A toy set of {count} samples is too small to split. Ask for at least {MIN_COUNT}."
        )
    _check_free(out, overwrite)
    try:
        with atomic_folder(out, overwrite=overwrite) as root:
            for number in progress(range(count)):
                _write_sample(root, make_sample(number, seed=seed, size=size, classes=classes))
            records = default_split(folder.list_records(root), seed=seed).records
            comment = f"{MARK}: {count} samples of {size}×{size} pixels, {classes} classes, seed {seed}"
            write_splits(root / SPLITS_FILE, records, comment=comment)
    except OSError as error:
        raise DatasetError(
            f"The toy set cannot be written to {out} ({error}). Choose another folder."
        ) from error


def _check(index: int, seed: int, size: int, classes: int) -> None:
    if classes not in CLASSES:
        raise DatasetError(f"A toy set of {classes} classes is not known. Expected 2 or 4.")
    if size < MIN_SIZE:
        raise DatasetError(f"A toy sample of {size} pixels is too small. Expected at least {MIN_SIZE}.")
    if index < 0 or seed < 0:
        raise DatasetError(
            f"The toy set has no sample {index} of seed {seed}. Expected both to be 0 or more."
        )


def _check_free(out: Path, overwrite: bool) -> None:
    if not out.exists():
        return
    if not overwrite:
        raise DatasetError(f"{out} exists. Choose another folder, or give --overwrite to replace a toy set.")
    if not _is_toy(out):
        raise DatasetError(f"{out} exists and is no toy set, so it is not replaced. Choose another folder.")


def _is_toy(out: Path) -> bool:
    splits = out / SPLITS_FILE
    return splits.is_file() and splits.read_bytes().startswith(f"# {MARK}:".encode())


def _write_sample(root: Path, sample: Sample) -> None:
    image, mask = root / f"{sample.name}.png", root / folder.MASKS / f"{sample.name}.png"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_bytes(encode_png(sample.image))
    if sample.label > 0 and sample.mask is not None:
        mask.parent.mkdir(parents=True, exist_ok=True)
        mask.write_bytes(encode_png(sample.mask))
