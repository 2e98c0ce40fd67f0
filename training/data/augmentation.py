"""Random changes of a training image, its mask kept in step. Pure functions of the generator's state."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.imaging.inspected_area import refill_outside
from training.config import AugmentationConfig

Mask = NDArray[np.uint8] | None

MASK_LEVEL = 64
"""Value from which a pixel of a moved mask is defective: below the half, so that thin defects stay."""


AREA_LEVEL = 128
"""Value from which a pixel of a moved area is inspected."""


class AugmentedImage(NamedTuple):
    """An augmented image.

    Attributes:
        image: float32 [h, w, C], 0…255.
        mask: uint8 [h, w], above 0 where there is a defect, or None.
        area: uint8 [h, w], above 0 where it is inspected; None = everywhere.
        classes: uint8 [h, w], class of each defect pixel; None where all are of one class.
    """

    image: NDArray[np.float32]
    mask: Mask
    area: Mask
    classes: Mask


class AugmentationParameters(NamedTuple):
    """Numbers 0…1 that decide one augmentation; what one setting does never depends on the others."""

    flip_horizontal: float
    flip_vertical: float
    rotate: float
    scale: float
    shift_down: float
    shift_right: float
    brightness: float
    contrast: float
    noise: float
    blur: float


def draw_parameters(random: np.random.Generator) -> AugmentationParameters:
    """Draws what decides the next augmentation; the generator is advanced."""
    return AugmentationParameters(*random.random(len(AugmentationParameters._fields)))


def augment(
    image: NDArray[np.uint8],
    mask: Mask,
    random: np.random.Generator,
    config: AugmentationConfig,
    area: Mask = None,
    classes: Mask = None,
) -> AugmentedImage:
    """Moves all and changes the light of the image.

    Args:
        image: uint8 [h, w, C].
        mask: uint8 [h, w], above 0 where there is a defect, or None.
        random: Is advanced.
        config: What may change.
        area: uint8 [h, w], above 0 where the image is inspected; None = everywhere. What lies outside,
            and was filled, has one level afterwards, too.
        classes: uint8 [h, w], class of the nearest defect pixel; None where all are of one class.

    Returns:
        The changed image, its mask and its area, views of the given ones where that suffices.
    """
    draws = draw_parameters(random)
    moved, mask, area, classes = transform_geometry(image, mask, draws, config, area, classes)
    changed = change_intensity(moved, draws, random, config)
    return AugmentedImage(changed if area is None else refill_outside(changed, area), mask, area, classes)


def transform_geometry(
    image: NDArray[np.uint8],
    mask: Mask,
    draws: AugmentationParameters,
    config: AugmentationConfig,
    area: Mask = None,
    classes: Mask = None,
) -> tuple[NDArray[np.uint8], Mask, Mask, Mask]:
    """Flips, turns, scales and shifts all; beyond its border the mask is background, the others go on.

    What would take a defect out of sight, or all that is inspected, neither scales nor shifts: the image
    keeps its class.
    """
    axes = flipped_axes(draws, config)
    quarters = _quarters(draws.rotate, image.shape) if config.rotate else 0
    image = np.rot90(np.flip(image, axes), quarters)
    mask, area, classes = (
        one if one is None else np.rot90(np.flip(one, axes), quarters) for one in (mask, area, classes)
    )
    matrix = _affine(image.shape, draws, config)
    if matrix is None:
        return image, mask, area, classes
    moved_mask = None if mask is None else _shown(mask, matrix, cv2.BORDER_CONSTANT, MASK_LEVEL)
    moved_area = None if area is None else _shown(area, matrix, cv2.BORDER_REPLICATE, AREA_LEVEL)
    if _is_lost(mask, moved_mask) or _is_lost(area, moved_area):
        return image, mask, area, classes
    if classes is not None:
        classes = _warp(classes, matrix, cv2.BORDER_REPLICATE, cv2.INTER_NEAREST)
    return _warp(image, matrix, cv2.BORDER_REPLICATE).reshape(image.shape), moved_mask, moved_area, classes


def _shown(
    mask: NDArray[np.uint8], matrix: NDArray[np.float64], border: int, level: int
) -> NDArray[np.uint8]:
    return (_warp(mask, matrix, border) >= level).view(np.uint8)


def _is_lost(before: Mask, after: Mask) -> bool:
    return before is not None and after is not None and bool(before.any()) and not after.any()


def flipped_axes(draws: AugmentationParameters, config: AugmentationConfig) -> tuple[int, ...]:
    """Returns the axes of the image that are turned round: 0 its rows, 1 its columns."""
    flips = (
        (1, config.flip_horizontal, draws.flip_horizontal),
        (0, config.flip_vertical, draws.flip_vertical),
    )
    return tuple(axis for axis, wanted, drawn in flips if wanted and drawn < 0.5)


def _quarters(draw_parameters: float, shape: tuple[int, ...]) -> int:
    """Turns by 90°; an image that is not square keeps its size only by two of them or none."""
    return int(4 * draw_parameters) if shape[0] == shape[1] else 2 * int(2 * draw_parameters)


def _affine(
    shape: tuple[int, ...], draws: AugmentationParameters, config: AugmentationConfig
) -> NDArray[np.float64] | None:
    """Matrix of scale and shift, both about the middle; shifts are whole px, so that they blur nothing."""
    rows, columns = shape[:2]
    factor = 1.0 + config.scale * (2.0 * draws.scale - 1.0)
    down = round(rows * config.shift * (2.0 * draws.shift_down - 1.0))
    right = round(columns * config.shift * (2.0 * draws.shift_right - 1.0))
    if factor == 1.0 and not down and not right:
        return None
    middle = (1.0 - factor) / 2.0
    return np.array(
        [[factor, 0.0, middle * (columns - 1) + right], [0.0, factor, middle * (rows - 1) + down]]
    )


def _warp(
    pixels: NDArray[np.uint8], matrix: NDArray[np.float64], border: int, flags: int = cv2.INTER_LINEAR
) -> NDArray[np.uint8]:
    size = pixels.shape[1], pixels.shape[0]
    source = np.ascontiguousarray(pixels)
    return np.asarray(cv2.warpAffine(source, matrix, size, flags=flags, borderMode=border), np.uint8)


def change_intensity(
    image: NDArray[np.uint8],
    draws: AugmentationParameters,
    random: np.random.Generator,
    config: AugmentationConfig,
) -> NDArray[np.float32]:
    """Blurs as a lens does, changes contrast and brightness, adds a sensor's noise; float32 0…255."""
    source = np.ascontiguousarray(image)
    if config.blur_px and draws.blur:
        source = np.asarray(cv2.GaussianBlur(source, (0, 0), config.blur_px * draws.blur), np.uint8)
    levels = _levels(float(np.mean(cv2.mean(source)[: image.shape[2]])), draws, config)
    changed = np.asarray(cv2.LUT(source, levels), np.float32).reshape(image.shape)
    if config.noise:
        spread = np.float32(255.0 * config.noise * draws.noise)
        changed += spread * random.standard_normal(image.shape, np.float32)
    return np.clip(changed, 0.0, 255.0, out=changed)


def _levels(mean: float, draws: AugmentationParameters, config: AugmentationConfig) -> NDArray[np.float32]:
    """What becomes of each of the 256 values: a table is faster than arithmetic on all pixels."""
    factor = 1.0 + config.contrast * (2.0 * draws.contrast - 1.0)
    shift = 255.0 * config.brightness * (2.0 * draws.brightness - 1.0)
    return ((np.arange(256.0) - mean) * factor + (mean + shift)).astype(np.float32)
