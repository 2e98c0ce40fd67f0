"""Large photographs in overlapping tiles: where these lie, and one answer out of theirs.

Towards its neighbours a tile ends where the photograph goes on, so that the network sees zeros there.
Mask logits that depend on them, a border of half the receptive field, are left to the neighbour; between
the borders of both, logits pass over linearly from one tile to the other. With batch normalisation they are
those of the photograph in one piece. Instance and feature normalisation and encoders with
squeeze-and-excitation take statistics from the tile, so that neighbours never agree wholly: there at least
half of the overlap is blended. Tiles that lie outside of what is inspected are left out.

    tile          |  counts alone  |  blended  | border |
    its neighbour             | border |  blended  |  counts alone  |
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from segdec.config import STRIDE, InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Engine, Logits

OUTSIDE_LOGIT = -20.0
"""Of the mask where no tile was looked at."""


@dataclass(frozen=True)
class Cuts:
    """How one side of a photograph is cut into tiles.

    Attributes:
        starts: First pixels of the tiles, ascending.
        tile: Pixels of a tile.
        stride: Pixels of a mask logit.
        weights: What each tile counts in the mask logits it covers, [tiles, tile / stride]; at every mask
            logit of the photograph they sum to 1.
    """

    starts: tuple[int, ...]
    tile: int
    stride: int
    weights: NDArray[np.float32]

    def pixels(self, index: int) -> slice:
        """Returns where a tile lies in the photograph."""
        return slice(self.starts[index], self.starts[index] + self.tile)

    def logits(self, index: int) -> slice:
        """Returns where a tile's mask logits lie among those of the photograph, which may end before it."""
        return slice(self.starts[index] // self.stride, (self.starts[index] + self.tile) // self.stride)


def infer_tiles(
    engine: Engine, images: NDArray[np.uint8], config: ModelConfig, *, batch_pixels: int | None = None
) -> Logits:
    """Runs the network on the tiles of prepared photographs.

    Beside the photographs and their mask logits, memory holds one batch of tiles. What a prediction takes
    beside the network grows with the photograph all the same, because it, its stitched logits and the scores
    of its own size are there whole: of a grey one 10 bytes a pixel at mask stride 8, 17 at 1 (peak, measured
    with 10,000 × 10,000 px).

    Args:
        engine: Runs the network.
        images: uint8 [B, H, W, C], H and W divisible by 8 and at least those of a tile.
        config: The model, whose input policy is `tile`.
        batch_pixels: Most pixels (B × H × W) in a batch of tiles, which has one at least; None for the
            engine's own.

    Returns:
        Mask logits [B, H/s, W/s, M], and of each photograph the class logits of the tile with the highest
        score 1 − P(good), the first one among equals.

    Raises:
        ValueError: If the photographs do not fit.
    """
    _check_images(images.shape, config.input.size)
    rows, columns = (_cut(*sides, config) for sides in zip(images.shape[1:3], config.input.size, strict=True))
    places = inspected_tiles(config.input, images.shape[1:3], rows.starts, columns.starts)
    tiles = [(i, y, x) for i in range(len(images)) for y, x in places]
    at_once = max(1, (batch_pixels or engine.batch_pixels) // (rows.tile * columns.tile))
    stride = config.network.mask_stride
    height, width, masks = images.shape[1] // stride, images.shape[2] // stride, config.network.mask_channels
    mask = np.zeros((len(images), height, width, masks), np.float32)
    for y, x in set(np.ndindex(len(rows.starts), len(columns.starts))) - set(places):
        place = mask[:, rows.logits(y), columns.logits(x)]
        weights = np.multiply.outer(rows.weights[y], columns.weights[x])[..., None]
        place += OUTSIDE_LOGIT * weights[: place.shape[1], : place.shape[2]]
    classes = []
    for first in range(0, len(tiles), at_once):
        batch = tiles[first : first + at_once]
        parts = [images[i, rows.pixels(y), columns.pixels(x)] for i, y, x in batch]
        found = engine.infer(np.stack([_continued(part, rows.tile, columns.tile) for part in parts]))
        for (i, y, x), logits in zip(batch, found.mask, strict=True):
            place = mask[i, rows.logits(y), columns.logits(x)]
            weights = np.multiply.outer(rows.weights[y], columns.weights[x])[..., None]
            place += (weights * logits)[: place.shape[0], : place.shape[1]]
        classes.append(found.classes)
    of_tiles = np.concatenate(classes)  # [B · tiles, classes]
    return Logits(mask, most_defective(of_tiles.reshape(len(images), -1, of_tiles.shape[1])))


def tile_starts(side: int, tile: int, overlap: int, cell: int = STRIDE) -> tuple[int, ...]:
    """Returns the first pixels of the tiles that cover `side` pixels, ascending.

    All tiles have `tile` pixels; neighbours share at least `overlap`. The last one ends with the side, or
    reaches beyond it: to a whole cell, or if the side is shorter than one tile.

    Args:
        side: Pixels to cover, a multiple of 8.
        tile: Pixels of a tile, a multiple of 8.
        overlap: Pixels that neighbours share at least, a multiple of 8, less than `tile`; up to a cell less
            where that does not divide what is left of a tile.
        cell: Pixels of the network's coarsest features.
    """
    if side <= tile:
        return (0,)
    units = -(-(side - tile) // cell)  # spread evenly, but in whole cells: pooling must cut as in one piece
    steps = -(-units // max((tile - overlap) // cell, 1))
    return tuple(cell * (units * step // steps) for step in range(steps + 1))


def inspected_tiles(
    config: InputConfig, shape: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Returns which tiles hold a pixel that is inspected, or lie within 8 px of one, row by row.

    Padding makes a photograph longer by less than that, so that none is left out that the photograph itself
    would show to hold one.

    Args:
        config: Size of a tile, and what is inspected.
        shape: Rows and columns of the prepared photograph, px.
        rows: Where the tiles begin, px.
        columns: Where the tiles begin, px.

    Returns:
        Number of row and column of each.
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
    """Weighs each tile along one side, [tiles, tile]; all weights sum to 1 at every place.

    Of what two neighbours share, `border` counts for nothing at the end of either tile, or half of it where
    that is less; in between the weights are ramps.

    Args:
        starts: Where the tiles begin, ascending; as all lengths here, in mask logits.
        tile: Length of a tile.
        border: What a tile is not trusted with.
        min_blend_share: Part of the overlap, 0…1, that the ramps take at least, at the border's cost.
    """
    weights = np.ones((len(starts), tile))
    for index, (start, following) in enumerate(pairwise(starts)):
        shared = start + tile - following
        left_out = min(border, int(shared * (1 - min_blend_share)) // 2)
        blend_width = max(shared - 2 * left_out, 1e-9)  # a step in the middle where nothing is left
        # Half a logit further, for a ramp is read at the centres: so both weigh alike in its middle.
        rising = np.clip((np.arange(shared) + 0.5 - left_out) / blend_width, 0.0, 1.0)
        # The least of both, as a tile shorter than two overlaps already rises where it begins to fall.
        weights[index, tile - shared :] = np.minimum(weights[index, tile - shared :], 1.0 - rising)
        weights[index + 1, :shared] = rising
    totals = np.zeros(starts[-1] + tile)  # not 1 where more than two tiles overlap
    for start, one in zip(starts, weights, strict=True):
        totals[start : start + tile] += one
    normalized = [one / totals[start : start + tile] for start, one in zip(starts, weights, strict=True)]
    return np.asarray(normalized, dtype=np.float32)


def most_defective(classes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Picks the class logits [B, C] with the highest 1 − P(good) among those of the tiles [B, tiles, C].

    Logits that are not finite numbers come before all others, so that they do not pass unnoticed.
    """
    finite = np.isfinite(classes).all(axis=2)  # [B, tiles]
    exact = np.where(np.isfinite(classes), classes, 0).astype(np.float64)
    # The logit of 1 − P(good), which itself would round to 1 in many tiles at once.
    against_good = np.logaddexp.reduce(exact[..., 1:], axis=2) - exact[..., 0]
    chosen = np.where(finite, against_good, np.inf).argmax(axis=1)
    return np.take_along_axis(classes, chosen[:, None, None], axis=1)[:, 0]


def _cut(side: int, tile: int, config: ModelConfig) -> Cuts:
    stride = config.network.mask_stride
    starts = tile_starts(side, tile, config.tile_overlap, config.network.coarsest_stride)
    border = -(-_border_px(config.network) // stride)
    min_blend_share = 0.5 if config.network.has_global_context else 0.0
    weights = blending_weights(
        tuple(start // stride for start in starts), tile // stride, border, min_blend_share
    )
    return Cuts(starts, tile, stride, weights)


def _continued(part: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Goes on with the photograph [h, w, C] where a tile reaches beyond it, as where it was prepared."""
    missing = (height - part.shape[0], width - part.shape[1])
    return np.pad(part, [(0, missing[0]), (0, missing[1]), (0, 0)], mode="edge") if any(missing) else part


def _border_px(network: NetworkConfig) -> int:
    """Pixels from an inner edge of a tile within which mask logits are others than in the photograph."""
    # Of a receptive field, what lies beyond the 8 px that share a mask logit: half of it on either side.
    return -(-(network.receptive_field - STRIDE) // 2 // STRIDE) * STRIDE


def _check_images(shape: tuple[int, ...], tile: tuple[int, int]) -> None:
    height, width = shape[1:3]
    if height % STRIDE or width % STRIDE or height < tile[0] or width < tile[1]:
        raise ValueError(
            f"Wrong input shape height={height}, width={width}. Expected both divisible by {STRIDE} and at "
            f"least one tile of {tile[0]} × {tile[1]} px; use what `prepare` returns."
        )
