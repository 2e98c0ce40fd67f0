"""A training ends when its time does, on machines as fast as measured and on others; the clock is made up."""

import pytest

from training.fit.deadline_control import DeadlineControl
from training.fit.training_plan import DatasetSizes, StepTimes, plan_training

SHARES = {"segment": 0.6, "decision": 0.2, "joint": 0.2}
SPEED = StepTimes(
    start_s=5.0,
    compile_s=3.0,
    step_s=0.5,
    stage="segment",
    predict_s=0.1,
    draw_s=1.0,
    first_s=4.0,
    feature_s=0.1,
)
AMOUNTS = DatasetSizes(train=60, val=14, evaluated=20, batch=4)


class Machine:
    """Trains by a plan on a machine that is `slowness(share of the time)` times as slow as measured."""

    def __init__(self, minutes, slowness):
        self.now, self._slowness, self._end = 0.0, slowness, 60.0 * minutes
        self.plan = plan_training(SHARES, SPEED, AMOUNTS, self._end)
        self.ends_at = self._end - self.plan.post_training_s
        self.control = DeadlineControl(self.plan, self.ends_at, lambda: self.now)
        self.rests = {}

    def spend(self, seconds):
        self.now += seconds * self._slowness(self.now / self._end)

    def train(self):
        plan, seen, validated = self.plan, 0, False
        self.spend(SPEED.start_s)
        for stage, steps in plan.steps.items():
            self.control.begin_stage(stage, steps)
            self.spend(SPEED.compile_s)
            for step in range(1, self.control.max_steps(steps) + 1):
                last = self.control.is_last(step)
                assert last == (step >= self.control.expected_steps)
                before = AMOUNTS.features(seen)
                seen += AMOUNTS.batch
                self.spend(SPEED.stage_step_s(stage) + SPEED.feature_s * (AMOUNTS.features(seen) - before))
                if step % plan.validate_every == 0 or last:
                    self.spend(plan.validation_s + (0.0 if validated else SPEED.first_s))
                    validated = True
                self.control.step_done(step)
                if last:
                    break
            self.rests[stage] = (steps - step - self.control.schedule_offset) / steps  # of the schedule
        self.spend(plan.validation_s)
        return self.now / self.ends_at


def test_a_plan_that_holds_is_kept_to_the_step():
    machine = Machine(10, lambda _: 1.0)
    assert machine.train() == pytest.approx(1, abs=0.04)
    assert machine.control.taken == machine.plan.steps
    assert not machine.control.moved


@pytest.mark.parametrize("minutes", [3, 10])
@pytest.mark.parametrize(
    "slowness",
    [
        lambda _: 2.0,
        lambda _: 0.5,
        lambda passed: 1.0 if passed < 0.5 else 3.0,
        lambda passed: 3.0 if passed < 0.3 else 1.0,
        lambda passed: 1.5 if int(20 * passed) % 2 else 0.8,
    ],
    ids=["slower", "faster", "slower later", "faster later", "uneven"],
)
def test_the_time_is_kept_whatever_the_machine_does(minutes, slowness):
    machine = Machine(minutes, slowness)
    assert machine.train() == pytest.approx(1, abs=0.1)
    assert machine.control.moved
    assert all(rest < 0.1 for rest in machine.rests.values())  # the rate has come to its end


def test_a_slow_moment_costs_no_stage():
    machine = Machine(4, lambda passed: 20.0 if 0.3 < passed < 0.32 else 1.0)
    assert machine.train() == pytest.approx(1, abs=0.1)
    parts = [machine.control.taken[stage] / steps for stage, steps in machine.plan.steps.items()]
    assert min(parts) > 0.5


def test_when_the_time_is_over_each_stage_ends_at_once():
    machine = Machine(3, lambda passed: 1.0 if passed < 0.1 else 1000.0)
    machine.train()
    assert machine.control.taken["joint"] == 1
