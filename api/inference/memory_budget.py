"""What fits into memory: the largest photograph, and which ones may be worked on at the same time.

The limit is that of the container or the machine, or `--memory-bytes`. From it go what the process holds once
its models are loaded, what is kept for bodies, and a spare share for what is not counted; the rest is for
photographs: what each one takes itself, and what the network takes for the largest of them.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from api.errors import RequestError, service_unavailable
from api.inference.network_cost import NetworkCost
from api.inspection.admission import AdmissionLimit
from segdec.config import InputConfig
from segdec.errors import ConfigError
from segdec.inference.preprocessing import input_size
from segdec.process_memory import release_free_memory, resident_bytes

BYTES_PER_PIXEL = 32
"""Of a photograph, outside of the network: while it is decoded, waits and becomes an answer. The maximum of
all kinds of files and masks."""

SPARE = 1 / 16
"""Share of the limit."""

KEPT_BYTES = 256 * 2**20
"""What photographs took and was kept for the next ones up to this is not worth giving back."""

MEBI = 2**20


@dataclass(frozen=True)
class PhotographMemory:
    """What one photograph takes: its own bytes, and those of the network while that runs it."""

    own_bytes: float
    network_bytes: float

    @property
    def total(self) -> float:
        """Both."""
        return self.own_bytes + self.network_bytes


@dataclass(frozen=True)
class LargestPhotograph:
    """Height × width of the largest photograph that is taken, and which limit it comes from."""

    pixels: int
    limited_by: str


class MemoryBudget:
    """Bounds the photographs that are decoded, wait or run by the memory that they take together.

    One photograph is inferred at a time, or a batch of small ones: so the network counts once, for the
    largest of those admitted. Any thread may use it.

    Args:
        limit_bytes: That the process may take.
        body_bytes: Kept for bodies.
        max_pixels: Limit on height × width, whatever the memory.
        deadline_ms: Milliseconds after which nobody waits for an answer.
        retry_after_s: Seconds that a refused client is asked to wait.

    Attributes:
        held_bytes: What the process takes while it does nothing; set when its models are loaded.
        kept_bytes: The most that a photograph took since free memory was given back.
    """

    def __init__(
        self, limit_bytes: int, body_bytes: int, max_pixels: int, deadline_ms: float, retry_after_s: int
    ) -> None:
        self.limit_bytes = limit_bytes
        self.body_bytes = body_bytes
        self.max_pixels = max_pixels
        self.deadline_s = deadline_ms / 1000
        self.retry_after_s = retry_after_s
        self.held_bytes = 0
        self.kept_bytes = 0.0
        self._lock = threading.Lock()
        self._admitted: list[PhotographMemory] = []

    @property
    def available_bytes(self) -> float:
        """What photographs may take together."""
        return max(self.limit_bytes * (1 - SPARE) - self.body_bytes - self.held_bytes, 0.0)

    @property
    def taken_bytes(self) -> float:
        """What the admitted photographs may take together, the network included."""
        return _together(self._admitted)

    def largest(self, cost: NetworkCost) -> LargestPhotograph:
        """Finds the largest photograph that a network of this `cost` can be given; 0 pixels if none fits."""
        room = self.available_bytes - cost.base_bytes
        by_memory = room / (BYTES_PER_PIXEL + cost.bytes_per_pixel)
        if by_memory < cost.min_pixels:  # the network takes what a batch of them does, whatever comes
            by_memory = (room - cost.bytes_per_pixel * cost.min_pixels) / BYTES_PER_PIXEL
        by_time = self.deadline_s / cost.s_per_pixel if cost.s_per_pixel else float("inf")
        limits = {"max_pixels": self.max_pixels, "memory": by_memory, "deadline": by_time}
        limited_by = min(limits, key=lambda name: limits[name])
        return LargestPhotograph(max(int(limits[limited_by]), 0), limited_by)

    def measure_idle(self) -> None:
        """Notes what the process takes now; for the inference thread, on which no network runs meanwhile."""
        self.return_free()
        self.held_bytes = resident_bytes() or 0

    def return_free(self) -> None:
        """Gives free memory back to the system; for the inference thread as well."""
        with self._lock:
            self.kept_bytes = max((share.total for share in self._admitted), default=0.0)
        release_free_memory()

    def check_room(self, cost: NetworkCost, pixels: int) -> None:
        """Refuses a model that could not be given a photograph of as many `pixels`.

        Raises:
            ConfigError: If there is not enough memory.
        """
        largest = self.largest(cost)
        if largest.limited_by == "memory" and largest.pixels < pixels:
            raise ConfigError(
                f"The memory of {_mib(self.limit_bytes)} is too little for this model: the process holds "
                f"{_mib(self.held_bytes)}, {_mib(self.body_bytes)} are kept for bodies, and a photograph of "
                f"{pixels:,} pixels takes {_mib(BYTES_PER_PIXEL * pixels + cost.bytes_for(pixels))}. Raise "
                "the container's limit (or --memory-bytes), lower --max-upload-bytes, --max-body-bytes and "
                "--batch-pixels, or export the model with a smaller input."
            )

    def take(self, share: PhotographMemory) -> bool:
        """Admits a photograph until `give_back`.

        Returns:
            Whether what smaller ones left is to be given back first: free, but in pieces too small for it.

        Raises:
            MemoryFullError: 503 with Retry-After, if it does not fit beside those that are admitted.
        """
        with self._lock:
            if self._admitted and _together([*self._admitted, share]) > self.available_bytes:
                raise MemoryFullError(len(self._admitted), self.retry_after_s)
            self._admitted.append(share)
            grows = KEPT_BYTES < share.total > self.kept_bytes > 0
            self.kept_bytes = max(self.kept_bytes, share.total)
        return grows

    def has_room(self, share: PhotographMemory) -> bool:
        """Returns whether there is room now for a photograph that nobody waits for, beside those admitted.

        It is not counted, so that no other one is refused for it: it is to begin at once and to end soon.
        """
        with self._lock:
            fits = _together([*self._admitted, share]) <= self.available_bytes
            if fits:
                self.kept_bytes = max(self.kept_bytes, share.total)
        return fits

    def give_back(self, share: PhotographMemory) -> None:
        """Forgets a photograph that was admitted."""
        with self._lock:
            self._admitted.remove(share)


class MemoryFullError(RequestError):
    """A photograph that does not fit beside those that are worked on; it would fit alone."""

    def __init__(self, others: int, retry_after_s: int) -> None:
        refusal = service_unavailable(
            "queue_full",
            f"{others} photographs are waiting or running, and with this one they would take more memory "
            "than there is. Retry later, or send smaller ones.",
            retry_after_s,
        )
        super().__init__(refusal.status, refusal.code, str(refusal), refusal.headers)


class Reservation:
    """A photograph's place among those that are worked on, while the block is entered.

    Args:
        queue: Bounds their number.
        budget: Bounds their memory.
        cost: What the network takes that shall run this one.
        config: How this one is prepared for it.

    Attributes:
        grows: Whether free memory is to be given back before the network runs.
    """

    def __init__(
        self, queue: AdmissionLimit, budget: MemoryBudget, cost: NetworkCost, config: InputConfig
    ) -> None:
        self._queue = queue
        self._budget = budget
        self._cost = cost
        self._config = config
        self._share: PhotographMemory | None = None
        self.grows = False

    def __enter__(self) -> Self:
        """Counts it.

        Raises:
            RequestError: 503 with Retry-After, if as many are admitted as may be.
        """
        self._queue.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._share is not None:
            self._budget.give_back(self._share)
        self._queue.__exit__(*failure)

    def reserve_memory(self, height: int, width: int, name: str) -> None:
        """Takes the memory of the photograph, once its size is known and before it is decoded; in any thread.

        Args:
            height: Of the photograph, px.
            width: Of the photograph, px.
            name: What error messages call it.

        Raises:
            RequestError: 413 if it does not fit alone, or cannot be answered before its deadline.
            MemoryFullError: If it does not fit beside the others.
        """
        prepared = prod(input_size(self._config, height, width))
        share = PhotographMemory(
            BYTES_PER_PIXEL * max(height * width, prepared), self._cost.bytes_for(prepared)
        )
        arrived = f"{name} has {width} × {height} = {width * height:,} pixels"
        if share.total > self._budget.available_bytes:
            raise RequestError(413, "too_many_pixels_for_memory", self._explain_memory(arrived, share))
        if prepared * self._cost.s_per_pixel > self._budget.deadline_s:
            raise RequestError(
                413,
                "too_many_pixels_for_deadline",
                f"{arrived}, for which the network takes {prepared * self._cost.s_per_pixel:.1f} s or more. "
                f"Expected at most {self._budget.largest(self._cost).pixels:,}, which is what it does in the "
                f"{self._budget.deadline_s:g} s of --deadline-ms. Crop or shrink it, allow more time, or "
                "serve a model with a faster engine or a fixed input size.",
            )
        self.grows = self._budget.take(share)
        self._share = share

    def _explain_memory(self, arrived: str, share: PhotographMemory) -> str:
        budget = self._budget
        largest = budget.largest(self._cost)
        return (
            f"{arrived}, which takes about {_mib(share.total)} of memory with this model; there are "
            f"{_mib(budget.available_bytes)} for photographs, of {_mib(budget.limit_bytes)} for the service. "
            f"Expected at most {largest.pixels:,} pixels. Crop or shrink it, give the service more memory, "
            "or serve a model whose input has a fixed size or is cut into tiles."
        )


def _together(shares: Sequence[PhotographMemory]) -> float:
    return sum(share.own_bytes for share in shares) + max(
        (share.network_bytes for share in shares), default=0.0
    )


def _mib(count: float) -> str:
    return f"{count / MEBI:,.0f} MiB"
