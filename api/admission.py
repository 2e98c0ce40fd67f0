"""A bounded number of places: what finds none is refused at once instead of waiting without end."""

from collections.abc import Iterator
from contextlib import contextmanager

from api.errors import busy


class Places:
    """Places for requests; only the event loop's thread may take them.

    Args:
        most: Number of places.
        code: Of the refusal.
        what: What takes a place, in words, for example `photographs are waiting or running`.
        retry_after_s: Seconds that a refused client is asked to wait.
    """

    def __init__(self, most: int, code: str, what: str, retry_after_s: int) -> None:
        self.most = most
        self.code = code
        self.what = what
        self.retry_after_s = retry_after_s
        self.taken = 0

    def check(self) -> None:
        """Refuses while every place is taken.

        Raises:
            RequestError: 503 with Retry-After.
        """
        if self.taken >= self.most:
            raise busy(
                self.code,
                f"{self.taken} {self.what}, the most this service takes. Retry later.",
                self.retry_after_s,
            )

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Holds a place.

        Raises:
            RequestError: 503 with Retry-After, if every place is taken.
        """
        self.check()
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
