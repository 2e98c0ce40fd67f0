"""One picture of many photographs with their defects outlined."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.reading import read
from datasets.sample import Dataset, DataSetItem, Sample
from segdec.images import DEFAULT_MAX_PIXELS, resize_mask
from segdec.imaging.overlay import draw_overlay

COLUMNS = 6
TILE_WIDTH = 320
GAP = 8
BACKGROUND = 24
MAX_TILES = 36


def contact_sheet(
    dataset: Dataset,
    *,
    count: int = MAX_TILES,
    white_level: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> NDArray[np.uint8]:
    """Draws up to `count` photographs with their masks, defective ones first.

    Three quarters of the tiles show defective photographs. If there are more photographs of a kind than
    tiles, an even sample of the list is shown. `white_level` and `max_pixels` as for `datasets.reading.read`.

    Returns:
        uint8 [H, W, 3] RGB, at most 2000 px wide.
    """
    tiles = [
        _tile(read(item, white_level=white_level, max_pixels=max_pixels), _caption(dataset.classes, item))
        for item in _choose(dataset, count)
    ]
    rows = [_row(tiles[start : start + COLUMNS]) for start in range(0, len(tiles), COLUMNS)]
    width = max(row.shape[1] for row in rows)
    return np.vstack([_pad(row, row.shape[0] + GAP, width) for row in rows])


def _choose(dataset: Dataset, count: int) -> list[DataSetItem]:
    defective = [item for item in dataset.items if item.label > 0]
    good = [item for item in dataset.items if item.label == 0]
    shown = _even_sample(defective, max(count - count // 4, count - len(good)))
    return shown + _even_sample(good, count - len(shown))


def _even_sample(items: Sequence[DataSetItem], count: int) -> list[DataSetItem]:
    if len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]


def _caption(classes: tuple[str, ...], item: DataSetItem) -> str:
    return f"{item.name}\n{classes[item.label]}, {item.split or 'left out'}"


def _tile(sample: Sample, caption: str) -> NDArray[np.uint8]:
    height, width = sample.image.shape[:2]
    size = (TILE_WIDTH, max(1, round(height * TILE_WIDTH / width)))
    method = cv2.INTER_AREA if width > TILE_WIDTH else cv2.INTER_CUBIC
    image = cv2.resize(sample.image, size, interpolation=method).reshape(size[1], size[0], -1)
    marked = sample.mask if sample.mask is not None and sample.mask.any() else None
    truth = None if marked is None else resize_mask(marked, size[1], size[0])
    return draw_overlay(image.astype(np.uint8), None, truth=truth, caption=caption)


def _row(tiles: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    height = max(tile.shape[0] for tile in tiles)
    return np.hstack([_pad(tile, height, tile.shape[1] + GAP) for tile in tiles])


def _pad(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    rows, columns = height - image.shape[0], width - image.shape[1]
    return np.pad(image, ((0, rows), (0, columns), (0, 0)), constant_values=BACKGROUND)
