"""Training examples by index: whole photographs, or tiles of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datasets.sample import IGNORED, DataSetItem, LazyItems, Sample, is_unlocalized, labels_of, unlocalized
from segdec.config import InputConfig, ModelConfig
from segdec.errors import ConfigError, ImageError
from segdec.inference.preprocessing import (
    input_size,
    prepare_area,
    prepare_classes,
    prepare_image,
    prepare_mask,
)
from segdec.inference.tiling import inspected_tiles, tile_starts
from training.data.array_cache import ArrayCache, Arrays


@dataclass(frozen=True)
class Example:
    """A sample prepared as the network's input, not yet augmented.

    Attributes:
        image: uint8 [h, w, C].
        mask: uint8 [h, w], 255 where there is a defect; None if there is none, or it is unknown.
        area: uint8 [h, w], 255 where it is inspected; None = everywhere.
        classes: uint8 [h, w], class of the nearest defect pixel; None = the example's class.
        ignored: uint8 [h, w], 255 where the class is unknown; None = nowhere.
    """

    image: NDArray[np.uint8]
    mask: NDArray[np.uint8] | None
    area: NDArray[np.uint8] | None = None
    classes: NDArray[np.uint8] | None = None
    ignored: NDArray[np.uint8] | None = None


def build_source(
    items: Sequence[DataSetItem], read: Callable[[DataSetItem], Sample], model: ModelConfig, cache: ArrayCache
) -> "ExampleSource":
    """Builds the training examples for the model's input: photographs, or tiles of them.
    Raises a `SegdecError` if photographs cannot be read or cut into tiles.
    """
    photographs = PhotographSource(items, read, model.input, model.network.input_channels, cache)
    if model.input.policy != "tile":
        return photographs
    return TileSource(photographs, model.input, model.tile_overlap)


class PhotographSource:
    """Prepared photographs by index, cached if there is space; `labels` are their classes.

    `supervised` says whether the mask of each is known; that of a good one always is.
    """

    def __init__(
        self,
        items: Sequence[DataSetItem],
        read: Callable[[DataSetItem], Sample],
        input_config: InputConfig,
        channels: int,
        cache: ArrayCache,
    ) -> None:
        self.items = items
        self.channels = channels
        self.labels: list[int] = labels_of(items).tolist()
        self.supervised: list[bool] = (~unlocalized(items)).tolist()
        self._read = read
        self._input = input_config
        self._cache = cache

    @property
    def photographs(self) -> "PhotographSource":
        """The photographs of the examples, as in `TileSource`."""
        return self

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Example:
        """Returns the example of `items[index]`; raises SegdecError if its files cannot be used."""
        arrays = self._cache.get(index)
        if arrays is None:
            arrays = self._prepare(self.items[index])
            self._cache.put(index, arrays)
        maps = (arrays.get(name) for name in ("mask", "area", "classes", "ignored"))
        return Example(arrays["image"], *maps)

    def name(self, index: int) -> str:
        """Returns the name of an example for messages."""
        return self.items[index].name

    def fold(self, index: int) -> int | None:
        """Returns the fold of an example, from 1; None without folds."""
        return self.items[index].fold

    def has_drawn_mask(self, index: int) -> bool:
        """Returns whether an example has a defect of one class with a drawn mask, not only a box or label."""
        known, item = self.labels[index] != 0 and self.supervised[index], self.items[index]
        # A mask with several classes cannot be transplanted.
        one_class = (
            item.mask_values is None or len({number for _, number in item.mask_values} - {IGNORED}) == 1
        )
        return known and item.supervision == "mask" and one_class

    def has_boxes(self, index: int) -> bool:
        """Returns whether the mask of an example holds boxes around its defects."""
        return self.items[index].supervision == "box"

    def common_shape(self) -> tuple[int, ...]:
        """Returns the common shape (h, w, C); photographs of unknown shape are read.
        Raises a `ConfigError` if the prepared images differ in size.
        """
        items = self.items  # those of shards know one photograph of each shape
        distinct = items.shapes().values() if isinstance(items, LazyItems) else range(len(self))
        shapes = {self.shape(index): items[index].name for index in distinct}
        if len(shapes) > 1:
            (one, first), (other, second) = list(shapes.items())[:2]
            raise ConfigError(
                f"Training images differ in size: '{first}' is {one[1]}×{one[0]}, "
                f"'{second}' is {other[1]}×{other[0]}. A batch needs one size: "
                "set input.policy = 'resize', 'letterbox' or 'tile' with input.height and input.width."
            )
        return next(iter(shapes))

    def shape(self, index: int) -> tuple[int, ...]:
        """Returns the shape (h, w, C) of a prepared photograph; it is read if the item lacks its shape."""
        shape = self.items[index].shape
        known = None if shape is None else prepared_shape(shape, self._input, self.channels)
        return self[index].image.shape if known is None else known

    def size(self, index: int) -> tuple[int, int]:
        """Returns height and width of a photograph, px; it is read if the item lacks its shape."""
        item = self.items[index]
        height, width, _ = self._read(item).image.shape if item.shape is None else item.shape
        return height, width

    def _prepare(self, item: DataSetItem) -> Arrays:
        sample = self._read(item)
        image = prepare_sample(sample, self._input, self.channels)
        height, width = sample.image.shape[:2]
        area = prepare_area(self._input, height, width)
        arrays = {"image": image} if area is None else {"image": image, "area": area}
        if sample.mask is not None and not is_unlocalized(item):
            mask = prepare_mask(sample.mask, self._input)
            if mask.any():
                arrays["mask"] = mask
                if sample.classes is not None:
                    arrays["classes"] = prepare_classes(sample.classes, self._input)
        if sample.ignored is not None:
            arrays["ignored"] = prepare_mask(sample.ignored, self._input)
            if "mask" in arrays:  # scaling preserves thin defects
                arrays["ignored"][arrays["mask"] > 0] = 0
        return arrays


class Tile(NamedTuple):
    """A tile: index of its photograph, first row and column in the prepared photograph, and class."""

    photograph: int
    row: int
    column: int
    label: int


class TileSource:
    """Tiles of prepared photographs.

    Tiles with defect pixels have the class of most of these, or their photograph's if unknown; others are
    good. Photographs with a mask are read once to determine this. Tiles outside the inspected area, and tiles
    that are ignored entirely, are omitted.

    Raises:
        ConfigError: If the location of a photograph's defect is unknown.
        SegdecError: If a photograph cannot be read or used.
    """

    def __init__(self, photographs: PhotographSource, input_config: InputConfig, overlap_px: int) -> None:
        self.photographs = photographs
        self._input = input_config
        self._size = input_size(input_config, 1, 1)
        self._overlap = overlap_px
        unknown = [photographs.name(index) for index, known in enumerate(photographs.supervised) if not known]
        if unknown:
            raise ConfigError(
                f"{len(unknown)} defective training photographs have a label only, so that the classes of "
                f"their tiles are unknown: {', '.join(unknown)}. Expected masks or boxes with input.policy = "
                "'tile': add them, remove these photographs from the split, or use another policy."
            )
        self._tiles = [tile for index in range(len(photographs)) for tile in self._cut(index)]
        self.labels = [tile.label for tile in self._tiles]
        self.supervised = [True] * len(self._tiles)

    def __len__(self) -> int:
        return len(self._tiles)

    def __getitem__(self, index: int) -> Example:
        """Returns the example of a tile: views of its photograph's arrays."""
        tile = self._tiles[index]
        whole, part = self.photographs[tile.photograph], self._part(tile.row, tile.column)
        area = None if whole.area is None else whole.area[part]
        classes = None if whole.classes is None else whole.classes[part]
        return Example(
            whole.image[part], _masked(whole.mask, part), area, classes, _masked(whole.ignored, part)
        )

    def name(self, index: int) -> str:
        """Returns the item's name, with the tile's first column and row."""
        tile = self._tiles[index]
        return f"{self.photographs.name(tile.photograph)}[{tile.column},{tile.row}]"

    def fold(self, index: int) -> int | None:
        """Returns the fold of a tile's photograph, from 1; None without folds."""
        return self.photographs.fold(self._tiles[index].photograph)

    def has_drawn_mask(self, index: int) -> bool:
        """Returns whether the tile has a part of a defect with a drawn mask."""
        tile = self._tiles[index]
        return tile.label != 0 and self.photographs.has_drawn_mask(tile.photograph)

    def has_boxes(self, index: int) -> bool:
        """Returns whether the mask of the tile's photograph holds boxes around its defects."""
        return self.photographs.has_boxes(self._tiles[index].photograph)

    def common_shape(self) -> tuple[int, ...]:
        """Returns the shape (h, w, C) of every tile."""
        return (*self._size, self.photographs.channels)

    def _cut(self, index: int) -> list[Tile]:
        shape, label = self.photographs.shape(index), self.photographs.labels[index]
        whole = self.photographs[index] if self.photographs.items[index].mask_file else None
        rows, columns = (
            tile_starts(side, tile, self._overlap) for side, tile in zip(shape, self._size, strict=False)
        )
        inspected = inspected_tiles(self._input, shape[:2], rows, columns)
        corners = [(rows[y], columns[x]) for y, x in inspected]
        if whole is None:
            return [Tile(index, *corner, 0) for corner in corners]
        return [
            Tile(index, *corner, self._label(whole, self._part(*corner), label))
            for corner in corners
            if whole.ignored is None or not whole.ignored[self._part(*corner)].all()
        ]

    @staticmethod
    def _label(whole: Example, part: tuple[slice, slice], label: int) -> int:
        mask = _masked(whole.mask, part)
        if mask is None:
            return 0
        return label if whole.classes is None else int(np.bincount(whole.classes[part][mask > 0]).argmax())

    def _part(self, row: int, column: int) -> tuple[slice, slice]:
        return slice(row, row + self._size[0]), slice(column, column + self._size[1])


def _masked(mask: NDArray[np.uint8] | None, part: tuple[slice, slice]) -> NDArray[np.uint8] | None:
    """The part of a mask, or None if it is empty."""
    return mask[part] if mask is not None and mask[part].any() else None


ExampleSource = PhotographSource | TileSource
"""Examples for batches."""


def prepare_sample(sample: Sample, config: InputConfig, channels: int) -> NDArray[np.uint8]:
    """Returns the sample's image prepared as the network's input, uint8 [h, w, C].
    Raises an `ImageError` if it does not fit the network; the message contains the sample's name.
    """
    try:
        return prepare_image(sample.image, config, channels)
    except ImageError as error:
        raise ImageError(f"{sample.name}: {error}", code=error.code) from error


def prepared_shape(shape: tuple[int, int, int], config: InputConfig, channels: int) -> tuple[int, ...] | None:
    """Returns the shape (h, w, C) of a prepared photograph; None if its pixels must be examined."""
    height, width, stored = shape
    if channels < stored and not config.convert_color:  # grey pixels in a colour file are accepted
        return None
    return (*input_size(config, height, width), channels)
