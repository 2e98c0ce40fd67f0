"""Errors of the sizes that an inspection plan measures, on rendered defects of known size.

    python -m benchmarks.measuring
    python -m benchmarks.measuring --data data --sets capsule kolektorsdd

Straight and bent scratches, pores and rings, in 8 orientations and 5 sizes, each at 3 random places. A pixel
belongs to a shape if its centre does. `beyond` is how many errors are larger than 1 px and than 2 %. With
data sets, the parts of their true masks are compared with scikit-image instead.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from skimage.measure import regionprops

from benchmarks.harness import markdown_table
from benchmarks.suite.sets import load_set
from datasets.reading import read
from segdec.plan.mask_parts import connected_parts
from segdec.plan.measuring import Sizes, convex_outline, feret_diameters

SIDE_PX = 240
ANGLES_DEG = tuple(22.5 * step for step in range(8))
SIZES_PX = (10, 20, 40, 80, 160)
"""Lengths of straight scratches, diameters of pores and rings."""
WIDTHS_PX = (2, 4, 8)
BENDS_DEG = (90, 180, 270)
REPETITIONS = 3
RING_PX = 3
"""Width of rings."""

Coordinates = NDArray[np.float64]


@dataclass(frozen=True)
class RenderedDefect:
    """A mask [H, W] of one defect with its true length and width, px, and area, px²."""

    kind: str
    mask: NDArray[np.bool_]
    length: float
    width: float
    area: float


def render_defects(seed: int = 0) -> Iterator[RenderedDefect]:
    """Yields all shapes; the radius of bent scratches is a quarter of the size."""
    random = np.random.default_rng(seed)
    for angle in np.deg2rad(ANGLES_DEG):
        for size in SIZES_PX:
            for _ in range(REPETITIONS):
                yield pore(*_coordinates(random, angle), size)
                yield ring(*_coordinates(random, angle), size)
                for width in (width for width in WIDTHS_PX if 2 * width <= size):
                    yield straight_scratch(*_coordinates(random, angle), size, width)
                    for bend in BENDS_DEG if size >= 4 * width else ():
                        yield bent_scratch(*_coordinates(random, angle), size / 2, width, np.deg2rad(bend))


def _coordinates(random: np.random.Generator, angle: float) -> tuple[Coordinates, Coordinates]:
    """Returns for each pixel's centre its distance from a random place along an angle and across, px."""
    rows, columns = np.mgrid[:SIDE_PX, :SIDE_PX] + 0.5
    x, y = columns - SIDE_PX / 2 - random.uniform(-0.5, 0.5), rows - SIDE_PX / 2 - random.uniform(-0.5, 0.5)
    return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)


def pore(along: Coordinates, across: Coordinates, diameter: float) -> RenderedDefect:
    """Renders a disc."""
    mask = np.hypot(along, across) <= diameter / 2
    return RenderedDefect("pore", mask, diameter, diameter, np.pi * diameter**2 / 4)


def ring(along: Coordinates, across: Coordinates, diameter: float) -> RenderedDefect:
    """Renders a ring, whose length is that of its centre line."""
    radius, inner = diameter / 2, diameter / 2 - RING_PX
    distance = np.hypot(along, across)
    mask = (inner <= distance) & (distance <= radius)
    length = np.pi * (radius + inner)
    return RenderedDefect("ring", mask, length, RING_PX, np.pi * (radius**2 - inner**2))


def straight_scratch(along: Coordinates, across: Coordinates, length: float, width: float) -> RenderedDefect:
    """Renders a straight scratch with round ends."""
    half = (length - width) / 2
    mask = np.hypot(along - np.clip(along, -half, half), across) <= width / 2
    return RenderedDefect("straight", mask, length, width, 2 * half * width + np.pi * width**2 / 4)


def bent_scratch(
    along: Coordinates, across: Coordinates, radius: float, width: float, bend: float
) -> RenderedDefect:
    """Renders a part of a circle with round ends; `bend` is its angle in radians."""
    mask = (np.arctan2(across, along) % (2 * np.pi) <= bend) & (
        np.abs(np.hypot(along, across) - radius) <= width / 2
    )
    for end in (0.0, bend):
        mask |= np.hypot(along - radius * np.cos(end), across - radius * np.sin(end)) <= width / 2
    length = radius * bend + width
    kind = f"bent by {np.rad2deg(bend):.0f}°"
    return RenderedDefect(kind, mask, length, width, radius * bend * width + np.pi * width**2 / 4)


def measure(defect: RenderedDefect) -> Sizes:
    """Measures the one defect of a mask."""
    [part] = connected_parts(defect.mask)
    return part.sizes


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each kind of defect, or each data set."""
    parser = argparse.ArgumentParser(description="Errors of measured sizes.")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of data sets")
    parser.add_argument("--sets", nargs="+", default=[], metavar="NAME", help="data sets with masks")
    options = parser.parse_args(arguments)
    if options.data is None:
        print(describe_rendered())
    else:
        rows = [compare_with_scikit_image(options.data / name) for name in options.sets]
        print(
            markdown_table(["set", "parts", "Feret diameter, max difference px", "areas that differ"], rows)
        )


def compare_with_scikit_image(root: Path) -> list[str]:
    """Returns the cells of a data set's row."""
    differences, areas = [], 0
    for item in load_set(root).dataset.items:
        sample = read(item) if item.label and item.supervision == "mask" else None
        for part in () if sample is None or sample.mask is None else connected_parts(sample.mask > 0):
            [expected] = regionprops(part.pixels.astype(np.uint8))  # type: ignore[no-untyped-call]
            length, _ = feret_diameters(convex_outline(part.pixels))
            differences.append(abs(length - expected.feret_diameter_max))
            areas += part.sizes.area != expected.area
    return [root.name, str(len(differences)), f"{max(differences):.2f}", str(areas)]


def describe_rendered() -> str:
    """Returns a table with a row for each kind of defect."""
    rows = []
    measured = [(defect, measure(defect)) for defect in render_defects()]
    for kind in dict.fromkeys(defect.kind for defect, _ in measured):
        of_kind = [pair for pair in measured if pair[0].kind == kind]
        rows.append([kind, str(len(of_kind))])
        for name in ("length", "width", "area"):
            true = np.array([getattr(defect, name) for defect, _ in of_kind])
            errors = np.array([getattr(sizes, name) for _, sizes in of_kind]) - true
            if name == "area":
                rows[-1].append(f"{100 * np.median(np.abs(errors) / true):.1f} %")
                continue
            beyond = np.count_nonzero(np.abs(errors) > np.maximum(1.0, 0.02 * true))
            rows[-1] += [f"{np.mean(errors):+.2f}", f"{np.abs(errors).max():.2f}", str(beyond)]
    columns = [f"{name} {what}" for name in ("length", "width") for what in ("mean", "max", "beyond")]
    return markdown_table(["defect", "number", *columns, "area median"], rows)


if __name__ == "__main__":
    main()
