"""Synthetic photographs of a part: good, with a scratch, or with a hole."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.images import encode_png

SIDE = 64
KINDS = ("good", "scratch", "hole")


@dataclass(frozen=True)
class Part:
    """A photograph and its ground truth.

    Attributes:
        kind: One of `KINDS`.
        image: PNG file.
        mask: PNG file of the mask, 255 = defect.
    """

    kind: str
    image: bytes
    mask: bytes

    @property
    def label(self) -> str:
        """The true label; the model has one defect class."""
        return "good" if self.kind == "good" else "defect"

    def review(self) -> dict[str, object]:
        """Returns a correct review."""
        mask = None if self.kind == "good" else {"png": base64.b64encode(self.mask).decode()}
        return {"label": self.label, "mask": mask, "reviewer": "ground truth"}


def make_parts(counts: dict[str, int], seed: int) -> list[Part]:
    """Creates parts of each kind in random order."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    generator = np.random.default_rng(seed)
    generator.shuffle(kinds)
    return [_make_part(kind, generator) for kind in kinds]


def write_folder(root: Path, parts: Sequence[Part]) -> None:
    """Writes parts as a data set in the layout `folder`."""
    for number, part in enumerate(parts):
        name = f"{part.label}/{number:04d}.png"
        for place, data in ((root / name, part.image), (root / "masks" / name, part.mask)):
            if data is part.image or part.label != "good":
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)


def _make_part(kind: str, generator: np.random.Generator) -> Part:
    rows = np.linspace(-1, 1, SIDE)
    slopes = generator.uniform(-12, 12, 2)
    surface = 120 + generator.uniform(-15, 15) + np.add.outer(slopes[0] * rows, slopes[1] * rows)
    surface += generator.normal(0, 5, (SIDE, SIDE))
    for row, column in generator.integers(0, SIDE, (generator.integers(2, 6), 2)):  # dust
        surface[row : row + 2, column : column + 2] += generator.uniform(10, 25)
    mask, depth = np.zeros((SIDE, SIDE), np.uint8), 0.0
    if kind == "scratch":
        depth = -generator.uniform(25, 45)
        _draw_scratch(mask, generator)
    elif kind == "hole":
        depth = generator.uniform(18, 35)
        cv2.circle(mask, generator.integers(8, SIDE - 8, 2).tolist(), int(generator.integers(3, 6)), 255, -1)
    surface += depth * cv2.GaussianBlur(mask, (0, 0), 0.7) / 255
    image = np.clip(np.rint(surface), 0, 255).astype(np.uint8)[..., None]
    return Part(kind, encode_png(image), encode_png(mask))


def _draw_scratch(mask: NDArray[np.uint8], generator: np.random.Generator) -> None:
    begin = generator.integers(6, SIDE - 6, 2)
    angle, length = generator.uniform(0, np.pi), generator.uniform(14, 26)
    end = begin + length * np.array([np.cos(angle), np.sin(angle)])
    cv2.line(mask, begin.tolist(), np.rint(end).astype(int).tolist(), 255, 2)
