"""Steps by measured speed: by numbers worked out by hand."""

import math

import pytest

from training.fit.training_plan import DatasetSizes, StepTimes, plan_training

SPEED = StepTimes(start_s=5.0, compile_s=3.0, step_s=0.5, stage="segment", predict_s=0.1)
AMOUNTS = DatasetSizes(train=60, val=20, evaluated=20, batch=4)
SHARES = {"segment": 0.6, "decision": 0.2, "joint": 0.2}


def test_steps_fill_the_time():
    found = plan_training(SHARES, SPEED, AMOUNTS, 600.0)
    assert found.post_training_s == pytest.approx(3.2 * 5 + (3 * 20 + 20) * 0.1)
    assert found.validation_s == pytest.approx(2.0)
    assert found.training_s == pytest.approx(600 - 24.0)
    fixed = 5 + 3 * (3 + 2) + 2
    free = found.training_s - fixed - 20 * 2.0  # 15 % would be more than twenty validations
    per_step = 0.5 * (0.6 + 0.2 * 0.7 + 0.2 * 1.1)
    assert sum(found.steps.values()) == pytest.approx(free / per_step, abs=3)
    assert found.steps["segment"] == pytest.approx(3 * found.steps["decision"], abs=3)


@pytest.mark.parametrize("minutes", [3, 10, 30])
def test_more_time_is_more_steps_and_is_spent(minutes):
    found = plan_training(SHARES, SPEED, AMOUNTS, 60.0 * minutes)
    stages = found.steps.items()
    steps = sum(number * SPEED.stage_step_s(name) for name, number in stages)
    within = sum(math.ceil(number / found.validate_every) - 1 for _, number in stages)
    spent = steps + within * 2.0 + 5 + 3 * (3 + 2) + 2 + found.post_training_s
    assert spent == pytest.approx(60 * minutes, rel=0.05)


def test_slow_validations_are_rare_and_none_comes_just_before_a_stage_ends():
    slow = StepTimes(5.0, 3.0, 0.5, "segment", predict_s=1.0)
    found = plan_training(SHARES, slow, AMOUNTS, 400.0)
    assert found.validate_every >= found.steps["segment"] / 3
    for number in found.steps.values():
        rest = number % found.validate_every
        assert rest == 0 or rest > found.validate_every / 2 or number < found.validate_every


def test_features_are_counted_once_for_each_form():
    assert AMOUNTS.features(0) == 0
    assert AMOUNTS.features(1) == pytest.approx(1, abs=0.01)
    assert AMOUNTS.features(1e6) == pytest.approx(240)
    kept = StepTimes(5.0, 3.0, 0.5, "segment", predict_s=0.1, feature_s=0.25)
    lost = sum(plan_training(SHARES, SPEED, AMOUNTS, 600.0).steps.values())
    lost -= sum(plan_training(SHARES, kept, AMOUNTS, 600.0).steps.values())
    assert lost * 0.5 * 0.96 == pytest.approx(240 * 0.25, abs=2)


def test_too_little_time_is_overrun_by_what_it_says():
    found = plan_training(SHARES, SPEED, AMOUNTS, 40.0)
    assert sum(found.steps.values()) == 30
    needed = 30 * 0.5 * (0.6 + 0.2 * 0.7 + 0.2 * 1.1) + 5 + 3 * (3 + 2) + 2 + found.post_training_s
    assert found.overrun_s == pytest.approx(needed - 40)
    assert plan_training(SHARES, SPEED, AMOUNTS, 200.0).overrun_s == 0


def test_a_smaller_input_makes_a_short_training_longer():
    assert plan_training(SHARES, SPEED, AMOUNTS, 150.0).is_short
    assert not plan_training(SHARES, SPEED.scaled(0.5), AMOUNTS, 150.0).is_short
    assert not plan_training(SHARES, SPEED, AMOUNTS, 600.0).is_short
    half = SPEED.scaled(0.5)
    assert (half.step_s, half.predict_s, half.start_s) == (0.25, 0.05, 5.0)
