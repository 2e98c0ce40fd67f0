"""Trainings on machines of different speeds, with a fake clock."""

import pytest

from training.fit.time_control import (
    BUILDING_S,
    CACHED_STEP_COST,
    DRAWING_COST,
    MAX_STEPS,
    MIN_STEPS,
    STEP_COST,
    TimeControl,
    largest_area_in_time,
    minutes_for_steps,
    needed_s,
    planned_steps,
    reserved_s,
    validation_interval,
)
from training.schedule_control import ScheduleState

STEPS = {"segment": 60, "decision": 20, "joint": 20}
LIMIT_S = 100.0


class Machine:
    """Trains `STEPS` with `step_s(time)` seconds per step; `ends` has the time at the end of each stage."""

    def __init__(self, step_s, limit_s=LIMIT_S, min_steps=1):
        self.now, self._step_s, self.ends, self.positions = 0.0, step_s, {}, {}
        self.control = TimeControl(STEPS, limit_s, lambda: self.now, min_steps)

    def train(self, first=0, stages=tuple(STEPS)):
        for stage in stages:
            steps, positions = STEPS[stage], [first]
            self.control.begin_stage(stage, steps)
            for step in range(first + 1, self.control.max_steps(steps) + 1):
                self.now += self._step_s(self.now)
                last = self.control.is_last(step)
                self.control.step_done(step)
                positions.append(step + self.control.schedule_offset)
                if last:
                    break
                assert step < self.control.expected_steps <= steps
            assert positions == sorted(positions)
            assert positions[-1] == steps  # the learning rate is at its end
            self.ends[stage], self.positions[stage], first = self.now, positions, 0
        return self.control.taken


def test_a_fast_machine_takes_all_steps_at_their_own_positions():
    machine = Machine(lambda _: 0.5)
    assert machine.train() == STEPS
    assert machine.now == 50.0
    assert machine.positions["segment"] == list(range(61))


@pytest.mark.parametrize("step_s", [1.5, 4.0, 7.0])
def test_a_slow_machine_ends_on_time_with_the_schedule_at_its_end(step_s):
    machine = Machine(lambda _: step_s)
    taken = machine.train()
    assert LIMIT_S <= machine.now <= LIMIT_S + step_s
    assert sum(taken.values()) == machine.now / step_s
    assert machine.ends["segment"] == pytest.approx(60, abs=step_s)
    assert machine.ends["decision"] == pytest.approx(80, abs=step_s)


def test_a_pause_shortens_the_later_stages_in_proportion():
    machine = Machine(lambda now: 61.0 if 29 <= now < 30 else 1.0)
    assert machine.train() == {"segment": 30, "decision": 5, "joint": 5}
    assert machine.ends == {"segment": 90.0, "decision": 95.0, "joint": 100.0}


def test_a_slow_start_is_compensated():
    machine = Machine(lambda now: 20.0 if now == 0 else 0.5)
    assert machine.train() == STEPS
    assert machine.now == 69.5


def test_each_stage_takes_a_step_when_the_time_is_over():
    machine = Machine(lambda _: 1.0, limit_s=-5.0)
    assert machine.train() == {"segment": 1, "decision": 1, "joint": 1}


def test_a_minimum_of_steps_is_taken_when_the_time_is_over():
    """Its schedules advance evenly; a stage of fewer steps takes all."""
    machine = Machine(lambda _: 1.0, limit_s=-5.0, min_steps=30)
    assert machine.train() == {"segment": 30, "decision": 20, "joint": 20}
    assert machine.positions["segment"] == list(range(0, 61, 2))


def test_a_minimum_of_steps_changes_nothing_if_there_is_time():
    machine = Machine(lambda _: 2.0, min_steps=5)
    assert machine.train() == {"segment": 30, "decision": 10, "joint": 10}


def test_the_duration_of_a_step_is_measured_without_the_first_one_and_validations():
    machine = Machine(lambda now: 20.0 if now == 0 else 0.5)
    assert machine.control.step_s is None
    machine.control.begin_stage("segment", 60)
    for step, validation_s in ((1, 0.0), (2, 30.0), (3, 0.0)):
        machine.now += 20.0 if step == 1 else 0.5
        machine.control.is_last(step)
        machine.now += validation_s
        machine.control.step_done(step)
        assert machine.control.step_s == (None if step == 1 else 0.5)


