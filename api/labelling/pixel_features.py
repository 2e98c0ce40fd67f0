"""What a pixel and its surroundings look like: brightness, colour, texture, edges, thin structures."""

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Floats = NDArray[np.float32]

BRIGHTNESS_SIGMAS = (1, 2, 4, 8)
COLOUR_SIGMAS = (1, 4)
TEXTURE_SIGMAS = (2, 4, 8)
EDGE_SIGMAS = (1, 2)
NOISE_SIGMA = 0.7
STRUCTURE_SIDES = (7, 15, 31)
"""Structures that are narrower than this are dark or bright lines and spots, px."""


def describe_pixels(image: Image) -> Floats:
    """Returns the features of each pixel, [H, W, D]: D is 15 for grey photographs, 19 in colour.

    Args:
        image: [H, W], or [H, W, C] with C = 1 (grey) or 3 (RGB).
    """
    lab = _to_lab(image)
    brightness = np.ascontiguousarray(lab[..., 0])
    smooth = {sigma: smoothed(brightness, sigma) for sigma in BRIGHTNESS_SIGMAS}
    features = list(smooth.values())
    for channel in range(1, lab.shape[2]):
        features += [smoothed(lab[..., channel], sigma) for sigma in COLOUR_SIGMAS]
    detail = np.square(brightness - smooth[2])
    for sigma in TEXTURE_SIGMAS:
        energy = np.maximum(smoothed(detail, sigma), 0)
        features.append(np.asarray(np.log(np.sqrt(energy) + 0.5), np.float32))
    for sigma in EDGE_SIGMAS:
        features.append(smoothed(_gradient(smooth[sigma]), 1))
    for side in STRUCTURE_SIDES:
        element = np.ones((side, side), np.uint8)
        for operation in (cv2.MORPH_BLACKHAT, cv2.MORPH_TOPHAT):
            structures = cv2.morphologyEx(smooth[1], operation, element)
            features.append(np.asarray(structures, np.float32))
    return np.asarray(cv2.merge(features), np.float32)


def describe_colours(image: Image) -> Floats:
    """Returns lightness and, in colour, the two channels of CIELAB, slightly smoothed, [H, W, 1 or 3]."""
    return smoothed(_to_lab(image), NOISE_SIGMA).reshape(*image.shape[:2], -1)  # OpenCV drops one channel


def smoothed(values: Floats, sigma: float) -> Floats:
    """Returns the Gaussian mean around each pixel; `sigma` in px."""
    return np.asarray(cv2.GaussianBlur(values, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE), np.float32)


def _to_lab(image: Image) -> Floats:
    """Lightness 0…100 and, in colour, the two channels of CIELAB, [H, W, 1 or 3]."""
    if image.ndim == 3 and image.shape[2] == 3:
        unit = image.astype(np.float32) / np.float32(255)
        return np.asarray(cv2.cvtColor(unit, cv2.COLOR_RGB2LAB), np.float32)
    return image.reshape(*image.shape[:2], 1).astype(np.float32) * np.float32(100 / 255)


def _gradient(values: Floats) -> Floats:
    across, down = (cv2.Sobel(values, cv2.CV_32F, dx, 1 - dx, scale=1 / 8) for dx in (1, 0))
    return np.asarray(cv2.magnitude(across, down), np.float32)
