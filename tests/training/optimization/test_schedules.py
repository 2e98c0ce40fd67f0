import numpy as np
import pytest
from pydantic import ValidationError

from training.config import ScheduleConfig, StageConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from training.optimization.schedules import build_optimizer, build_schedule  # noqa: E402


def rates(schedule, steps, at):
    config = StageConfig(steps=steps, learning_rate=0.1, schedule=schedule)
    return [float(build_schedule(config)(step)) for step in at]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # 0.1 · (1 − 5/10)^2 = 0.025
        ({"kind": "poly", "power": 2.0}, {0: 0.1, 5: 0.025, 10: 0.0}),
        ({"kind": "staircase", "decay_rate": 0.5, "decay_steps": 4}, {3: 0.1, 4: 0.05, 7: 0.05, 8: 0.025}),
        # Steps count from 1 for the user: the third is the last with the full rate. Keras counts from 0.
        (
            {"kind": "piecewise", "boundaries": (3, 5), "factors": (0.5, 0.1)},
            {0: 0.1, 2: 0.1, 3: 0.05, 4: 0.05, 5: 0.01, 7: 0.01},
        ),
        ({"kind": "cosine"}, {0: 0.1, 5: 0.05, 10: 0.0}),
    ],
)
def test_schedules_by_hand(schedule, expected):
    np.testing.assert_allclose(
        rates(ScheduleConfig(**schedule), 10, expected), list(expected.values()), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("kind", ["constant", "poly"])
def test_warmup_rises_to_the_schedule(kind):
    full = 0.1 * (1 - np.arange(8) / 8) if kind == "poly" else 0.1
    schedule = ScheduleConfig(kind=kind, power=1.0, warmup_steps=4)
    expected = full * np.array([0.25, 0.5, 0.75, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(rates(schedule, 8, range(8)), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"kind": "piecewise"}, "0 boundaries and 0 factors"),
        ({"kind": "piecewise", "boundaries": (2, 3), "factors": (0.1,)}, "2 boundaries and 1 factors"),
        ({"kind": "poly", "boundaries": (2,), "factors": (0.1,)}, "none with another kind"),
        ({"kind": "piecewise", "boundaries": (3, 3), "factors": (0.1, 0.1)}, "do not ascend"),
    ],
)
def test_invalid_pieces(schedule, message):
    with pytest.raises(ValidationError, match=message):
        ScheduleConfig(**schedule)


def test_the_rate_follows_the_given_steps_and_the_offset():
    """Keras' own count of steps would lose some where workers train at their own pace."""
    steps, schedule_offset = (tf.Variable(value, dtype=tf.int64) for value in (0, 0))
    settings = StageConfig(steps=10, learning_rate=0.1, schedule=ScheduleConfig(kind="poly", power=1.0))
    optimizer = build_optimizer(settings, "segment", steps, schedule_offset)
    assert float(optimizer.learning_rate) == pytest.approx(0.1)
    steps.assign(3)
    schedule_offset.assign(4)
    assert float(optimizer.learning_rate) == pytest.approx(0.03)
