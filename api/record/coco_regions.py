"""Regions of a mask as the COCO format has them."""

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.imaging.run_lengths import encode_box_run_lengths


def find_regions(mask: NDArray[np.bool_]) -> Iterator[dict[str, Any]]:
    """Yields segmentation, box and area of each connected part of a mask [H, W]."""
    count, numbers, facts, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    size = (mask.shape[0], mask.shape[1])
    for number in range(1, count):
        left, top, width, height, area = facts[number].tolist()
        box = numbers[top : top + height, left : left + width] == number
        yield {
            "segmentation": {"size": list(size), "counts": encode_box_run_lengths(box, left, top, size)},
            "bbox": [left, top, width, height],
            "area": area,
            "iscrowd": 0,
        }