def test_a_resumed_stage_keeps_its_position_and_the_later_stages_share_the_time():
    machine = Machine(lambda _: 2.0)
    assert machine.train(first=10, stages=("decision", "joint")) == {"decision": 20, "joint": 20}
    machine = Machine(lambda _: 10.0)
    assert machine.train(first=10, stages=("decision", "joint")) == {"decision": 15, "joint": 5}
    assert machine.now == 100.0


@pytest.mark.parametrize("stopped_at", [7, 12, 20])
def test_a_run_that_continues_from_a_checkpoint_ends_as_if_it_had_not_stopped(stopped_at):
    """On a machine that takes half of the steps, and that was off for an hour."""
    undisturbed = Machine(lambda _: 2.0)
    undisturbed.train()
    first = Machine(lambda _: 2.0)
    first.control.begin_stage("segment", 60)
    for step in range(1, stopped_at + 1):
        first.now += 2.0
        first.control.is_last(step)
        state = first.control.state_after("segment", step)
        first.control.step_done(step)
    second = Machine(lambda _: 2.0, limit_s=3600.0 + LIMIT_S)
    second.now = 3600.0
    second.control.resume(ScheduleState.model_validate_json(state.model_dump_json()))
    assert second.train(first=stopped_at) == undisturbed.control.taken
    assert second.now - 3600.0 == LIMIT_S - 2.0 * stopped_at
    assert second.positions["segment"][1:] == undisturbed.positions["segment"][stopped_at + 1 :]


def test_the_time_limit_of_the_repeated_command_counts_if_it_ends_earlier():
    machine = Machine(lambda _: 1.0, limit_s=20.0)
    taken = {"segment": 60}
    machine.control.resume(ScheduleState(stage="decision", position=0.0, taken=taken, left_s=500.0))
    taken = machine.train(stages=("decision", "joint"))
    assert (taken, machine.now) == ({"segment": 60, "decision": 10, "joint": 10}, 20.0)


# === Estimates ===


def test_needed_time_counts_encoded_photographs_and_the_cost_of_a_step():
    passes = MIN_STEPS * 4
    assert needed_s(0.1, batch_size=4, encoded=None) == pytest.approx(0.1 * passes * STEP_COST)
    assert needed_s(0.1, batch_size=4, encoded=50) == pytest.approx(0.1 * (50 + passes * CACHED_STEP_COST))


@pytest.mark.parametrize(
    ("forward_s", "left_s", "expected"), [(0.1, 600, 10), (0.001, 600, 20), (10.0, 600, 1), (0.1, -1, 1)]
)
def test_validations_take_a_tenth_of_the_time(forward_s, left_s, expected):
    interval = validation_interval(forward_s, validated=60 - DRAWING_COST, left_s=left_s)
    assert MAX_STEPS / interval == pytest.approx(expected)


def test_time_is_reserved_for_what_follows_the_training():
    fixed_s = reserved_s(0.0, 20, 10)
    assert reserved_s(0.2, 20, 10) - fixed_s == pytest.approx(0.2 * (2 * 20 + 3 * 20 + 2 * 10))
    in_folds = reserved_s(0.2, 0, 10, in_folds=20) - fixed_s - BUILDING_S
    assert in_folds == pytest.approx(0.2 * (3 * 20 + 2 * 10 + 20))
    assert reserved_s(0.2, 0, 10, in_folds=20, rotated=60) - fixed_s - BUILDING_S - in_folds == pytest.approx(
        0.2 * 60
    )
    assert reserved_s(0.2, 5000, 0) - reserved_s(0.2, 4999, 0) == pytest.approx(0.2 * 2)


def test_a_time_limit_for_enough_steps_is_a_multiple_of_half_a_minute():
    assert minutes_for_steps(300, step_s=0.1, fixed_s=60.0) == 1.5
    assert minutes_for_steps(300, step_s=0.1, fixed_s=61.0) == 2.0


def test_stages_share_the_maximum_number_of_steps():
    assert planned_steps({"segment": 0.75, "joint": 0.25}) == {
        "segment": 0.75 * MAX_STEPS,
        "joint": 0.25 * MAX_STEPS,
    }
    assert planned_steps({"joint": 0.0}) == {"joint": 1}


def test_the_area_takes_the_time_that_is_left():
    area = largest_area_in_time(1000, left_s=60.0, fixed_s=20.0, scaled_s=160.0)
    assert area == 250
    assert 20.0 + 160.0 * area / 1000 == 60.0
    shares = {
        left_s: largest_area_in_time(1000, left_s, 0.0, 100.0, tolerance=0.25) for left_s in (70, 75, 99, 200)
    }
    assert shares == {70: 700, 75: 1000, 99: 1000, 200: 2000}
