"""Overlaps the steps of a work: each has a thread of its own, so that the slowest one sets the pace."""

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import Any, Self, TypeVar

R = TypeVar("R")
Stage = Callable[[Any], Any]


class Pipeline(Iterator[R]):
    """What `stages` make of `items`, in their order.

    Every stage has a thread of its own and gets what the one before it returned; a further thread takes the
    items out of their iterable. A thread has one item at a time, in their order, so a stage may keep state.

    `next` raises the exception of an item in that item's place, whether a stage raised it or the iterable,
    and may be called again for the item after it; a `for` loop ends there. (A generator that raised has
    ended; `map` goes on.) Closing, leaving the `with` block or dropping the last reference stops the
    threads, each after the call that it is in; closing also waits for them.

    Args:
        items: What to work on, perhaps without end; taken as needed, from the first `next` on.
        stages: Functions of one argument.
        max_in_flight: Most items that are under way, from being taken to being returned, which bounds the
            memory; None for two more than there are stages: one for each thread and one that waits.

    Raises:
        ValueError: If `max_in_flight` is below 1.

    Example:
        >>> with Pipeline(paths, read_image, measure) as results:
        ...     for result in results:
        ...         print(result)
    """

    def __init__(self, items: Iterable[Any], *stages: Stage, max_in_flight: int | None = None) -> None:
        if max_in_flight is not None and max_in_flight < 1:
            raise ValueError(f"ahead={max_in_flight}. Expected at least 1.")
        self._items = iter(items)
        self._stages = stages
        self._ahead = max_in_flight or len(stages) + 2
        self._under_way: deque[Future[R]] = deque()
        self._threads = [ThreadPoolExecutor(1, f"stage-{number}") for number in range(len(stages) + 1)]
        self._stopped = Event()
        self._stop = weakref.finalize(self, _stop, self._threads, self._stopped)  # threads know no pipeline

    def __next__(self) -> R:
        while self._stop.alive and len(self._under_way) < self._ahead:
            self._under_way.append(self._start())
        try:
            if self._under_way:
                return self._under_way.popleft().result()
        except StopIteration:  # of the items
            self.close()
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops the threads and waits for them; nothing is left to come."""
        self._stop()
        self._under_way.clear()
        for thread in self._threads:
            thread.shutdown(wait=True)

    def _start(self) -> Future[Any]:
        """Sends the next item on its way."""
        future = self._threads[0].submit(next, self._items)
        for thread, stage in zip(self._threads[1:], self._stages, strict=True):
            future = thread.submit(_continue, stage, future, self._stopped)
        return future


def _continue(stage: Stage, before: Future[Any], stopped: Event) -> Any:
    """Waits for the stage before, whose exception passes this one by."""
    item = before.result()
    if stopped.is_set():
        raise CancelledError
    return stage(item)


def _stop(threads: Iterable[ThreadPoolExecutor], stopped: Event) -> None:
    stopped.set()
    for thread in threads:
        thread.shutdown(wait=False, cancel_futures=True)
