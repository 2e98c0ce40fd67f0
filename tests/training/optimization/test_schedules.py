import numpy as np
import pytest
from pydantic import ValidationError

from training.config import ScheduleConfig, StageConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from training.optimization.schedules import build_optimizer, build_schedule  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


def rates(schedule, steps, at):
    config = StageConfig(steps=steps, learning_rate=0.1, schedule=schedule)
    return [float(build_schedule(config)(step)) for step in at]


def test_poly_by_hand():
    # 0.1 · (1 − 5/10)^2 = 0.025
    schedule = ScheduleConfig(kind="poly", power=2.0)
    np.testing.assert_allclose(rates(schedule, 10, (0, 5, 10)), [0.1, 0.025, 0.0], atol=1e-9)


def test_staircase_by_hand():
    schedule = ScheduleConfig(kind="staircase", decay_rate=0.5, decay_steps=4)
    np.testing.assert_allclose(rates(schedule, 10, (0, 3, 4, 7, 8)), [0.1, 0.1, 0.05, 0.05, 0.025], rtol=1e-6)


def test_piecewise_by_hand():
    """Steps count from 1 for the user: the third is the last with the full rate. Keras counts from 0."""
    schedule = ScheduleConfig(kind="piecewise", boundaries=(3, 5), factors=(0.5, 0.1))
    np.testing.assert_allclose(
        rates(schedule, 8, (0, 2, 3, 4, 5, 7)), [0.1, 0.1, 0.05, 0.05, 0.01, 0.01], rtol=1e-6
    )


@pytest.mark.parametrize(
    "schedule",
    [
        {"kind": "constant"},
        {"kind": "poly"},
        {"kind": "staircase", "decay_steps": 2},
        {"kind": "cosine"},
        {"kind": "piecewise", "boundaries": (3,), "factors": (0.1,)},
    ],
    ids=lambda schedule: schedule["kind"],
)
def test_warmup_rises_to_every_schedule(schedule):
    at = range(8)
    plain = build_schedule(StageConfig(steps=8, learning_rate=0.1, schedule=schedule))
    full = [plain if isinstance(plain, float) else float(plain(step)) for step in at]
    expected = np.multiply(full, [0.25, 0.5, 0.75, 1, 1, 1, 1, 1])
    warmed = rates(ScheduleConfig(**schedule, warmup_steps=4), 8, at)
    np.testing.assert_allclose(warmed, expected, rtol=1e-6, atol=1e-9)


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


def test_the_rate_follows_the_given_steps():
    """Keras' own count of steps would lose some where workers train at their own pace."""
    steps = tf.Variable(0, dtype=tf.int64)
    settings = StageConfig(steps=10, learning_rate=0.1, schedule=ScheduleConfig(kind="poly", power=1.0))
    optimizer = build_optimizer(settings, "segment", steps)
    assert float(optimizer.learning_rate) == pytest.approx(0.1)
    steps.assign(5)
    assert float(optimizer.learning_rate) == pytest.approx(0.05)


def test_the_schedule_offset_changes_the_rate():
    steps, schedule_offset = (tf.Variable(value, dtype=tf.int64) for value in (3, 4))
    settings = StageConfig(steps=10, learning_rate=0.1, schedule=ScheduleConfig(kind="poly", power=1.0))
    optimizer = build_optimizer(settings, "segment", steps, schedule_offset)
    assert float(optimizer.learning_rate) == pytest.approx(0.03)
    schedule_offset.assign(-3)
    assert float(optimizer.learning_rate) == pytest.approx(0.1)
