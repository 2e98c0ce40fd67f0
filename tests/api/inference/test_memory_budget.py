"""What fits into memory, worked out by hand: of 1,600 bytes 100 are spare, 200 for bodies and 300 held."""

import pytest

from api.errors import RequestError
from api.inference.memory_budget import (
    BYTES_PER_PIXEL,
    MemoryBudget,
    MemoryFullError,
    PhotographMemory,
    Reservation,
)
from api.inference.network_cost import NetworkCost, Run, _cost_of_squares
from api.inspection.admission import AdmissionLimit, ByteLimit
from segdec.config import InputConfig
from segdec.errors import ConfigError

MIB = 2**20


def make_budget(limit: int = 1600, reserved: int = 300, **options: float) -> MemoryBudget:
    chosen = {"body_bytes": 200, "max_pixels": 10**6, "deadline_ms": 30_000, "retry_after_s": 7} | options
    budget = MemoryBudget(limit, **chosen)
    budget.held_bytes = reserved
    return budget


def make_place(budget: MemoryBudget, cost: NetworkCost, limit: int = 9, **config: object) -> Reservation:
    queue = AdmissionLimit(limit, "queue_full", "photographs", 7)
    return Reservation(queue, budget, cost, InputConfig.model_validate(config))


def test_what_is_left_for_photographs():
    assert make_budget().available_bytes == 1600 - 100 - 200 - 300
    assert make_budget(reserved=5000).available_bytes == 0


def test_largest_photograph_by_memory():
    # (1000 − 100) / (32 + 58) = 10 pixels
    largest = make_budget().largest(NetworkCost(base_bytes=100, bytes_per_pixel=58))
    assert (largest.pixels, largest.limited_by) == (10, "memory")


def test_batches_of_small_photographs_count_as_what_they_have_at_least():
    # A run takes 20 × 30 bytes, whatever comes: (1000 − 600) / 32 = 12.5 pixels
    cost = NetworkCost(bytes_per_pixel=30, min_pixels=20)
    assert make_budget().largest(cost).pixels == 12
    assert cost.bytes_for(5) == cost.bytes_for(20) == 600


def test_largest_photograph_by_time_and_by_the_setting():
    largest = make_budget(deadline_ms=1000).largest(NetworkCost(s_per_pixel=0.1))
    assert (largest.pixels, largest.limited_by) == (10, "deadline")
    largest = make_budget(max_pixels=20).largest(NetworkCost())
    assert (largest.pixels, largest.limited_by) == (20, "max_pixels")


def test_model_that_leaves_no_room_is_refused_when_it_is_loaded():
    cost = NetworkCost(base_bytes=1001)
    assert make_budget().largest(cost).pixels == 0
    with pytest.raises(ConfigError, match=r"is too little for this model.*--memory-bytes.*smaller input"):
        make_budget().check_room(cost, 64)
    make_budget().check_room(NetworkCost(), 20)


def test_network_counts_once_for_the_largest():
    budget = make_budget()
    budget.take(PhotographMemory(100, 500))
    budget.take(PhotographMemory(100, 700))
    assert budget.taken_bytes == 900
    budget.take(PhotographMemory(100, 200))
    with pytest.raises(MemoryFullError, match="3 photographs are waiting or running") as refused:
        budget.take(PhotographMemory(1, 0))
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "7"})
    budget.give_back(PhotographMemory(100, 700))
    budget.take(PhotographMemory(1, 0))
    assert budget.taken_bytes == 100 + 100 + 1 + 500


def test_photograph_that_fits_alone_is_taken_and_given_back():
    budget = make_budget(limit=16_000)
    place = make_place(budget, NetworkCost(bytes_per_pixel=10))
    with place:
        place.reserve_memory(2, 8, "The image")  # prepared to 8 × 8
        assert budget.taken_bytes == 64 * (BYTES_PER_PIXEL + 10)
    assert budget.taken_bytes == 0


def test_photograph_counts_as_it_is_prepared():
    budget = make_budget(limit=10**6)
    for config, pixels in (
        ({"policy": "native"}, 8 * 1000),
        ({"policy": "resize", "height": 64, "width": 64}, 64 * 64),
        ({"policy": "tile", "height": 96, "width": 96, "overlap_px": 8}, 96 * 1000),
    ):
        place = make_place(budget, NetworkCost(bytes_per_pixel=1), **config)
        if pixels * (BYTES_PER_PIXEL + 1) > budget.available_bytes:
            with pytest.raises(RequestError), place:
                place.reserve_memory(1, 1000, "The image")
            continue
        with place:
            place.reserve_memory(1, 1000, "The image")
            assert budget.taken_bytes == pixels * (BYTES_PER_PIXEL + 1)


def test_refusals_say_what_arrived_what_is_taken_and_why():
    budget = make_budget(limit=1600 * MIB, reserved=300 * MIB, body_bytes=200 * MIB, max_pixels=10**9)
    place = make_place(budget, NetworkCost(bytes_per_pixel=224))
    with pytest.raises(RequestError) as refused, place:
        place.reserve_memory(2048, 2056, "part.png")
    assert (refused.value.status, refused.value.code) == (413, "too_many_pixels_for_memory")
    assert "part.png has 2056 × 2048 = 4,210,688 pixels" in str(refused.value)
    assert "takes about 1,028 MiB of memory" in str(refused.value)
    assert "1,000 MiB for photographs, of 1,600 MiB" in str(refused.value)
    assert "at most 4,096,000 pixels" in str(refused.value)
    place = make_place(make_budget(limit=10**9, deadline_ms=1000), NetworkCost(s_per_pixel=1e-4))
    with pytest.raises(
        RequestError, match=r"takes 1\.7 s or more.*at most 10,000.*1 s of --deadline"
    ) as late:
        place.reserve_memory(100, 160, "part.png")
    assert (late.value.status, late.value.code) == (413, "too_many_pixels_for_deadline")


def test_what_was_left_by_smaller_ones_is_given_back_before_a_larger_one():
    budget = make_budget(limit=10**10)
    small, large = PhotographMemory(0, 3e8), PhotographMemory(0, 6e8)
    assert not budget.take(small)  # nothing is left by anything
    assert budget.take(large)
    assert not budget.take(large)
    budget.give_back(large)
    budget.give_back(large)
    budget.return_free()
    assert budget.kept_bytes == 3e8  # what is still there will be left as well


def test_cost_is_the_line_through_two_runs():
    runs = [Run(100, 1000, 1.0, 0.5), Run(300, 9000, 2.0, 1.0)]
    cost = _cost_of_squares(runs, batch_pixels=64, threads=2)
    assert cost == NetworkCost(0, 1.3 * 40, 1.0 / 200 / 2, 64)
    # What a run takes whatever comes counts for each pixel: of larger ones less is known.
    flat = _cost_of_squares([runs[1], Run(400, 8000, 1.0, 1.0)], 64, 1)
    assert flat == NetworkCost(1.3 * (9000 - 20 * 300), 1.3 * 20, 0, 64)
    unknown = _cost_of_squares([Run(100, None, 1, 1), Run(300, None, 2, 1)], 64, 1)
    assert unknown.bytes_per_pixel == 1500


def test_bodies_are_bounded_by_bytes():
    limit = ByteLimit(100, 7)
    with limit.reserve() as first, limit.reserve() as second:
        first.add(60)
        second.add(40)
        with pytest.raises(RequestError, match=r"take 100 bytes.*more than the 100") as refused:
            second.add(1)
        assert (refused.value.status, refused.value.code) == (503, "uploads_full")
    assert limit.reserved == 0
