"""Order, bound, errors and the end of reading ahead; nothing here waits for a time to pass."""

import threading

import pytest

from segdec.errors import DatasetError
from training.data import reading_pool
from training.data.reading_pool import ReadingPool

PATIENCE_S = 60.0


@pytest.mark.parametrize("ahead", [1, 3])
def test_results_are_in_order_and_the_number_of_items_ahead_is_limited(ahead):
    taken, later = [], threading.Event()

    def work(item):
        if item == 1:
            later.set()
        assert item != 0 or ahead == 1 or later.wait(PATIENCE_S)  # a later one is done first
        return item

    results = ReadingPool(2).map(work, (taken.append(i) or i for i in range(20)), ahead)
    for number in range(20):
        assert next(results) == number
        assert len(taken) == min(number + ahead, 20)
    assert next(results, None) is None


def test_an_error_is_raised_at_its_position_and_ends_the_iterator():
    def work(item):
        if item == 2:
            raise DatasetError("parts/0002.png is cut off")
        return item

    results = ReadingPool(2).map(work, range(9), 4)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(DatasetError, match=r"parts/0002\.png"):
        next(results)
    assert next(results, None) is None


@pytest.mark.parametrize("end", ["close", "drop"])
def test_closing_waits_for_items_in_progress(monkeypatch, end):
    begun, done, gate = [], [], threading.Event()
    waits = reading_pool.wait
    monkeypatch.setattr(reading_pool, "wait", lambda futures: gate.set() or waits(futures))

    def work(item):
        begun.append(item)
        assert item == 0 or gate.wait(PATIENCE_S)
        done.append(item)

    pool = ReadingPool(1)
    results = pool.map(work, range(9), 6)
    next(results)
    if end == "close":
        results.close()
    del results
    assert begun == done
    assert list(pool.map(lambda item: item, "ab", 2)) == ["a", "b"]
    assert begun in ([0], [0, 1])
