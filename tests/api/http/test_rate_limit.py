from unittest.mock import Mock

import pytest

from api.http.rate_limit import RateLimiter


@pytest.fixture
def clock():
    """Returns its `return_value`, seconds."""
    return Mock(return_value=1000.0)


def test_burst_and_then_the_rate(clock):
    limiter = RateLimiter(rate=2.0, burst=3, clock=clock)
    assert [limiter.take_token("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.take_token("a") == pytest.approx(0.5)
    clock.return_value += 0.4
    assert limiter.take_token("a") == pytest.approx(0.1)
    clock.return_value += 0.1
    assert limiter.take_token("a") == 0
    assert limiter.take_token("a") == pytest.approx(0.5)
    clock.return_value += 1.0
    assert [limiter.take_token("a") > 0 for _ in range(3)] == [False, False, True]


def test_idle_clients_are_removed(clock):
    limiter = RateLimiter(rate=10.0, burst=5, clock=clock)
    for number in range(1000):
        limiter.take_token(f"address {number}")
        clock.return_value += 0.01
    assert len(limiter) <= 11  # those of the last 0.1 s, the time in which one token comes back
    clock.return_value += 1
    limiter.take_token("last")
    assert len(limiter) == 1


def test_memory_is_bounded_for_any_number_of_clients(clock, monkeypatch):
    monkeypatch.setattr("api.http.rate_limit.MAX_CLIENTS", 100)
    limiter = RateLimiter(rate=0.001, burst=1, clock=clock)
    for number in range(1000):
        assert limiter.take_token(f"address {number}") == 0
    assert len(limiter) == 100
    assert limiter.take_token("address 999") > 0
