"""What runs an artifact: one small protocol, one module an engine."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Logits:
    """What the network answers: `mask` [B, H/s, W/s, 1] and `classes` [B, C], both float32.

    s is the network's `mask_stride`.
    """

    mask: NDArray[np.float32]
    classes: NDArray[np.float32]


class Engine(Protocol):
    """Runs the network of an artifact."""

    @property
    def batch_pixels(self) -> int:
        """Pixels (B × H × W) beyond which a batch is not faster than its images one by one."""
        ...

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        ...
