"""Durations of the parts of a command, with a clock that the test sets."""

import pytest

from training.part_durations import PartDurations


@pytest.fixture
def clock():
    times = iter([0.0, 10.0, 30.0, 35.0, 40.0, 100.0])
    return lambda: next(times)


def test_time_in_an_inner_part_counts_once(clock):
    durations = PartDurations(clock)
    with durations.measure("training"), durations.measure("encoding"):
        pass
    with pytest.raises(ValueError, match="broken"), durations.measure("encoding"):
        raise ValueError("broken")
    assert durations.seconds == {"training": 10.0 + 5.0, "encoding": 20.0 + 60.0}


def test_the_parts_of_a_command_are_listed_from_the_longest(clock):
    durations = PartDurations(clock)
    with durations.measure("files"):
        pass
    with durations.measure("steps"):
        pass
    assert durations.describe(40.0) == "parts       other 25.0 s, files 10.0 s, steps 5.0 s"
