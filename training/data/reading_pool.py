"""Threads that read ahead, in order and with a limit, for training and validation."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class ReadingPool:
    """A fixed number of threads; they end when the pool is no longer referenced.

    tf.data's own threads are not used: with op determinism, which is enabled on GPUs, tf.data calls Python
    functions one by one and prefetches nothing.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="read")

    def map(
        self, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
    ) -> Generator[Result, None, None]:
        """Yields `work` of each item, in order; at most `ahead` are in progress or wait to be requested.

        An exception of `work` is raised at its position and ends the iterator. Closing or deleting the
        iterator waits for the items in progress and cancels the rest.
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
