"""Groups photographs into batches between the steps of a prediction."""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits
from segdec.inference.postprocessing import Prediction

MAX_BATCH = 8
"""Photographs in a batch, at most, unless the caller says otherwise."""


@dataclass(eq=False)
class PendingPhotograph:
    """A photograph on its way to a prediction.

    Attributes:
        pixels: uint8 [H, W, C].
        inferred: What the network said of a batch, and the photograph's row in it.
    """

    pixels: NDArray[np.uint8]
    inferred: Future[tuple[Logits, int]] = field(default_factory=Future)


Pending = TypeVar("Pending", bound=PendingPhotograph)


class PredictionSteps(Protocol):
    """The steps of a `segdec.predictor.Predictor`, told here so that this module need not import that one."""

    @property
    def batch_pixels(self) -> int:
        """Pixels (B × H × W) beyond which a batch is not faster than its photographs one by one."""
        ...

    def warmup_shape(self) -> tuple[int, int, int]:
        """Returns the shape [h, w, c] of the prepared photograph that is likely to come first."""
        ...

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Fits a photograph to the network: uint8 [H, W, C] → [h, w, c]."""
        ...

    def infer(self, prepared: NDArray[np.uint8]) -> Logits:
        """Runs the network on prepared photographs [B, h, w, c]."""
        ...

    def interpret(
        self, logits: Logits, row: int, size: tuple[int, int], *, threshold: float | None = None
    ) -> Prediction:
        """Reads the answer for one photograph out of a batch's logits."""
        ...


class Batcher:
    """Predicts photographs that pass `prepare`, `infer` and `interpret`, each in one thread, all in order.

    Photographs of one prepared size that already wait for the network share a batch; none waits for another
    to come. Batches hold 1, 2, 4, 8… photographs, since some engines set themselves up anew for each size.

    Args:
        steps: Of the predictor, one by one.
        threshold: Replaces the model's image threshold, 0…1.
        batch_size: Most photographs in a batch; None for as many of the size that the model expects as
            the `batch_pixels` of `steps` hold, at most 8.

    Attributes:
        max_in_flight: Photographs under way that keep the network busy: a batch in it, a batch before it, and
            one at each end and in each other step.

    Raises:
        ValueError: If `batch_size` is below 1.
    """

    def __init__(
        self, steps: PredictionSteps, *, threshold: float | None = None, batch_size: int | None = None
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size={batch_size}. Expected at least 1.")
        self._steps = steps
        self._threshold = threshold
        self._batch_size = batch_size or min(self._room(steps.warmup_shape()), MAX_BATCH)
        self.max_in_flight = 2 * self._batch_size + 3
        self._waiting: deque[tuple[PendingPhotograph, NDArray[np.uint8]]] = deque()

    def prepare(self, pending: Pending) -> Pending:
        """Fits the photograph to the network; raises as `Predictor.prepare`."""
        self._waiting.append((pending, self._steps.prepare(pending.pixels)))
        return pending

    def infer(self, pending: Pending) -> Pending:
        """Runs the network, unless an earlier photograph's batch has taken this one along.

        An error is that of every photograph of the batch; `interpret` raises it.
        """
        if not pending.inferred.done():
            batch = [self._waiting.popleft() for _ in range(self._count_alike())]
            try:
                logits = self._steps.infer(np.stack([prepared for _, prepared in batch]))
            except Exception as error:
                for each, _ in batch:
                    each.inferred.set_exception(error)
            else:
                for row, (each, _) in enumerate(batch):
                    each.inferred.set_result((logits, row))
        return pending

    def interpret(self, pending: PendingPhotograph) -> Prediction:
        """Reads the photograph's answer; raises as `Predictor.interpret`, or what the network raised."""
        logits, row = pending.inferred.result()
        height, width = pending.pixels.shape[:2]
        return self._steps.interpret(logits, row, (height, width), threshold=self._threshold)

    def _count_alike(self) -> int:
        """How many of those that wait go together: a power of two, from the first one on."""
        shape = self._waiting[0][1].shape
        most = min(self._batch_size, self._room(shape), len(self._waiting))
        count = next((n for n in range(1, most) if self._waiting[n][1].shape != shape), most)
        return int(2 ** (count.bit_length() - 1))

    def _room(self, shape: tuple[int, ...]) -> int:
        """Prepared photographs of `shape` [h, w, c] that a batch gains by."""
        return max(self._steps.batch_pixels // (shape[0] * shape[1]), 1)
