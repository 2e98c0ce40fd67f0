"""Splits large photographs into overlapping tiles and combines the tiles' logits.

At the inner edge of a tile the network sees zero padding instead of the photograph. Mask logits that depend
on it (a border of half the receptive field) are taken from the neighbouring tile; between the borders of both
tiles, logits are blended linearly. With batch normalisation the result equals that of the photograph in one
piece. Instance and feature normalisation, squeeze-and-excitation and attention use all pixels of the tile,
so that neighbours always differ; for these networks at least half of the overlap is blended. Tiles outside
the inspected area are skipped.

    tile          |  used alone  |  blended  | border |
    its neighbour           | border |  blended  |  used alone  |
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from segdec.config import STRIDE, InputConfig, ModelConfig
from segdec.engines import Engine, Logits

OUTSIDE_LOGIT = -20.0
"""Mask logit of skipped tiles."""


@dataclass(frozen=True)
class TileAxis:
    """The tiles along one side of a photograph.

    Attributes:
        starts: First pixels of the tiles, ascending.
        tile: Pixels of a tile.
        stride: Pixels per mask logit.
        weights: Weight of each tile at each of its mask logits, [tiles, tile / stride]; they sum to 1 at
            every mask logit of the photograph.
    """

    starts: tuple[int, ...]
    tile: int
    stride: int
    weights: NDArray[np.float32]

    def pixels(self, index: int) -> slice:
        """Returns the pixels of a tile in the photograph."""
        return slice(self.starts[index], self.starts[index] + self.tile)

    def logits(self, index: int) -> slice:
        """Returns the range of a tile in the photograph's mask logits; these may end before the tile."""
        return slice(self.starts[index] // self.stride, (self.starts[index] + self.tile) // self.stride)


def infer_tiles(
    engine: Engine, images: NDArray[np.uint8], config: ModelConfig, *, batch_pixels: int | None = None
) -> Logits:
    """Runs the network on the tiles of prepared photographs.

    Memory holds the photographs, their mask logits and one batch of tiles.

    Args:
        engine: Runs the network.
        images: uint8 [B, H, W, C], H and W divisible by 8 and at least one tile.
        config: The model, with the input policy `tile`.
        batch_pixels: Limit on the pixels (B × H × W) in a batch of tiles, which has at least one; None: the
            engine's own.

    Returns:
        Mask logits [B, H/s, W/s, M], and for each photograph the class logits of the tile with the highest
        score 1 − P(good), the first of equal ones, and the mean of the tiles' `surface`.

    Raises:
        ValueError: If the size of the photographs is wrong.
    """
    _check_images(images.shape, config.input.size)
    rows, columns = (
        _tile_axis(*sides, config) for sides in zip(images.shape[1:3], config.input.size, strict=True)
    )
    places = inspected_tiles(config.input, images.shape[1:3], rows.starts, columns.starts)
    tiles = [(i, y, x) for i in range(len(images)) for y, x in places]
    at_once = max(1, (batch_pixels or engine.batch_pixels) // (rows.tile * columns.tile))
    stride = config.network.mask_stride
    height, width, masks = images.shape[1] // stride, images.shape[2] // stride, config.network.mask_channels
    mask = np.zeros((len(images), height, width, masks), np.float32)

    def add(image: int | slice, y: int, x: int, logits: NDArray[np.float32] | float) -> None:
        place = mask[image, rows.logits(y), columns.logits(x)]  # [(B,) h, w, M]; the photograph may end in it
        weights = np.multiply.outer(rows.weights[y], columns.weights[x])[..., None]
        place += (weights * logits)[: place.shape[-3], : place.shape[-2]]

    for y, x in set(np.ndindex(len(rows.starts), len(columns.starts))) - set(places):
        add(slice(None), y, x, OUTSIDE_LOGIT)
    classes, surfaces = [], []
    for first in range(0, len(tiles), at_once):
        batch = tiles[first : first + at_once]
        parts = [images[i, rows.pixels(y), columns.pixels(x)] for i, y, x in batch]
        batch_logits = engine.infer(np.stack([_pad_tile(part, rows.tile, columns.tile) for part in parts]))
        for (i, y, x), logits in zip(batch, batch_logits.mask, strict=True):
            add(i, y, x, logits)
        classes.append(batch_logits.classes)
        surfaces += [] if batch_logits.surface is None else [batch_logits.surface]
    of_tiles, shape = np.concatenate(classes), (len(images), len(places), -1)  # [B · tiles, classes]
    surface = np.concatenate(surfaces).reshape(shape).mean(axis=1) if surfaces else None
    return Logits(mask, most_defective(of_tiles.reshape(shape)), surface)


def tile_starts(side: int, tile: int, overlap: int, cell: int = STRIDE) -> tuple[int, ...]:
    """Returns the first pixels of the tiles that cover `side` pixels, ascending.

    Neighbours overlap by at least min(`overlap`, `tile` − `cell`) px. The last tile ends where the side ends,
    or after it, because tiles start at whole cells and a side may be shorter than a tile. All are pixels:
    `side` and `tile` multiples of 8, `overlap` too and less than a tile, `cell` the size of the network's
    coarsest features.
    """
    if side <= tile:
        return (0,)
    # Spread evenly in whole cells, so that pooling is aligned as without tiles.
    units = -(-(side - tile) // cell)
    steps = -(-units // max((tile - overlap) // cell, 1))
    return tuple(cell * (units * step // steps) for step in range(steps + 1))


def inspected_tiles(
    config: InputConfig, shape: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Returns row and column index of the tiles that are within 8 px of an inspected pixel, row by row.

    The margin covers the padding, which adds less than 8 px. `shape` is that of the prepared photograph,
    `rows` and `columns` are the first ones of the tiles, px.
    """
    every = list(np.ndindex(len(rows), len(columns)))
    area = config.inspected_area(shape[0], shape[1])
    if area is None:
        return every
    height, width = config.size

    def is_inspected(place: tuple[int, ...]) -> bool:
        top, left = rows[place[0]], columns[place[1]]
        around = (
            slice(max(0, start - STRIDE), start + side + STRIDE)
            for start, side in ((top, height), (left, width))
        )
        return bool(area[tuple(around)].any())

    return [place for place in every if is_inspected(place)] or every


def blending_weights(
    starts: tuple[int, ...], tile: int, border: int, min_blend_share: float = 0.0
) -> NDArray[np.float32]:
    """Returns the weights of the tiles along one side, [tiles, tile]; they sum to 1 at every position.

    In the overlap of two neighbours, the `border` of each tile (at most half of the overlap) has the weight
    0; in between the weights are linear ramps.

    Args:
        starts: First positions of the tiles, ascending; all lengths are in mask logits.
        tile: Length of a tile.
        border: Length at a tile's end whose logits are not used.
        min_blend_share: Minimum share of the overlap, 0…1, that the ramps use, even if they reduce the
            border.
    """
    weights = np.ones((len(starts), tile))
    for index, (start, following) in enumerate(pairwise(starts)):
        shared = start + tile - following
        left_out = min(border, int(shared * (1 - min_blend_share)) // 2)
        blend_width = max(shared - 2 * left_out, 1e-9)  # 0 width becomes a step in the middle
        # Evaluated at the centres of the logits, so that both tiles weigh the same in the middle.
        rising = np.clip((np.arange(shared) + 0.5 - left_out) / blend_width, 0.0, 1.0)
        # The minimum of both ramps, which overlap in a tile shorter than two overlaps.
        weights[index, tile - shared :] = np.minimum(weights[index, tile - shared :], 1.0 - rising)
        weights[index + 1, :shared] = rising
    totals = np.zeros(starts[-1] + tile)  # not 1 if more than two tiles overlap
    for start, one in zip(starts, weights, strict=True):
        totals[start : start + tile] += one
    normalized = [one / totals[start : start + tile] for start, one in zip(starts, weights, strict=True)]
    return np.asarray(normalized, dtype=np.float32)


def most_defective(classes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the class logits [B, C] of the tile with the highest 1 − P(good), from [B, tiles, C].

    Tiles with logits that are not finite are chosen first, so that they are reported.
    """
    finite = np.isfinite(classes).all(axis=2)  # [B, tiles]
    exact = np.where(np.isfinite(classes), classes, 0).astype(np.float64)
    # The logit of 1 − P(good), because the probability itself would round to 1 in many tiles.
    against_good = np.logaddexp.reduce(exact[..., 1:], axis=2) - exact[..., 0]
    chosen = np.where(finite, against_good, np.inf).argmax(axis=1)
    return np.take_along_axis(classes, chosen[:, None, None], axis=1)[:, 0]


def _tile_axis(side: int, tile: int, config: ModelConfig) -> TileAxis:
    stride = config.network.mask_stride
    starts = tile_starts(side, tile, config.tile_overlap, config.network.coarsest_stride)
    # Half of the receptive field without the 8 px of the cell itself, in whole cells.
    border_px = -(-(config.network.receptive_field - STRIDE) // 2 // STRIDE) * STRIDE
    border = -(-border_px // stride)
    min_blend_share = 0.5 if config.network.has_global_context else 0.0
    weights = blending_weights(
        tuple(start // stride for start in starts), tile // stride, border, min_blend_share
    )
    return TileAxis(starts, tile, stride, weights)


def _pad_tile(part: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Pads a tile [h, w, C] at the end of the photograph, in the same way as preprocessing."""
    missing = (height - part.shape[0], width - part.shape[1])
    return np.pad(part, [(0, missing[0]), (0, missing[1]), (0, 0)], mode="edge") if any(missing) else part


def _check_images(shape: tuple[int, ...], tile: tuple[int, int]) -> None:
    height, width = shape[1:3]
    if height % STRIDE or width % STRIDE or height < tile[0] or width < tile[1]:
        raise ValueError(
            f"Wrong input shape height={height}, width={width}. Expected both divisible by {STRIDE} and at "
            f"least one tile of {tile[0]} × {tile[1]} px; pass the result of `prepare`."
        )
