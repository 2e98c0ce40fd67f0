"""Runs the steps of a stage: on all replicas together, or on each worker when it is free."""

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
"""Scheduled steps per worker: one that runs, and one whose batch is already there."""


@dataclass(frozen=True)
class StepResult:
    """Losses of a step, and the time that it waited for its batch; reading the losses waits for it."""

    losses: Losses
    wait_s: float


class StepRunner(ABC):
    """Runs the steps of one stage in order, with one of the `batches` of the pipeline each.

    Close it when the stage ends, in any case: the process cannot exit while its threads prepare batches.
    """

    def __init__(self, train_step: TrainStep, batches: Iterable[Batch], pipeline: InputPipeline) -> None:
        self._train_step = train_step
        self._batches: Iterator[Batch] = iter(batches)
        self._pipeline = pipeline

    @abstractmethod
    def run_step(self, stop_requested: bool = False) -> list[StepResult]:
        """Starts the next step; returns the steps that have finished.

        `stop_requested` of one synchronous process reaches the others with the step.
        """

    def should_stop(self, stop_requested: bool) -> bool:
        """Returns whether to stop after the last step, equal in all synchronous processes."""
        return stop_requested

    @abstractmethod
    def drain(self) -> list[StepResult]:
        """Waits for all started steps; returns those not yet returned."""

    def close(self) -> None:
        """Waits for the batches in progress and requests no more."""
        self._batches = iter(())

    def _next(self) -> tuple[Batch, float]:
        """The next batch and the waiting time, s."""
        started = time.perf_counter()
        try:
            batch = next(self._batches)
        except tf.errors.OpError as error:
            # The traceback would keep the iterator alive.
            failure = self._pipeline.error or error.with_traceback(None)
        else:
            return batch, time.perf_counter() - started
        raise failure


class SynchronousStepRunner(StepRunner):
    """Runs each step on all replicas; if these belong to several processes, they stop after the same step."""

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
        """Runs the step and returns it."""
        batch, wait_s = self._next()
        if not self._multi_process:
            return [StepResult(self._train_step(batch), wait_s)]
        losses = dict(self._train_step(batch, tf.constant(float(stop_requested))))
        self._stop_requests.append(losses.pop(STOP_REQUESTS))
        return [StepResult(losses, wait_s)]

    def should_stop(self, stop_requested: bool) -> bool:
        """Returns whether any process was asked to stop before the previous step.

        Those of the current step are known only after its reduction; waiting for it would leave the devices
        idle.
        """
        if not self._multi_process:
            return stop_requested
        return len(self._stop_requests) > 1 and float(self._stop_requests.popleft()) > 0

    def drain(self) -> list[StepResult]:
        """Returns nothing: each step is returned when it starts."""
        return []


class AsynchronousStepRunner(StepRunner):
    """Schedules each step on a free worker; the step of a lost worker is repeated by another one."""

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
        """Schedules the step; waits for the oldest one if enough are pending."""
        batch, wait_s = self._next()
        self._pending.append((self._coordinator.schedule(self._train_step, args=(batch,)), wait_s))
        return list(self._finished(self._limit - 1))

    def drain(self) -> list[StepResult]:
        """Waits for all workers."""
        return list(self._finished(0))

    def _finished(self, max_pending: int) -> Iterator[StepResult]:
        while len(self._pending) > max_pending:
            losses, wait_s = self._pending.popleft()
            yield StepResult(losses.fetch(), wait_s)
