"""How the steps of a stage reach the devices: all replicas together, or each worker when it is free."""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from training.data.input_pipeline import Batch, InputPipeline
from training.optimization.gradients import Losses
from training.optimization.step import STOP_REQUESTS

TrainStep = Callable[..., Losses]

PENDING_PER_WORKER = 2
"""Steps that wait at each worker: one that runs, and one whose batch is already there."""


@dataclass(frozen=True)
class StepResult:
    """A step that is done, or in synchronous training at least under way.

    Attributes:
        losses: Scalars; reading them waits for the devices.
        wait_s: How long the input kept the step waiting, s.
    """

    losses: Losses
    wait_s: float


class StepRunner(ABC):
    """Takes the steps of one stage, and returns them, in their order.

    It is closed when the stage ends, however it ends: threads that still prepare batches when Python shuts
    down never come to their end, and the process waits for them for ever.

    Args:
        train_step: The step: batch → losses.
        batches: One batch a step.
        pipeline: Where they come from; it knows why one could not be read.
    """

    def __init__(self, train_step: TrainStep, batches: Iterable[Batch], pipeline: InputPipeline) -> None:
        self._train_step = train_step
        self._batches: Iterator[Batch] = iter(batches)
        self._pipeline = pipeline

    @abstractmethod
    def run_step(self, stop_requested: bool = False) -> list[StepResult]:
        """Starts the next step; returns the steps that have come to their end by then.

        Args:
            asked_to_stop: Whether this process is; who trains in step with it learns it from the step.
        """

    def should_stop(self, stop_requested: bool) -> bool:
        """Returns whether to stop after the step just taken, the same in all processes that train in step."""
        return stop_requested

    @abstractmethod
    def drain(self) -> list[StepResult]:
        """Waits for all steps that were started; returns those not yet returned."""

    def close(self) -> None:
        """Waits for the batches under way and asks for no more."""
        self._batches = iter(())

    def _next(self) -> tuple[Batch, float]:
        """The next batch, and how long it took to come, s."""
        asked = time.perf_counter()
        try:
            batch = next(self._batches)
        except tf.errors.OpError as error:
            # Without its traceback, which would keep the iterator alive.
            failure = self._pipeline.error or error.with_traceback(None)
        else:
            return batch, time.perf_counter() - asked
        raise failure


class SynchronousStepRunner(StepRunner):
    """All replicas take each step together.

    Args:
        several: Whether the replicas belong to several processes, which have to stop after the same step.
    """

    def __init__(
        self,
        train_step: TrainStep,
        batches: Iterable[Batch],
        pipeline: InputPipeline,
        *,
        multi_process: bool = False,
    ) -> None:
        super().__init__(train_step, batches, pipeline)
        self._multi_process = multi_process
        self._stop_requests: deque[tf.Tensor] = deque()

    def run_step(self, stop_requested: bool = False) -> list[StepResult]:
        """Takes the step; returns it."""
        batch, wait_s = self._next()
        if not self._multi_process:
            return [StepResult(self._train_step(batch), wait_s)]
        losses = dict(self._train_step(batch, tf.constant(float(stop_requested))))
        self._stop_requests.append(losses.pop(STOP_REQUESTS))
        return [StepResult(losses, wait_s)]

    def should_stop(self, stop_requested: bool) -> bool:
        """Returns whether any process was asked to before it took the step before this one.

        Those of this step come with its reduction, and to wait for it would leave the devices idle.
        """
        if not self._multi_process:
            return stop_requested
        return len(self._stop_requests) > 1 and float(self._stop_requests.popleft()) > 0

    def drain(self) -> list[StepResult]:
        """Returns nothing: nothing is ever left over."""
        return []


class AsynchronousStepRunner(StepRunner):
    """Each step goes to whichever worker is free; a worker that dies loses its step to another one.

    Args:
        coordinator: Sends the steps to the workers.
        workers: How many there are.
    """

    def __init__(
        self,
        train_step: TrainStep,
        batches: Iterable[Batch],
        pipeline: InputPipeline,
        coordinator: tf.distribute.coordinator.ClusterCoordinator,
        workers: int,
    ) -> None:
        super().__init__(train_step, batches, pipeline)
        self._coordinator = coordinator
        self._limit = PENDING_PER_WORKER * workers
        self._pending: deque[tuple[Any, float]] = deque()

    def run_step(self, stop_requested: bool = False) -> list[StepResult]:  # noqa: ARG002
        """Sends the step to the workers; waits for the oldest one if enough are pending."""
        batch, wait_s = self._next()
        self._pending.append((self._coordinator.schedule(self._train_step, args=(batch,)), wait_s))
        return list(self._done(self._limit - 1))

    def drain(self) -> list[StepResult]:
        """Waits for all workers."""
        return list(self._done(0))

    def _done(self, left: int) -> Iterator[StepResult]:
        while len(self._pending) > left:
            losses, wait_s = self._pending.popleft()
            yield StepResult(losses.fetch(), wait_s)
