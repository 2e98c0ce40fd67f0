"""Photograph to network input and mask back to photograph: the single definition for training and serving."""

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.config import STRIDE, InputConfig
from segdec.errors import ImageError
from segdec.images import resize_mask

Value = TypeVar("Value", np.uint8, np.float32)


def prepare_image(image: NDArray[np.uint8], config: InputConfig, channels: int) -> NDArray[np.uint8]:
    """Fits a photograph to the network.

    The policy `resize` averages over areas when shrinking and interpolates linearly when enlarging;
    `native` repeats the last row and column until both sides are multiples of 8. Values stay
    0…255: the first layer of the network scales them.

    Args:
        image: uint8 [H, W, C], C is 1 (grey) or 3 (RGB).
        config: Size policy, and whether colour may be reduced to grey.
        channels: Channels the network takes, 1 or 3.

    Returns:
        uint8 [h, w, channels], h and w divisible by 8.

    Raises:
        ImageError: With the code `unsupported_channels`, if C is neither 1 nor 3 or a colour
            photograph meets a grey network.
        ValueError: If `image` is no uint8 array [H, W, C].
    """
    check_image(image)
    converted = _convert_channels(image, config, channels)
    rows, columns = input_size(config, *image.shape[:2])
    if config.policy == "native":
        return _pad(converted, rows, columns)
    return _resize(converted, rows, columns)


def prepare_mask(mask: NDArray[np.uint8], config: InputConfig) -> NDArray[np.uint8]:
    """Moves a mask along with its photograph: uint8 [H, W] → [h, w], 255 where there is a defect.

    Scaling keeps even the thinnest defect; see `segdec.images.resize_mask`.

    Raises:
        ValueError: If `mask` is no uint8 array [H, W].
    """
    if mask.dtype != np.uint8 or mask.ndim != 2 or 0 in mask.shape:
        raise ValueError(f"Wrong mask {mask.dtype} {mask.shape}. Expected uint8 [H, W], 255 = defect.")
    rows, columns = input_size(config, *mask.shape)
    if config.policy == "native":
        return _pad(np.where(mask > 0, np.uint8(255), np.uint8(0)), rows, columns)
    return resize_mask(mask, rows, columns)


def restore_mask(
    scores: NDArray[np.float32], config: InputConfig, height: int, width: int
) -> NDArray[np.float32]:
    """Brings mask scores back to the size of the photograph, linearly between pixel centres.

    Args:
        scores: float32 [h/8, w/8], of the prepared photograph [h, w].
        config: The policy the photograph was prepared with.
        height: Rows of the photograph, px.
        width: Columns of the photograph, px.

    Returns:
        float32 [height, width].

    Raises:
        ValueError: If `scores` does not belong to a photograph of that size.
    """
    rows, columns = input_size(config, height, width)
    if scores.shape != (rows // STRIDE, columns // STRIDE):
        raise ValueError(
            f"Wrong mask scores {scores.shape}. "
            f"Expected {(rows // STRIDE, columns // STRIDE)} for a photograph of {height} × {width}."
        )
    if config.policy == "native":
        full = _resize(scores[..., None], rows, columns)[:height, :width, 0]
    else:
        full = _resize(scores[..., None], height, width)[..., 0]
    return np.ascontiguousarray(full, dtype=np.float32)


def input_size(config: InputConfig, height: int, width: int) -> tuple[int, int]:
    """Rows and columns, px, of the network input for a photograph of `height` × `width`."""
    if config.height is not None and config.width is not None:
        return config.height, config.width
    return -(-height // STRIDE) * STRIDE, -(-width // STRIDE) * STRIDE


def check_image(image: NDArray[np.uint8]) -> None:
    """Refuses what is no uint8 photograph [H, W, C] with 1 or 3 channels.

    Raises:
        ImageError: With the code `unsupported_channels`, if C is neither 1 nor 3.
        ValueError: If type or number of axes are wrong or an axis is empty.
    """
    if image.ndim != 3 or 0 in image.shape:
        raise ValueError(
            f"Wrong image shape {image.shape}. Expected [H, W, C]; consider image[..., None] for a grey one."
        )
    if image.dtype != np.uint8:
        raise ValueError(f"Wrong image type {image.dtype}. Expected uint8 values 0…255.")
    if image.shape[2] not in (1, 3):
        raise ImageError(
            f"The image has {image.shape[2]} channels. Expected 1 (grey) or 3 (RGB); drop the others.",
            code="unsupported_channels",
        )


def _convert_channels(image: NDArray[np.uint8], config: InputConfig, channels: int) -> NDArray[np.uint8]:
    if image.shape[2] == channels:
        return image
    if channels == 3:
        return np.repeat(image, 3, axis=2)
    if (image == image[..., :1]).all():  # grey stored as colour
        return image[..., :1]
    if config.convert_color:
        return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)[..., None]  # BT.601
    raise ImageError(
        "The image is in colour, the model takes grey ones. Send a grey image, or train a model with "
        "network.input_channels = 3 or with input.convert_color = true.",
        code="unsupported_channels",
    )


def _pad(image: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.uint8]:
    """Repeats the last row and column of `image` [H, W, …] until it has `rows` and `columns`."""
    if image.shape[:2] == (rows, columns):
        return image
    missing = [(0, rows - image.shape[0]), (0, columns - image.shape[1])]
    return np.pad(image, missing + [(0, 0)] * (image.ndim - 2), mode="edge")


def _resize(image: NDArray[Value], rows: int, columns: int) -> NDArray[Value]:
    """Shrinks [H, W, C] along the axes that shrink, then enlarges along the others, about pixel centres."""
    result = image
    for height, width, mode in (
        (min(rows, image.shape[0]), min(columns, image.shape[1]), cv2.INTER_AREA),
        (rows, columns, cv2.INTER_LINEAR),
    ):
        if result.shape[:2] != (height, width):
            scaled = cv2.resize(result, (width, height), interpolation=mode)
            result = np.asarray(scaled, dtype=image.dtype).reshape(height, width, image.shape[2])
    return result
