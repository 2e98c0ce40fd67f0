"""Which photographs fit into memory: alone, and at the same time as others.

The limit is that of the container or the machine, or `--memory-bytes`. The process with its loaded models,
the request bodies and a spare share are subtracted. The rest is for photographs: the memory of each one
outside of the network, and the memory of the network for the largest one.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from api.errors import RequestError
from api.inference.network_cost import NetworkCost
from segdec.config import InputConfig
from segdec.errors import ConfigError
from segdec.inference.preprocessing import input_size
from segdec.process_memory import release_free_memory, resident_bytes

BYTES_PER_PIXEL = 32
"""Memory of a photograph without the network, while it is decoded, waits or is encoded. The measured maximum
of all file types and mask forms is 25.
"""
PLAN_BYTES_PER_PIXEL, PLAN_BYTES = 48, 16 * 2**20
"""Further memory while an inspection plan judges a photograph. Masks of noise take up to 120 MB more, for
their centre lines.
"""
SPARE_SHARE = 1 / 16
"""Share of the limit that is reserved for memory that is not counted."""
MIN_RELEASE_BYTES = 256 * 2**20
"""Minimum amount to release; smaller amounts are left for the next photographs."""


@dataclass(frozen=True)
class PhotographCost:
    """Memory that one photograph takes outside of the network (`own_bytes`) and in it (`network_bytes`)."""

    own_bytes: float
    network_bytes: float

    @classmethod
    def estimate(
        cls, network: NetworkCost, config: InputConfig, height: int, width: int, *, has_plan: bool = False
    ) -> "PhotographCost":
        """Returns the cost of a photograph of height × width px for `network`, whose input is `config`.

        `has_plan`: whether an inspection plan judges it.
        """
        prepared = prod(input_size(config, height, width))
        plan_bytes = PLAN_BYTES_PER_PIXEL * height * width + PLAN_BYTES if has_plan else 0
        own_bytes = BYTES_PER_PIXEL * max(height * width, prepared) + plan_bytes
        return cls(own_bytes, network.bytes_for(prepared))

    @property
    def total_bytes(self) -> float:
        """Own memory and that of the network."""
        return self.own_bytes + self.network_bytes


class LargestPhotograph(NamedTuple):
    """Height × width of the largest accepted photograph, and the limit that it comes from."""

    pixels: int
    limited_by: str


class MemoryFullError(RequestError):
    """A photograph that fits alone, but not at the same time as others."""


class MemoryBudget:
    """Limits the memory of all photographs that are being processed. Any thread may use it.

    Only one batch runs at a time, so the memory of the network is counted once, for the largest admitted
    photograph.

    Args:
        limit_bytes: Maximum of the process.
        body_bytes: Part of it for request bodies.
        max_pixels: Maximum of height × width, whatever the memory.

    Attributes:
        idle_bytes: What the process uses without photographs; measured after its models are loaded.
        largest_bytes: Memory of the largest photograph since free memory was last returned to the system.
    """

    def __init__(self, limit_bytes: int, body_bytes: int, max_pixels: int, retry_after_s: int) -> None:
        self.limit_bytes = limit_bytes
        self.body_bytes = body_bytes
        self.max_pixels = max_pixels
        self.retry_after_s = retry_after_s
        self.idle_bytes = 0
        self.largest_bytes = 0.0
        self._lock = threading.Lock()
        self._admitted: list[PhotographCost] = []

    @property
    def available_bytes(self) -> float:
        """Memory for all photographs."""
        return max(self.limit_bytes * (1 - SPARE_SHARE) - self.body_bytes - self.idle_bytes, 0.0)

    @property
    def reserved_bytes(self) -> float:
        """Memory of the admitted photographs, the network included."""
        return _total(self._admitted)

    def largest(self, network: NetworkCost, *, has_plan: bool = False) -> LargestPhotograph:
        """Returns the largest photograph that this network can take; 0 pixels if none fits.

        `has_plan`: whether an inspection plan judges it.
        """
        per_pixel = BYTES_PER_PIXEL + (PLAN_BYTES_PER_PIXEL if has_plan else 0)
        free = self.available_bytes - network.base_bytes - (PLAN_BYTES if has_plan else 0)
        pixels = min(
            free / (per_pixel + network.bytes_per_pixel),
            (free - network.bytes_per_pixel * network.min_pixels) / per_pixel,
        )
        if pixels >= self.max_pixels:
            return LargestPhotograph(self.max_pixels, "max_pixels")
        return LargestPhotograph(max(int(pixels), 0), "memory")

    def measure_idle(self) -> None:
        """Measures what the process uses now. Call it in the inference thread, so that no network runs."""
        self.release_free()
        self.idle_bytes = resident_bytes() or 0

    def release_free(self) -> None:
        """Returns free memory to the system. Call it in the inference thread."""
        with self._lock:
            self.largest_bytes = max((cost.total_bytes for cost in self._admitted), default=0.0)
        release_free_memory()

    def check_model(self, network: NetworkCost, pixels: int) -> None:
        """Checks that a model can take a photograph of `pixels`.

        Raises:
            ConfigError: If the memory is too small.
        """
        largest = self.largest(network)
        if largest.limited_by == "memory" and largest.pixels < pixels:
            needed = BYTES_PER_PIXEL * pixels + network.bytes_for(pixels)
            raise ConfigError(
                f"The memory of {_mib(self.limit_bytes)} is too small for this model: the process uses "
                f"{_mib(self.idle_bytes)}, {_mib(self.body_bytes)} are for request bodies, and a photograph "
                f"of {pixels:,} pixels needs {_mib(needed)}. Raise the container's limit (or "
                "--memory-bytes), lower --max-upload-bytes, --max-body-bytes and --batch-pixels, or export "
                "the model with a smaller input."
            )

    def check_size(
        self, cost: PhotographCost, network: NetworkCost, photograph: str, *, has_plan: bool = False
    ) -> None:
        """Checks that a photograph fits alone; `photograph` is its name and size, for the message.

        Raises:
            RequestError: 413.
        """
        if cost.total_bytes > self.available_bytes:
            largest = self.largest(network, has_plan=has_plan)
            detail = (
                f"{photograph}, which needs about {_mib(cost.total_bytes)} of memory with this model; "
                f"{_mib(self.available_bytes)} of {_mib(self.limit_bytes)} are for photographs. Expected at "
                f"most {largest.pixels:,} pixels. Crop or shrink the photograph, raise the "
                "limit, or serve a model whose input has a fixed size or is cut into tiles."
            )
            raise RequestError(413, "too_many_pixels_for_memory", detail)

    def reserve(self, cost: PhotographCost) -> bool:
        """Reserves the memory of a photograph until `release`.

        Returns:
            Whether the caller must first release free memory to the system, because it is fragmented.

        Raises:
            MemoryFullError: 503 with Retry-After, if it does not fit at the same time as the others.
        """
        with self._lock:
            if self._admitted and not self.has_room(cost):
                raise MemoryFullError(
                    503,
                    "queue_full",
                    f"{len(self._admitted)} photographs are waiting or running, and the memory is too small "
                    "for another one of this size. Retry later, or send smaller photographs.",
                    {"Retry-After": str(self.retry_after_s)},
                )
            self._admitted.append(cost)
            grows = MIN_RELEASE_BYTES < cost.total_bytes > self.largest_bytes > 0
            self.largest_bytes = max(self.largest_bytes, cost.total_bytes)
        return grows

    def release(self, cost: PhotographCost) -> None:
        """Ends a reservation."""
        with self._lock:
            self._admitted.remove(cost)

    def has_room(self, cost: PhotographCost) -> bool:
        """Returns whether a photograph fits at the same time as the others; reserves nothing."""
        return _total([*self._admitted, cost]) <= self.available_bytes


def _total(costs: Sequence[PhotographCost]) -> float:
    """Returns the memory of all photographs, and of the network for the largest."""
    return sum(c.own_bytes for c in costs) + max((c.network_bytes for c in costs), default=0.0)


def _mib(count: float) -> str:
    return f"{count / 2**20:,.0f} MiB"
