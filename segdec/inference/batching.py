"""Groups photographs into batches between the steps of a prediction."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits
from segdec.inference.postprocessing import Prediction

MAX_BATCH = 8
"""Default limit on the photographs in a batch."""


@dataclass(eq=False)
class PendingPhotograph:
    """A photograph uint8 [H, W, C]; `inferred` receives the logits of its batch, and its row there.

    `unlike` is whether it is unlike those of the training, as in `segdec.inference.postprocessing.interpret`.
    """

    pixels: NDArray[np.uint8]
    unlike: bool = False
    inferred: Future[tuple[Logits, int]] = field(default_factory=Future)


Pending = TypeVar("Pending", bound=PendingPhotograph)


class PredictionSteps(Protocol):
    """The methods of `segdec.predictor.Predictor`; a protocol, because that module imports this one."""

    batch_pixels: int

    def warmup_shape(self) -> tuple[int, int, int]: ...

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]: ...

    def infer(self, prepared: NDArray[np.uint8]) -> Logits: ...

    def interpret(
        self, logits: Logits, row: int, size: tuple[int, int], *, unlike: bool, threshold: float | None = None
    ) -> Prediction: ...


class Batcher:
    """Batches photographs between `prepare`, `infer` and `interpret`, each of which runs in its own thread.

    Waiting photographs of the same prepared size share a batch; none waits for later ones. Batches have 1, 2,
    4, 8… photographs, because some engines need set-up time for each new batch size. For the arguments see
    `Predictor.predict_many`; `check` is called with each photograph and the network's input.

    Attributes:
        max_in_flight: Photographs in progress that keep the network busy: one batch in the network, one
            waiting batch, and one photograph at each end and in each other step.

    Raises:
        ValueError: If `batch_size` is below 1.
    """

    def __init__(
        self,
        steps: PredictionSteps,
        *,
        threshold: float | None = None,
        batch_size: int | None = None,
        check: Callable[[Any, NDArray[np.uint8]], None] | None = None,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size={batch_size}. Expected at least 1.")
        self._steps = steps
        self._threshold = threshold
        self._check = check
        self._batch_size = batch_size or min(self._useful_size(steps.warmup_shape()), MAX_BATCH)
        self.max_in_flight = 2 * self._batch_size + 3
        self._waiting: deque[tuple[PendingPhotograph, NDArray[np.uint8]]] = deque()

    def prepare(self, pending: Pending) -> Pending:
        """Fits the photograph to the network; raises the errors of `Predictor.prepare` and of `check`."""
        prepared = self._steps.prepare(pending.pixels)
        if self._check is not None:
            self._check(pending, prepared)
        self._waiting.append((pending, prepared))
        return pending

    def infer(self, pending: Pending) -> Pending:
        """Runs the network, unless the photograph was in an earlier batch; `interpret` raises its errors."""
        if not pending.inferred.done():
            batch = [self._waiting.popleft() for _ in range(self._next_batch_size())]
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
        """Returns the photograph's prediction; raises as `Predictor.interpret`, or the error of its batch."""
        logits, row = pending.inferred.result()
        height, width = pending.pixels.shape[:2]
        return self._steps.interpret(
            logits, row, (height, width), unlike=pending.unlike, threshold=self._threshold
        )

    def _next_batch_size(self) -> int:
        """Returns how many waiting photographs form the next batch: a power of two."""
        shape = self._waiting[0][1].shape
        limit = min(self._batch_size, self._useful_size(shape), len(self._waiting))
        count = next((n for n in range(1, limit) if self._waiting[n][1].shape != shape), limit)
        return int(2 ** (count.bit_length() - 1))

    def _useful_size(self, shape: tuple[int, ...]) -> int:
        """Returns the batch size for photographs of `shape` [h, w, c] beyond which batching gains nothing."""
        return max(self._steps.batch_pixels // (shape[0] * shape[1]), 1)
