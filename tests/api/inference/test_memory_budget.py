"""What fits into memory, worked out by hand: of 1,600 bytes 100 are spare, 200 for bodies, 300 in use."""

import pytest

from api.errors import RequestError
from api.inference.memory_budget import BYTES_PER_PIXEL, MemoryBudget, MemoryFullError, PhotographCost
from api.inference.network_cost import NetworkCost
from segdec.config import InputConfig
from segdec.errors import ConfigError

MIB = 2**20


def make_budget(limit: int = 1600, idle: int = 300, **options: float) -> MemoryBudget:
    chosen = {"body_bytes": 200, "max_pixels": 10**6, "retry_after_s": 7} | options
    budget = MemoryBudget(limit, **chosen)
    budget.idle_bytes = idle
    return budget


def test_memory_for_photographs():
    assert make_budget().available_bytes == 1600 - 100 - 200 - 300
    assert make_budget(idle=5000).available_bytes == 0


@pytest.mark.parametrize(
    ("options", "network", "largest"),
    [
        ({}, NetworkCost(base_bytes=100, bytes_per_pixel=58), (10, "memory")),  # (1000 − 100) / (32 + 58)
        ({}, NetworkCost(bytes_per_pixel=30, min_pixels=20), (12, "memory")),  # (1000 − 20 × 30) / 32
        ({}, NetworkCost(base_bytes=1001), (0, "memory")),
        ({"max_pixels": 20}, NetworkCost(), (20, "max_pixels")),
    ],
)
def test_largest_photograph(options, network, largest):
    assert make_budget(**options).largest(network) == largest


def test_model_that_leaves_no_memory_is_refused():
    with pytest.raises(ConfigError, match=r"is too small for this model.*--memory-bytes.*smaller input"):
        make_budget().check_model(NetworkCost(base_bytes=1001), 64)
    make_budget().check_model(NetworkCost(), 20)


def test_network_counts_once_for_the_largest():
    budget = make_budget()
    for cost in (PhotographCost(100, 500), PhotographCost(100, 700)):
        budget.reserve(cost)
    assert budget.reserved_bytes == 900
    assert budget.has_room(PhotographCost(100, 0)) and not budget.has_room(PhotographCost(101, 0))
    budget.reserve(PhotographCost(100, 200))
    with pytest.raises(MemoryFullError, match="3 photographs are waiting or running") as refused:
        budget.reserve(PhotographCost(1, 0))
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "7"})
    budget.release(PhotographCost(100, 700))
    budget.reserve(PhotographCost(1, 0))
    assert budget.reserved_bytes == 100 + 100 + 1 + 500


@pytest.mark.parametrize(
    ("config", "pixels"),
    [
        ({"policy": "native"}, 8 * 1000),
        ({"policy": "resize", "height": 64, "width": 64}, 64 * 64),
        ({"policy": "tile", "height": 96, "width": 96, "overlap_px": 8}, 96 * 1000),
    ],
)
def test_cost_is_that_of_the_prepared_photograph(config, pixels):
    network = NetworkCost(bytes_per_pixel=10)
    cost = PhotographCost.estimate(network, InputConfig.model_validate(config), 1, 1000)
    assert cost.total_bytes == pixels * (BYTES_PER_PIXEL + 10)


def test_refusal_says_what_arrived_and_what_is_available():
    budget = make_budget(1600 * MIB, 300 * MIB, body_bytes=200 * MIB, max_pixels=10**9)
    network = NetworkCost(bytes_per_pixel=224)
    with pytest.raises(RequestError) as refused:
        budget.check_size(PhotographCost(1028 * MIB, 0), network, "part.png has 2056 × 2048 pixels")
    assert (refused.value.status, refused.value.code) == (413, "too_many_pixels_for_memory")
    assert str(refused.value).startswith(
        "part.png has 2056 × 2048 pixels, which needs about 1,028 MiB of memory with this model; "
        "1,000 MiB of 1,600 MiB are for photographs. Expected at most 4,096,000 pixels."
    )


def test_free_memory_is_released_before_a_larger_photograph():
    budget = make_budget(limit=10**10)
    small, large = PhotographCost(0, 3e8), PhotographCost(0, 6e8)
    assert not budget.reserve(small)  # there is no free memory yet
    assert budget.reserve(large)
    assert not budget.reserve(large)
    budget.release(large)
    budget.release(large)
    budget.release_free()
    assert budget.largest_bytes == 3e8  # the small one is still in work
