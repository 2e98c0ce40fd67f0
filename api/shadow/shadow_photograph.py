"""A photograph that a candidate is to see, too, and the memory that such photographs may hold."""

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from segdec.schemas import ModelIdentity


class ShadowMemory:
    """Bounds what photographs for candidates hold, from their decoding on; a single one may be larger.

    Any thread may use it.

    Args:
        most_bytes: That they hold together.
    """

    def __init__(self, max_bytes: float) -> None:
        self._most_bytes = max_bytes
        self._lock = threading.Lock()
        self.held_bytes = 0

    def try_reserve(self, count: int) -> bool:
        """Holds `count` bytes more, if there is room for them; returns whether there was."""
        with self._lock:
            fits = not self.held_bytes or self.held_bytes + count <= self._most_bytes
            self.held_bytes += count * fits
        return fits

    def release_bytes(self, count: int) -> None:
        """Holds as many less."""
        with self._lock:
            self.held_bytes -= count


@dataclass(eq=False)
class ShadowPhotograph:
    """A photograph for a candidate, which it names without holding it: a model is to go when replaced.

    Attributes:
        candidate: Which version is to see it.
        prepared_alike: Whether the candidate takes photographs prepared as for the model that answers.
        threshold: Replaces the candidate's image threshold, 0…1.
        memory: Bounds what this one and others hold.
        image: The photograph [H, W, C], prepared [h, w, c] if `prepared_alike`; None while there is none.
        size: Of the photograph: height, width, px.
        is_waiting: Whether it is somebody else's to release.
    """

    candidate: ModelIdentity
    prepared_alike: bool
    threshold: float | None
    memory: ShadowMemory
    image: NDArray[np.uint8] | None = None
    size: tuple[int, int] = (0, 0)
    is_waiting: bool = False
    _is_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def set_image(self, pixels: NDArray[np.uint8], prepared: NDArray[np.uint8]) -> None:
        """Takes the photograph, or what the network that answers is given; in any thread.

        It does not where there is no room, nor after its release: a thread goes on for a client who has gone.
        """
        image = prepared if self.prepared_alike else pixels
        with self._lock:
            if not self._is_over and self.memory.try_reserve(_held_bytes(image)):
                self.image, self.size = image, (pixels.shape[0], pixels.shape[1])

    def release(self) -> None:
        """Lets the photograph go, and takes none any more."""
        with self._lock:
            self._is_over = True
            if self.image is not None:
                self.memory.release_bytes(_held_bytes(self.image))
                self.image = None


def _held_bytes(image: NDArray[np.uint8]) -> int:
    """Returns the memory of an array, or of the larger one that it is a part of."""
    return max(image.nbytes, int(getattr(image.base, "nbytes", 0)))
