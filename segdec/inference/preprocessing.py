"""Converts photographs to network input, and masks back to photographs; shared by training and serving."""

from typing import Literal, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.config import STRIDE, InputConfig
from segdec.errors import ImageError
from segdec.images import resize_mask
from segdec.imaging.inspected_area import fill_outside

Value = TypeVar("Value", np.uint8, np.float32)

GREY_TOLERANCE = 3
"""Maximum difference between the channels of a pixel, in levels of 255, for a grey photograph.

JPEG and WebP store brightness and two colour differences. Rounding may change each difference of a grey
photograph by one, which moves red, green and blue up to 3 levels apart (ITU-R BT.601).
"""


def prepare_image(image: NDArray[np.uint8], config: InputConfig, channels: int) -> NDArray[np.uint8]:
    """Converts a photograph to the network's input.

    `resize` and `letterbox` average over areas when shrinking and interpolate linearly when enlarging;
    `letterbox` uses one factor for both sides. Padding on the right and at the bottom repeats the last row
    and column: for `letterbox` up to `height` × `width`, for `native` up to multiples of 8, for `tile` also
    up to one tile. Values stay 0…255; the first layer of the network scales them. Areas that are not
    inspected are filled first. `image` is uint8 [H, W, C] with C = 1 (grey) or 3 (RGB), `channels` that of
    the network's input.

    Returns:
        uint8 [h, w, channels], h and w divisible by 8.

    Raises:
        ImageError: With the code `unsupported_channels`, if C is neither 1 nor 3, or the network is grey and
            the channels differ by more than `GREY_TOLERANCE`; with `nothing_inspected`, if no pixel is in the
            inspected area.
        ValueError: If `image` is not a uint8 array [H, W, C].
    """
    check_image(image)
    height, width = image.shape[:2]
    area = config.inspected_area(height, width)
    if area is not None and not area.any():
        raise ImageError(
            f"The image of {width} × {height} px has no pixel in the model's inspected area. Expected a "
            "larger image, like those in training.",
            code="nothing_inspected",
        )
    filled = image if area is None else fill_outside(image, area)
    scaled = resize(_convert_channels(filled, config, channels), *scaled_size(config, height, width))
    return _pad(scaled, input_size(config, height, width), "edge")


def prepare_mask(mask: NDArray[np.uint8], config: InputConfig) -> NDArray[np.uint8]:
    """Transforms a mask like its photograph: uint8 [H, W] → [h, w], 255 = defect.

    Scaling preserves thin defects; see `segdec.images.resize_mask`. Padding repeats the last row and column,
    except with `letterbox`, whose padding is background because it may be most of the input.

    Raises:
        ValueError: If `mask` is not a uint8 array [H, W].
    """
    if mask.dtype != np.uint8 or mask.ndim != 2 or 0 in mask.shape:
        raise ValueError(f"Wrong mask {mask.dtype} {mask.shape}. Expected uint8 [H, W], 255 = defect.")
    scaled = resize_mask(mask, *scaled_size(config, *mask.shape))
    mode: Literal["edge", "constant"] = "constant" if config.policy == "letterbox" else "edge"
    return _pad(scaled, input_size(config, *mask.shape), mode)


