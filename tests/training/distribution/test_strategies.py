"""Which devices a run takes, and what it says where the machine cannot give them."""

import pytest

from segdec.errors import ConfigError
from training.config import ExperimentConfig

tf = pytest.importorskip("tensorflow")

from training.distribution.strategies import choose_strategy, describe_strategy, divisible_batch_size  # noqa: E402


@pytest.mark.parametrize(
    ("name", "devices", "taken"),
    [
        ("auto", None, "single on 1 × CPU"),
        ("auto", "cpu:2", "mirrored on 2 × CPU"),
        ("single", "cpu:1", "single on 1 × CPU"),
        ("mirrored", None, "mirrored on 2 × CPU"),
        ("mirrored", "cpu:1", "mirrored on 1 × CPU"),
        ("central-storage", "cpu:2", "central-storage on 2 × CPU"),
    ],
)
@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")), reason="says what a machine without GPU does"
)
def test_selected_devices(name, devices, taken):
    assert describe_strategy(choose_strategy(name, devices)) == taken


def test_central_storage_keeps_its_variables_on_the_cpu():
    strategy = choose_strategy("central-storage", "cpu:2")
    with strategy.scope():
        variable = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    assert variable.device.endswith("CPU:0")


@pytest.mark.parametrize(
    ("name", "devices", "message"),
    [
        ("single", "cpu:2", "strategy=single uses one device, but devices=cpu:2 are 2"),
        ("auto", "gpu:77", r"devices=gpu:77: this machine has (no GPU|gpu:0).*--devices cpu:2"),
        ("mirrored", "gpu:0,0", r"devices=gpu:0,0: .*each once"),
        ("auto", "cpu:64", "devices=cpu:64 is too late: TensorFlow has already started with 2"),
        ("auto", "cpu:0", "devices='cpu:0' is invalid. Expected 'cpu:4'"),
    ],
)
def test_unavailable_devices(name, devices, message):
    with pytest.raises(ConfigError, match=message):
        choose_strategy(name, devices)


def test_a_batch_that_does_not_divide_names_both_numbers():
    strategy = choose_strategy("mirrored", "cpu:2")

    def size(batch_size, **data):
        stages = {"joint": {"steps": 1, "accumulate": 2}}
        return divisible_batch_size(
            ExperimentConfig(batch_size=batch_size, stages=stages, data=data), strategy
        )

    assert (size(8), size(7, drop_remainder=True)) == (8, 4)
    for batch_size, data in ((7, {}), (3, {"drop_remainder": True})):
        message = f"batch_size={batch_size} is not divisible by the 2 replicas times accumulate=2"
        with pytest.raises(ConfigError, match=rf"{message}.*--batch-size to {-(-batch_size // 4) * 4}"):
            size(batch_size, **data)
