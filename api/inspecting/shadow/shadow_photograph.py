"""A photograph for a candidate, and the memory limit of such photographs."""

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from segdec.schemas import ModelIdentity


class ShadowMemory:
    """Limits the memory of photographs for candidates, from decoding on. A single photograph may exceed the
    limit if it is alone. Any thread may use it.
    """

    def __init__(self, max_bytes: float) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self.reserved_bytes = 0

    def try_reserve(self, count: int) -> bool:
        """Reserves `count` bytes if they fit; returns whether they did."""
        with self._lock:
            fits = not self.reserved_bytes or self.reserved_bytes + count <= self._max_bytes
            self.reserved_bytes += count * fits
        return fits

    def release_bytes(self, count: int) -> None:
        with self._lock:
            self.reserved_bytes -= count


@dataclass(eq=False)
class ShadowPhotograph:
    """A photograph for a candidate; it stores only the candidate's id, so that a replaced model can be freed.

    Attributes:
        same_input: Whether the candidate takes photographs prepared for the stable model.
        threshold: Replaces the candidate's image threshold, 0…1.
        image: The photograph [H, W, C], prepared [h, w, c] if `same_input`; None if there is none.
        size: Height and width of the photograph, px.
        is_waiting: Whether it is in the queue; then `Shadowing` releases it.
    """

    candidate: ModelIdentity
    same_input: bool
    threshold: float | None
    memory: ShadowMemory
    image: NDArray[np.uint8] | None = None
    size: tuple[int, int] = (0, 0)
    is_waiting: bool = False
    _is_released: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def set_image(self, pixels: NDArray[np.uint8], prepared: NDArray[np.uint8]) -> None:
        """Stores the photograph, or the stable model's input; in any thread.

        Does nothing if the memory is full, or after `release`: a thread may decode after its client has left.
        """
        image = prepared if self.same_input else pixels
        with self._lock:
            if not self._is_released and self.memory.try_reserve(_buffer_bytes(image)):
                self.image, self.size = image, (pixels.shape[0], pixels.shape[1])

    def release(self) -> None:
        """Drops the photograph, and accepts no other."""
        with self._lock:
            self._is_released = True
            if self.image is not None:
                self.memory.release_bytes(_buffer_bytes(self.image))
                self.image = None


def _buffer_bytes(image: NDArray[np.uint8]) -> int:
    """Returns the size of an array, or of the larger array that it is a view of."""
    return max(image.nbytes, int(getattr(image.base, "nbytes", 0)))