def prepare_classes(classes: NDArray[np.uint8], config: InputConfig) -> NDArray[np.uint8]:
    """Transforms a class map like its photograph: uint8 [H, W] → [h, w], with the nearest pixel's class."""
    height, width = scaled_size(config, *classes.shape)
    scaled = cv2.resize(classes, (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
    return _pad(np.asarray(scaled, np.uint8), input_size(config, *classes.shape), "edge")


def prepare_area(config: InputConfig, height: int, width: int) -> NDArray[np.uint8] | None:
    """Returns the inspected area of a prepared photograph, uint8 [h, w], 255 inside; None = everywhere."""
    area = config.inspected_area(height, width)
    return None if area is None else prepare_mask(area, config)


def restore_mask(
    scores: NDArray[np.float32], config: InputConfig, height: int, width: int, stride: int = STRIDE
) -> NDArray[np.float32]:
    """Resizes mask scores to the photograph, with linear interpolation about pixel centres.

    `scores` are float32 [h/s, w/s] of the prepared photograph [h, w], s is the network's mask `stride`;
    `height` and `width` are those of the photograph, px.

    Returns:
        float32 [height, width].

    Raises:
        ValueError: If the shape of `scores` does not match the photograph.
    """
    rows, columns = input_size(config, height, width)
    cells = (rows // stride, columns // stride)
    if scores.shape != cells:
        expected = f"{cells} for a photograph of {height} × {width} at {stride} px per score"
        raise ValueError(f"Wrong mask scores {scores.shape}. Expected {expected}.")
    inside = scaled_size(config, height, width)
    rows, columns = (-(-side // stride) for side in inside)  # without cells that are only padding
    grid = scores[:rows, :columns, None]
    if inside != (rows * stride, columns * stride):
        grid = resize(grid, rows * stride, columns * stride)[: inside[0], : inside[1]]
    return np.ascontiguousarray(resize(grid, height, width)[..., 0], dtype=np.float32)


def input_size(config: InputConfig, height: int, width: int) -> tuple[int, int]:
    """Returns rows and columns, px, of the network input for a photograph of `height` × `width`."""
    if config.policy in ("resize", "letterbox"):
        return config.size
    rows, columns = -(-height // STRIDE) * STRIDE, -(-width // STRIDE) * STRIDE
    if config.policy == "native":
        return rows, columns
    tile_rows, tile_columns = config.size
    return max(rows, tile_rows), max(columns, tile_columns)


def scaled_size(config: InputConfig, height: int, width: int) -> tuple[int, int]:
    """Returns rows and columns, px, of the photograph in the upper left of the network input."""
    if config.policy == "resize":
        return config.size
    if config.policy != "letterbox":
        return height, width
    rows, columns = config.size
    if rows * width <= columns * height:  # limited by the height
        return rows, _rounded(width * rows, height)
    return _rounded(height * columns, width), columns


def cell_area(config: InputConfig, height: int, width: int, stride: int = STRIDE) -> float:
    """Returns how many pixels of a photograph of `height` × `width` one mask score covers."""
    rows, columns = scaled_size(config, height, width)
    return stride**2 * height * width / (rows * columns)


def check_image(image: NDArray[np.uint8]) -> None:
    """Raises ImageError or ValueError if `image` is not uint8 [H, W, C] with 1 or 3 channels."""
    if image.ndim != 3 or 0 in image.shape:
        raise ValueError(
            f"Wrong image shape {image.shape}. Expected [H, W, C]; use image[..., None] for grey."
        )
    if image.dtype != np.uint8:
        raise ValueError(f"Wrong image type {image.dtype}. Expected uint8 values 0…255.")
    if image.shape[2] not in (1, 3):
        raise ImageError(
            f"The image has {image.shape[2]} channels. Expected 1 (grey) or 3 (RGB); remove the others.",
            code="unsupported_channels",
        )


def _convert_channels(image: NDArray[np.uint8], config: InputConfig, channels: int) -> NDArray[np.uint8]:
    if image.shape[2] == channels:
        return image
    if channels == 3:
        return np.repeat(image, 3, axis=2)
    difference = _max_channel_difference(image)
    if difference > GREY_TOLERANCE and not config.convert_color:
        raise ImageError(
            f"The image has colour (channels differ by up to {difference} of 255), but the model expects "
            f"grey (at most {GREY_TOLERANCE}). Send a grey image, or train a model with "
            "network.input_channels = 3, or with input.convert_color = true to convert colour to grey.",
            code="unsupported_channels",
        )
    # Brightness by BT.601, as in JPEG and WebP; equal channels keep their value.
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)[..., None]


def _max_channel_difference(image: NDArray[np.uint8]) -> int:
    """Returns the largest difference between two channels of a pixel of [H, W, 3]."""
    red, green, blue = cv2.split(image)
    return max(int(cv2.absdiff(*pair).max()) for pair in ((red, green), (green, blue), (blue, red)))


def _rounded(part: int, whole: int) -> int:
    """Returns the integer nearest to `part / whole`, at least 1."""
    return max(1, (2 * part + whole) // (2 * whole))


def _pad(
    image: NDArray[np.uint8], size: tuple[int, int], mode: Literal["edge", "constant"]
) -> NDArray[np.uint8]:
    """Pads `image` [H, W, …] at the bottom and on the right to `size`."""
    if image.shape[:2] == size:
        return image
    missing = [(0, size[0] - image.shape[0]), (0, size[1] - image.shape[1]), (0, 0)]
    return np.pad(image, missing[: image.ndim], mode=mode)


def resize(image: NDArray[Value], rows: int, columns: int) -> NDArray[Value]:
    """Resizes [H, W, C] about pixel centres: first the axes that shrink, then those that grow."""
    result = image
    for height, width, mode in (
        (min(rows, image.shape[0]), min(columns, image.shape[1]), cv2.INTER_AREA),
        (rows, columns, cv2.INTER_LINEAR),
    ):
        if result.shape[:2] != (height, width):
            scaled = cv2.resize(result, (width, height), interpolation=mode)
            result = np.asarray(scaled, dtype=image.dtype).reshape(height, width, image.shape[2])
    return result
