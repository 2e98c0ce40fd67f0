import pytest

from api.routes.rate_limit import RateLimiter


class Clock:
    """A clock that goes on when told to, seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_burst_passes_at_once_and_then_the_rate(clock):
    limiter = RateLimiter(rate=2.0, burst=3, clock=clock)
    assert [limiter.take_token("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.take_token("a") == pytest.approx(0.5)
    clock.now += 0.4
    assert limiter.take_token("a") == pytest.approx(0.1)
    clock.now += 0.1
    assert limiter.take_token("a") == 0
    assert limiter.take_token("a") == pytest.approx(0.5)
    clock.now += 1.0
    assert [limiter.take_token("a") > 0 for _ in range(3)] == [False, False, True]


def test_rate_below_one_a_second_is_kept(clock):
    limiter = RateLimiter(rate=0.5, burst=1, clock=clock)
    passed = 0
    for _ in range(100):
        passed += limiter.take_token("a") == 0
        clock.now += 0.25
    assert passed == 13  # at 0 s, 2 s, … 24 s of 24.75 s


def test_bucket_is_never_fuller_than_the_burst(clock):
    limiter = RateLimiter(rate=10.0, burst=4, clock=clock)
    clock.now += 3600
    assert sum(limiter.take_token("a") == 0 for _ in range(50)) == 4


def test_clients_have_buckets_of_their_own(clock):
    limiter = RateLimiter(rate=1.0, burst=1, clock=clock)
    assert [limiter.take_token(client) for client in "ab"] == [0, 0]
    assert [limiter.take_token(client) for client in "ab"] == pytest.approx([1, 1])


def test_quiet_clients_are_forgotten(clock):
    limiter = RateLimiter(rate=10.0, burst=5, clock=clock)
    for number in range(1000):
        limiter.take_token(f"address {number}")
        clock.now += 0.01
    assert len(limiter) <= 11  # those of the last 0.1 s, the time in which one token comes back
    clock.now += 1
    limiter.take_token("last")
    assert len(limiter) == 1


def test_memory_is_bounded_for_any_number_of_clients(clock, monkeypatch):
    monkeypatch.setattr("api.routes.rate_limit.MAX_CLIENTS", 100)
    limiter = RateLimiter(rate=0.001, burst=1, clock=clock)
    for number in range(1000):
        assert limiter.take_token(f"address {number}") == 0
    assert len(limiter) == 100
    assert limiter.take_token("address 999") > 0
