"""What is claimed of the GPUs of a machine, which are mocked for TensorFlow."""

import pytest

from segdec.errors import ConfigError

tf = pytest.importorskip("tensorflow")

from training.distribution import devices  # noqa: E402

GPUS = ["first", "second", "third"]


@pytest.fixture
def claimed(monkeypatch):
    """The GPUs that are left visible, with whether their memory grows."""
    growing = dict.fromkeys(GPUS, False)
    visible = list(GPUS)

    def show(gpus, kind):
        assert kind == "GPU"
        visible[:] = gpus

    class Logical:
        def __init__(self, gpu):
            self.name = f"/device:GPU:{gpu}"

    monkeypatch.delenv(devices.GROWTH_VARIABLE, raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _kind: GPUS)
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _kind: visible)
    monkeypatch.setattr(tf.config, "set_visible_devices", show)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda _kind: [Logical(gpu) for gpu in visible])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", growing.__setitem__)
    return lambda: {gpu: growing[gpu] for gpu in visible}


@pytest.mark.parametrize(
    ("wanted", "single", "taken"),
    [
        (None, False, GPUS),
        (None, True, ["first"]),
        ("gpu:2", False, ["third"]),
        ("gpu:2,0", False, ["third", "first"]),
    ],
)
def test_only_the_gpus_of_the_strategy_are_claimed_and_their_memory_grows(claimed, wanted, single, taken):
    assert devices.find_devices(wanted, single=single) == [f"/device:GPU:{gpu}" for gpu in taken]
    assert claimed() == dict.fromkeys(taken, True)


@pytest.mark.parametrize(("wanted", "taken"), [(None, GPUS), ("gpu:1", ["second"]), ("cpu:1", [])])
def test_a_process_of_a_cluster_claims_its_own_gpus(claimed, wanted, taken):
    assert devices.select_gpus(wanted) == len(taken)
    assert claimed() == dict.fromkeys(taken, True)


def test_growth_is_left_to_tensorflow_where_its_variable_is_set(claimed, monkeypatch):
    monkeypatch.setenv(devices.GROWTH_VARIABLE, "false")
    devices.find_devices("gpu:0")
    assert claimed() == {"first": False}
    with pytest.raises(ConfigError, match=r"devices=gpu:3: this machine has gpu:0,1,2"):
        devices.find_devices("gpu:3")


@pytest.mark.usefixtures("claimed")
@pytest.mark.parametrize(
    ("batch_size", "devices_of_it"), [(9, None), (8, "gpu:0,1"), (16, "gpu:0,1"), (7, "gpu:0"), (1, "gpu:0")]
)
def test_the_most_gpus_that_divide_a_batch(batch_size, devices_of_it):
    assert devices.count_replicas() == 3
    assert devices.dividing_devices(batch_size) == devices_of_it


def test_a_machine_without_gpus_has_one_replica(monkeypatch):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _kind: [])
    assert (devices.count_replicas(), devices.dividing_devices(8)) == (1, None)


def test_tests_have_two_devices_in_any_order():
    """Two logical devices must be set before TensorFlow starts, whichever test starts it."""
    assert len(tf.config.list_logical_devices("CPU")) == 2
