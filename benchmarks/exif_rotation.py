"""How often edges of annotations propose `--annotations-before-rotation`, rightly and wrongly.

    python -m benchmarks.exif_rotation

A set has a number of defective toy photographs, all with the same random EXIF orientation, and masks or
boxes. `before` is the share of sets with a proposal if these were drawn before the rotation, which is right;
`after` is that if they were drawn after it, and `elsewhere` if they fit no edges, both of which are wrong.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import markdown_table
from datasets.annotations.boxed_mask import fill_boxes
from datasets.exif_rotation import describe_rotation, find_evidence
from datasets.layouts.toy import SURFACES, make_sample
from datasets.sample import DataSetItem, Sample
from segdec.imaging.decoders import upright
from segdec.runtime.cli import clean_exit

POOL, SIZE, COUNTS = 150, 128, (5, 8, 20)
ITEM = DataSetItem("part", Path("part.png"), None, 1, "part")
INVERSE = {6: 8, 8: 6}
"""Of EXIF orientations; the others are their own inverse."""
DRAWN = ("before", "after", "elsewhere")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each surface, kind of annotation and number of annotations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=200, help="in each cell; default: %(default)s")
    options = parser.parse_args(arguments)
    rows = []
    for surface in SURFACES:
        masks = list(islice(_defective(surface), POOL))
        boxes = [replace(sample, mask=fill_boxes(sample.mask)) for sample in masks if sample.mask is not None]
        for kind, pool in (("masks", masks), ("boxes", boxes)):
            for size in COUNTS:
                random = np.random.default_rng(size)
                shares = (
                    np.mean([_is_proposed(pool, size, drawn, random) for _ in range(options.sets)])
                    for drawn in DRAWN
                )
                rows.append([surface, kind, str(size), *(f"{share:.1%}" for share in shares)])
    print(markdown_table(["surface", "annotations", "number", *DRAWN], rows))


def _defective(surface: str) -> Iterator[Sample]:
    samples = (make_sample(number, seed=3, size=SIZE, surface=surface) for number in count())
    return (sample for sample in samples if sample.label)


def _is_proposed(pool: Sequence[Sample], size: int, drawn: str, random: np.random.Generator) -> bool:
    orientation, evidence = int(random.integers(2, 9)), {}
    for index in random.choice(len(pool), size, replace=False):
        mask = _moved(np.asarray(pool[index].mask), drawn, orientation, random)
        moved = replace(pool[index], mask=mask, orientation=orientation)
        evidence[str(index)] = find_evidence(ITEM, moved)
    return "But the edges of" in describe_rotation(evidence, [])[0]


def _moved(
    mask: NDArray[np.uint8], drawn: str, orientation: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    if drawn == "before":
        return upright(mask, INVERSE.get(orientation, orientation))
    return np.roll(mask, random.integers(20, SIZE - 20, 2), (0, 1)) if drawn == "elsewhere" else mask


if __name__ == "__main__":
    with clean_exit(group="train"):
        main()
