"""The steps of a prediction, made to follow one another in a `segdec.pipeline.Pipeline`."""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits
from segdec.postprocessing import Prediction

if TYPE_CHECKING:
    from segdec.predictor import Predictor

LARGEST_BATCH = 8
"""Photographs in a batch, at most, unless the caller says otherwise."""


@dataclass(eq=False)
class Job:
    """A photograph on its way to a prediction.

    Attributes:
        pixels: uint8 [H, W, C].
        answer: The network's for a batch, and the photograph's row in it.
    """

    pixels: NDArray[np.uint8]
    answer: Future[tuple[Logits, int]] = field(default_factory=Future)


J = TypeVar("J", bound=Job)


class PredictionSteps:
    """Predicts jobs that pass `prepare`, `infer` and `interpret`, each step in one thread, all in one order.

    Photographs of one prepared size that already wait for the network share a batch; none waits for another
    to come. Batches hold 1, 2, 4, 8… photographs, since some engines set themselves up anew for each size.

    Args:
        predictor: Whose steps they are.
        threshold: Replaces the model's image threshold, 0…1.
        batch_size: Most photographs in a batch; None for as many of the size that the model expects as
            the predictor's `batch_pixels` hold, at most 8.

    Attributes:
        ahead: Photographs under way that keep the network busy: a batch in it, a batch before it, and one at
            each end and in each other step.

    Raises:
        ValueError: If `batch_size` is below 1.
    """

    def __init__(
        self, predictor: "Predictor", *, threshold: float | None = None, batch_size: int | None = None
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size={batch_size}. Expected at least 1.")
        self._predictor = predictor
        self._threshold = threshold
        self._batch_size = batch_size or min(self._room(predictor.warm_shape()), LARGEST_BATCH)
        self.ahead = 2 * self._batch_size + 3
        self._waiting: deque[tuple[Job, NDArray[np.uint8]]] = deque()

    def prepare(self, job: J) -> J:
        """Fits the photograph to the network; raises as `Predictor.prepare`."""
        self._waiting.append((job, self._predictor.prepare(job.pixels)))
        return job

    def infer(self, job: J) -> J:
        """Runs the network, unless an earlier photograph's batch has taken this one along.

        An error is that of every photograph of the batch; `interpret` raises it.
        """
        if not job.answer.done():
            batch = [self._waiting.popleft() for _ in range(self._count_alike())]
            try:
                logits = self._predictor.infer(np.stack([prepared for _, prepared in batch]))
            except Exception as error:
                for each, _ in batch:
                    each.answer.set_exception(error)
            else:
                for row, (each, _) in enumerate(batch):
                    each.answer.set_result((logits, row))
        return job

    def interpret(self, job: Job) -> Prediction:
        """Reads the photograph's answer; raises as `Predictor.interpret`, or what the network raised."""
        logits, row = job.answer.result()
        height, width = job.pixels.shape[:2]
        return self._predictor.interpret(logits, row, (height, width), threshold=self._threshold)

    def _count_alike(self) -> int:
        """How many of those that wait go together: a power of two, from the first one on."""
        shape = self._waiting[0][1].shape
        most = min(self._batch_size, self._room(shape), len(self._waiting))
        count = next((n for n in range(1, most) if self._waiting[n][1].shape != shape), most)
        return int(2 ** (count.bit_length() - 1))

    def _room(self, shape: tuple[int, ...]) -> int:
        """Prepared photographs of `shape` [h, w, c] that a batch gains by."""
        return max(self._predictor.batch_pixels // (shape[0] * shape[1]), 1)
