"""Runs processing steps in parallel, each in its own thread."""

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from typing import Any, Self, TypeVar

R = TypeVar("R")
PipelineStage = Callable[[Any], Any]


class Pipeline(Iterator[R]):
    """Applies `stages` to `items` and yields the results in order.

    Each stage has its own thread and receives the result of the previous stage; another thread iterates over
    the items. A thread processes one item at a time, in order, so a stage may keep state.

    If a stage or the iterable raises, `next` raises that exception at the item's position; the next call
    continues with the following item, while a `for` loop ends. (A generator ends when it raises, `map` does
    not.) Closing, leaving the `with` block or dropping the last reference stops each thread after its current
    call; closing also waits for them.

    Args:
        items: Items, possibly endless; read as needed, from the first `next` on.
        stages: Functions of one argument.
        max_in_flight: Limit on the items that are read but not yet returned, which bounds the memory; None:
            number of stages + 2, one for each thread and one that waits.

    Raises:
        ValueError: If `max_in_flight` is below 1.

    Example:
        >>> with Pipeline(paths, read_image, measure) as results:
        ...     for result in results:
        ...         print(result)
    """

    def __init__(
        self, items: Iterable[Any], *stages: PipelineStage, max_in_flight: int | None = None
    ) -> None:
        if max_in_flight is not None and max_in_flight < 1:
            raise ValueError(f"max_in_flight={max_in_flight}. Expected at least 1.")
        self._items = iter(items)
        self._stages = stages
        self._max_in_flight = max_in_flight or len(stages) + 2
        self._pending: deque[Future[R]] = deque()
        self._threads = [ThreadPoolExecutor(1, f"stage-{number}") for number in range(len(stages) + 1)]
        self._stopped = Event()
        # The threads hold no reference to the pipeline.
        self._stop = weakref.finalize(self, _stop, self._threads, self._stopped)

    def __next__(self) -> R:
        while self._stop.alive and len(self._pending) < self._max_in_flight:
            future: Future[Any] = self._threads[0].submit(next, self._items)
            for thread, stage in zip(self._threads[1:], self._stages, strict=True):
                future = thread.submit(_continue, stage, future, self._stopped)
            self._pending.append(future)
        try:
            if self._pending:
                return self._pending.popleft().result()
        except StopIteration:  # raised by the items
            self.close()
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the threads and waits for them; discards pending results."""
        self._stop()
        self._pending.clear()
        for thread in self._threads:
            thread.shutdown(wait=True)


def _continue(stage: PipelineStage, before: Future[Any], stopped: Event) -> Any:
    """Waits for the previous stage and applies this one; exceptions of the previous stage pass through."""
    item = before.result()
    if stopped.is_set():
        raise CancelledError
    return stage(item)


def _stop(threads: Iterable[ThreadPoolExecutor], stopped: Event) -> None:
    stopped.set()
    for thread in threads:
        thread.shutdown(wait=False, cancel_futures=True)
