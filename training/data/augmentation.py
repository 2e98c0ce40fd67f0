"""Augmentation of an image with its mask, determined by the generator's state."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.imaging.inspected_area import refill_outside
from training.config import AugmentationConfig

Mask = NDArray[np.uint8] | None

MASK_LEVEL = 64
"""Value from which a pixel of a warped mask is defective: below one half, to preserve thin defects."""

AREA_LEVEL = 128
"""Value from which a pixel of a warped area is inspected, or ignored."""


class AugmentedImage(NamedTuple):
    """An augmented image, float32 [h, w, C], 0…255, with maps as in `augment`."""

    image: NDArray[np.float32]
    mask: Mask
    area: Mask
    classes: Mask
    ignored: Mask


class AugmentationParameters(NamedTuple):
    """Random numbers 0…1 of one augmentation; each setting uses its own."""

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
    """Draws the parameters of an augmentation."""
    return AugmentationParameters(*random.random(len(AugmentationParameters._fields)))


def augment(
    image: NDArray[np.uint8],
    mask: Mask,
    random: np.random.Generator,
    config: AugmentationConfig,
    area: Mask = None,
    classes: Mask = None,
    ignored: Mask = None,
) -> AugmentedImage:
    """Applies all augmentations; the maps of the result may be views of the arguments.

    Args:
        image: uint8 [h, w, C].
        mask: uint8 [h, w], above 0 where there is a defect, or None.
        random: Generator of all random numbers.
        config: Enabled augmentations.
        area: uint8 [h, w], above 0 where the image is inspected; None = everywhere. Outside, the result is
            uniform.
        classes: uint8 [h, w], class of the nearest defect pixel; None if all are of one class.
        ignored: uint8 [h, w], above 0 where the class is unknown; None = nowhere.
    """
    drawn = draw_parameters(random)
    warped, *maps = transform_geometry(image, mask, drawn, config, area, classes, ignored)
    augmented = change_intensity(warped, drawn, random, config)
    area = maps[1]
    return AugmentedImage(augmented if area is None else refill_outside(augmented, area), *maps)


def transform_geometry(
    image: NDArray[np.uint8],
    mask: Mask,
    drawn: AugmentationParameters,
    config: AugmentationConfig,
    area: Mask = None,
    classes: Mask = None,
    ignored: Mask = None,
) -> tuple[NDArray[np.uint8], Mask, Mask, Mask, Mask]:
    """Rotates, flips, scales and shifts; new pixels repeat the border, in the mask they are background.

    Scale and shift are omitted if they would remove the defect or the inspected area, so that the label stays
    valid.
    """
    axes = flipped_axes(drawn, config)
    turns = drawn_rotation(drawn, config, image.shape)
    image = np.flip(np.rot90(image, turns), axes)
    mask, area, classes, ignored = (
        one if one is None else np.flip(np.rot90(one, turns), axes) for one in (mask, area, classes, ignored)
    )
    matrix = _affine(image.shape, drawn, config)
    if matrix is None:
        return image, mask, area, classes, ignored
    warped_mask = _warp_mask(mask, matrix, cv2.BORDER_CONSTANT, MASK_LEVEL)
    warped_area = _warp_mask(area, matrix, cv2.BORDER_REPLICATE, AREA_LEVEL)
    if _is_lost(mask, warped_mask) or _is_lost(area, warped_area):
        return image, mask, area, classes, ignored
    ignored = _warp_mask(ignored, matrix, cv2.BORDER_REPLICATE, AREA_LEVEL)
    if classes is not None:
        classes = _warp(classes, matrix, cv2.BORDER_REPLICATE, cv2.INTER_NEAREST)
    warped = _warp(image, matrix, cv2.BORDER_REPLICATE).reshape(image.shape)
    return warped, warped_mask, warped_area, classes, ignored


def _warp_mask(mask: Mask, matrix: NDArray[np.float64], border: int, level: int) -> Mask:
    return None if mask is None else (_warp(mask, matrix, border) >= level).view(np.uint8)


def _is_lost(before: Mask, after: Mask) -> bool:
    return before is not None and after is not None and bool(before.any()) and not after.any()


def flipped_axes(drawn: AugmentationParameters, config: AugmentationConfig) -> tuple[int, ...]:
    """Returns the axes of the image that are flipped: 0 rows, 1 columns."""
    right = (1,) if config.flip_horizontal and drawn.flip_horizontal < 0.5 else ()
    down = (0,) if config.flip_vertical and drawn.flip_vertical < 0.5 else ()
    return right + down


def rotations_keeping_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the numbers of right angles by which a rotated image keeps its shape (h, w, …)."""
    return (0, 1, 2, 3) if shape[0] == shape[1] else (0, 2)


def allowed_rotations(config: AugmentationConfig, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the numbers of right angles by which an image of this shape may be rotated."""
    return rotations_keeping_size(shape) if config.rotate else (0,)


def drawn_rotation(drawn: AugmentationParameters, config: AugmentationConfig, shape: tuple[int, ...]) -> int:
    """Returns by how many right angles an image of this shape is rotated."""
    turns = allowed_rotations(config, shape)
    return turns[int(len(turns) * drawn.rotate)]


def _affine(
    shape: tuple[int, ...], drawn: AugmentationParameters, config: AugmentationConfig
) -> NDArray[np.float64] | None:
    """Matrix of scale and shift about the centre; shifts are whole pixels, which avoids blur."""
    rows, columns = shape[:2]
    factor = 1.0 + config.scale * (2.0 * drawn.scale - 1.0)
    down = round(rows * config.shift * (2.0 * drawn.shift_down - 1.0))
    right = round(columns * config.shift * (2.0 * drawn.shift_right - 1.0))
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
    drawn: AugmentationParameters,
    random: np.random.Generator,
    config: AugmentationConfig,
) -> NDArray[np.float32]:
    """Blurs, changes contrast and brightness, and adds noise; float32 0…255."""
    source = np.ascontiguousarray(image)
    if config.blur_px and drawn.blur:
        source = np.asarray(cv2.GaussianBlur(source, (0, 0), config.blur_px * drawn.blur), np.uint8)
    levels = _levels(float(np.mean(cv2.mean(source)[: image.shape[2]])), drawn, config)
    changed = np.asarray(cv2.LUT(source, levels), np.float32).reshape(image.shape)
    if config.noise:
        spread = np.float32(255.0 * config.noise * drawn.noise)
        changed += spread * random.standard_normal(image.shape, np.float32)
    return np.clip(changed, 0.0, 255.0, out=changed)


def _levels(mean: float, drawn: AugmentationParameters, config: AugmentationConfig) -> NDArray[np.float32]:
    """Look-up table of the 256 values, faster than arithmetic on all pixels."""
    factor = 1.0 + config.contrast * (2.0 * drawn.contrast - 1.0)
    shift = 255.0 * config.brightness * (2.0 * drawn.brightness - 1.0)
    return ((np.arange(256.0) - mean) * factor + (mean + shift)).astype(np.float32)
