"""Runs the network outside the event loop: one thread, and a bounded number of requests that wait for it."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from api.errors import busy
from segdec.config import InputConfig, ModelConfig
from segdec.postprocessing import Prediction

WARM_SIDE = 256
"""Side in px of the blank photograph that warms a model which takes any size."""


class ImagePredictor(Protocol):
    """What the service needs of a `segdec.predictor.Predictor`."""

    @property
    def config(self) -> ModelConfig:
        """The model's network, input, classes and thresholds."""
        ...

    def predict(
        self, images: Sequence[NDArray[np.uint8]], *, threshold: float | None = None
    ) -> list[Prediction]:
        """Predicts `images`, each uint8 [H, W, C]."""
        ...


@dataclass(frozen=True)
class Inferred:
    """A prediction and what it took, milliseconds."""

    prediction: Prediction
    queue_ms: float
    infer_ms: float
    batch_size: int


class Inference:
    """The one thread that may run a model, and the places in front of it.

    Args:
        predictor: Runs the model.
        queue_size: Requests that may wait while one runs.
        retry_after_s: Seconds that a refused client is asked to wait.
    """

    def __init__(self, predictor: ImagePredictor, *, queue_size: int, retry_after_s: int) -> None:
        self.predictor = predictor
        self.queue_size = queue_size
        self.retry_after_s = retry_after_s
        self._taken = 0
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="inference")

    @contextmanager
    def place(self) -> Iterator[None]:
        """Holds a place for one request; only the event loop's thread may take one.

        Raises:
            RequestError: 503, if every place is taken.
        """
        if self._taken > self.queue_size:
            raise busy(
                "queue_full",
                f"{self._taken} requests are waiting or running, the most this service takes. Retry later.",
                self.retry_after_s,
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    async def predict(self, image: NDArray[np.uint8], threshold: float | None) -> Inferred:
        """Predicts one photograph uint8 [H, W, C]."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._run, image, threshold, time.perf_counter())

    async def warm(self) -> None:
        """Runs the model once, so that the first request does not pay for its set-up."""
        config = self.predictor.config
        await self.predict(blank_image(config.input, config.network.input_channels), None)

    def close(self) -> None:
        """Ends the thread when its last prediction is done."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _run(self, image: NDArray[np.uint8], threshold: float | None, submitted: float) -> Inferred:
        begun = time.perf_counter()
        prediction = self.predictor.predict([image], threshold=threshold)[0]
        ended = time.perf_counter()
        return Inferred(prediction, (begun - submitted) * 1000, (ended - begun) * 1000, batch_size=1)


def blank_image(config: InputConfig, channels: int) -> NDArray[np.uint8]:
    """A black photograph [H, W, C] of the size that the model takes."""
    return np.zeros((config.height or WARM_SIDE, config.width or WARM_SIDE, channels), np.uint8)
