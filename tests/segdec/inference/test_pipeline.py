import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from segdec.errors import ImageError
from segdec.inference.pipeline import Pipeline

PATIENCE_S = 60.0
"""A lock that should open at once fails the test after that time; no result depends on it."""


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("stage-")]


@pytest.fixture(autouse=True)
def none_left_behind() -> Iterator[None]:
    """Checks that no test leaves a thread running."""
    yield
    for thread in threads():
        thread.join(PATIENCE_S)
    assert threads() == []


def refuse_odd(number: int) -> int:
    if number % 2:
        raise ImageError(f"{number} is odd", code="odd")
    return number


def test_results_come_in_order_through_all_stages() -> None:
    with Pipeline[str](range(50), lambda number: number * number, str) as results:
        assert list(results) == [str(number * number) for number in range(50)]


def test_stages_run_in_parallel() -> None:
    meeting = threading.Barrier(3)  # passed only when three threads are in it at once

    def meet(at: int, number: int) -> int:
        if number == at:
            meeting.wait(PATIENCE_S)
        return number

    stages = [lambda number, at=at: meet(at, number) for at in (2, 1, 0)]
    with Pipeline[int](range(3), *stages) as results:
        assert list(results) == [0, 1, 2]


@pytest.mark.parametrize("max_in_flight", [1, 2, 5])
def test_items_in_flight_are_limited(max_in_flight: int) -> None:
    taken: list[int] = []
    all_taken = threading.Event()

    def items() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            if len(taken) == max_in_flight + 1:
                all_taken.set()
            yield number

    with Pipeline[int](items(), refuse_odd, max_in_flight=max_in_flight) as results:
        assert next(results) == 0
        assert len(taken) <= max_in_flight
        with pytest.raises(ImageError):  # the caller's second step lets one more in
            next(results)
        assert all_taken.wait(PATIENCE_S)
        assert len(taken) == max_in_flight + 1


def test_error_is_raised_at_its_position() -> None:
    found: list[object] = []
    with Pipeline[int](range(5), refuse_odd, lambda number: 10 * number) as results:
        while len(found) < 5:
            try:
                found.append(next(results))
            except ImageError as error:
                found.append(str(error))
        assert list(results) == []
    assert found == [0, "1 is odd", 20, "3 is odd", 40]


def test_leaving_the_block_early_stops_the_threads() -> None:
    with pytest.raises(KeyboardInterrupt), Pipeline[str](itertools.count(), str) as results:
        next(results)
        raise KeyboardInterrupt
    assert threads() == []
    assert list(results) == []


def test_stopped_threads_begin_nothing_new() -> None:
    entered, gate, later = threading.Event(), threading.Event(), []

    def wait(number: int) -> int:
        if number == 1:
            entered.set()
            assert gate.wait(PATIENCE_S)
        return number

    results = Pipeline[int](itertools.count(), wait, later.append, max_in_flight=9)
    assert next(results) is None
    assert entered.wait(PATIENCE_S)
    del results
    gate.set()
    for thread in threads():
        thread.join(PATIENCE_S)
    assert later == [0]


def test_process_ends_without_close() -> None:
    code = (
        "import itertools; from segdec.inference.pipeline import Pipeline\n"
        "results = Pipeline(itertools.count(), str); print(next(results), next(results))"
    )
    command, root = [sys.executable, "-c", code], Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 1\n", "")
