"""Threads that read ahead: in order, no further than asked, for training and validation alike."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class ReadingPool:
    """A fixed number of threads; they end when nothing refers to the pool any more.

    They are no threads of tf.data: with op determinism, which is on where there is a GPU, tf.data calls
    whatever is written in Python one by one, and fetches nothing ahead.

    Args:
        threads: How many work at a time.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="read")

    def map(
        self, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
    ) -> Generator[Result, None, None]:
        """Yields `work` of each item, in the order of the items.

        What `work` raises is raised in its place, and ends the whole. Whoever stops early closes the
        iterator, or drops it: that waits for what is being worked on, and the rest is never begun.

        Args:
            work: Is called in the threads.
            items: Are taken one by one, when there is room for another.
            ahead: Most items that are being worked on, or done and not yet asked for; at least 1.
        """
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(self._executor.submit(work, item))
                if len(pending) >= ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            wait([future for future in pending if not future.cancel()])
