"""Samples → what the network sees and learns."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.sample import Record, Sample
from segdec.config import STRIDE, InputConfig
from segdec.errors import ConfigError, ImageError
from segdec.preprocessing import input_size, prepare_image, prepare_mask
from training.config import TargetConfig
from training.example_cache import Example, ExampleCache


def segmentation_target(mask: NDArray[np.uint8], dilation_px: int) -> NDArray[np.float32]:
    """Mask [h, w] → share of each 8×8 cell that is defective [h/8, w/8, 1], after growing the defects.

    The diamond-shaped growth follows Tabernik et al. 2019: annotations are thin, cells are wide.
    """
    diamond = cv2.getStructuringElement(cv2.MORPH_DIAMOND, (dilation_px, dilation_px))
    grown = cv2.dilate(mask, diamond) if dilation_px > 1 else mask
    rows, columns = (side // STRIDE for side in mask.shape)
    cells = (np.asarray(grown) > 0).reshape(rows, STRIDE, columns, STRIDE)
    share: NDArray[np.float32] = cells.mean(axis=(1, 3), dtype=np.float32)
    return share[..., None]


def prepare_sample(sample: Sample, config: InputConfig, channels: int) -> NDArray[np.uint8]:
    """The sample's image as the network takes it, uint8 [h, w, C].

    Raises:
        ImageError: If it does not fit the network; the message names the sample.
    """
    try:
        return prepare_image(sample.image, config, channels)
    except ImageError as error:
        raise ImageError(f"{sample.name}: {error}", code=error.code) from error


def known_shape(record: Record, config: InputConfig, channels: int) -> tuple[int, ...] | None:
    """Shape (h, w, C) of the prepared image; None where only its pixels tell whether it fits the network."""
    if record.shape is None:
        return None
    height, width, stored = record.shape
    if channels < stored and not config.convert_color:  # grey stored as colour fits, colour does not
        return None
    return (*input_size(config, height, width), channels)


class ExampleSource:
    """Prepared examples by index, kept as far as the cache allows.

    Args:
        records: The images.
        read: Reads a record.
        input_config: Geometry of the network's input.
        channels: Channels of the network's input.
        target: How masks become targets.
        cache: Keeps what was prepared.
    """

    def __init__(
        self,
        records: Sequence[Record],
        read: Callable[[Record], Sample],
        input_config: InputConfig,
        channels: int,
        target: TargetConfig,
        cache: ExampleCache,
    ) -> None:
        self.records = records
        self._read = read
        self._input = input_config
        self._channels = channels
        self._target = target
        self._cache = cache

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Example:
        """The example of `records[index]`.

        Raises:
            SegdecError: If its files cannot be read or used.
        """
        example = self._cache.get(index)
        if example is None:
            example = self._prepare(self.records[index])
            self._cache.put(index, example)
        return example

    def check_one_size(self) -> tuple[int, ...]:
        """Reads every image whose shape is not known once; returns the common shape (h, w, C).

        Raises:
            ConfigError: If the prepared images differ in size, so that no batch can be formed.
        """
        shapes = {self._shape(index): record.name for index, record in enumerate(self.records)}
        if len(shapes) > 1:
            (one, first), (other, second) = list(shapes.items())[:2]
            raise ConfigError(
                f"Training images differ in size: '{first}' is {one[1]}×{one[0]}, "
                f"'{second}' is {other[1]}×{other[0]}. A batch needs one size: "
                "set input.policy = 'resize' with input.height and input.width."
            )
        return next(iter(shapes))

    def _shape(self, index: int) -> tuple[int, ...]:
        known = known_shape(self.records[index], self._input, self._channels)
        return self[index].image.shape if known is None else known

    def _prepare(self, record: Record) -> Example:
        sample = self._read(record)
        image = prepare_sample(sample, self._input, self._channels)
        mask = np.zeros(sample.image.shape[:2], np.uint8) if sample.mask is None else sample.mask
        return Example(image, segmentation_target(prepare_mask(mask, self._input), self._target.dilation_px))
