import numpy as np
import pytest

from training.config import ScheduleConfig, StageConfig

keras = pytest.importorskip("keras")

from training.schedules import build_optimizer, build_schedule  # noqa: E402

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


def test_cosine_by_hand():
    # 0.1 · (1 + cos(π · 1/4)) / 2 = 0.0853553
    schedule = ScheduleConfig(kind="cosine")
    np.testing.assert_allclose(rates(schedule, 8, (0, 2, 4, 8)), [0.1, 0.0853553, 0.05, 0.0], atol=1e-7)


def test_constant():
    assert build_schedule(StageConfig(steps=5, learning_rate=0.2)) == 0.2


@pytest.mark.parametrize(("name", "kind"), [("sgd", "SGD"), ("adam", "Adam"), ("adamw", "AdamW")])
def test_optimizers(name, kind):
    optimizer = build_optimizer(StageConfig(steps=5, optimizer=name, weight_decay=0.01), "segment")
    assert type(optimizer) is getattr(keras.optimizers, kind)
    assert optimizer.weight_decay == 0.01
    assert optimizer.name == "segment"


def test_sgd_takes_the_momentum():
    assert build_optimizer(StageConfig(optimizer="sgd", momentum=0.7), "segment").momentum == 0.7
