"""An engine whose result is the first pixel of each photograph."""

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits


class FirstPixelEngine:
    """Returns the first pixel as the defect logit; batches whose brightest pixel is 255 fail.

    Attributes:
        batch_pixels: Pixels of a batch beyond which batching gains nothing.
        shapes: Shape of each batch.
    """

    batch_pixels = 2**24

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        self.shapes.append(images.shape)
        if images.max() == 255:
            raise MemoryError
        defect = images[:, 0, 0, 0].astype(np.float32)
        mask = np.zeros((len(images), images.shape[1] // 8, images.shape[2] // 8, 1), np.float32)
        return Logits(mask=mask, classes=np.stack([np.zeros_like(defect), defect - 100], axis=1))
