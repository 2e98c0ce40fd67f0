"""Fixtures that several packages share; whatever needs TensorFlow is made once a session."""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import wrapt
from filelock import FileLock

from segdec.artifact import TrainingPhotographs
from segdec.config import InputConfig, ModelConfig, NetworkConfig, Thresholds
from segdec.photograph_check import PROPORTIONS, SURFACE, Vector, measure_photograph, measure_proportions
from tests import tiny_encoder as tiny

# What the training commands set for themselves: runs of the same seed are compared across processes, and on
# processors without AVX-512 TensorFlow would leave oneDNN out where it is only imported.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# With tiny networks, several threads only wait for each other.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# The tests need neither a reserved space of 64 MB for each record, nor a disk of which a tenth is free.
RECORD_VARIABLES = {"SEGDEC_RECORD_RESERVED_MB": "0.1", "SEGDEC_RECORD_FREE_SHARE": "0"}
os.environ.update(RECORD_VARIABLES)
# As `import_openvino` does: tests import OpenVINO themselves, and its telemetry forks processes that hang.
sys.modules.setdefault("openvino_telemetry", None)


@wrapt.when_imported("tensorflow")
def use_two_devices(tensorflow: ModuleType) -> None:
    """Gives TensorFlow two logical CPU devices, which stand for two GPUs, before any test can start it."""
    cpu = tensorflow.config.list_physical_devices("CPU")[0]
    devices = [tensorflow.config.LogicalDeviceConfiguration()] * 2
    tensorflow.config.set_logical_device_configuration(cpu, devices)


def pytest_collection_finish() -> None:
    """Lets garbage collections skip what was imported: with TensorFlow each takes most of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tiny_config() -> ModelConfig:
    """A network of a few thousand weights that takes photographs of any size."""
    network = NetworkConfig(
        segmentation_widths=((4,), (4,), (4,)), feature_width=8, feature_kernel=5, decision_widths=(4, 4, 4)
    )
    return ModelConfig(
        network=network,
        input=InputConfig(),
        classes=("good", "defect"),
        thresholds=Thresholds(score=0.5, mask=0.5),
    )


@pytest.fixture(scope="session")
def grey_training() -> TrainingPhotographs:
    """Twenty flat grey training photographs of 32 × 48 px, levels 100 to 119."""
    return _train([measure_photograph(np.full((32, 48, 1), level, np.uint8)) for level in range(100, 120)])


@pytest.fixture(scope="session")
def surface_training() -> TrainingPhotographs:
    """The same with the surfaces [0.100, 0.2] to [0.119, 0.2]."""
    images = {level: np.full((32, 48, 1), level, np.uint8) for level in range(100, 120)}
    return _train(
        [
            {**measure_photograph(image), SURFACE: np.array([level / 1000, 0.2])}
            for level, image in images.items()
        ]
    )


def _train(measured: list[dict[str, Vector]]) -> TrainingPhotographs:
    from training.photograph_limits import choose_limits

    known = [{**each, PROPORTIONS: measure_proportions(32, 48)} for each in measured]
    limits = choose_limits(known, [str(number) for number in range(20)])
    trained = TrainingPhotographs.of([(32, 48)], [8])
    assert trained is not None
    return trained.model_copy(update={"limits": limits})


@pytest.fixture(scope="session")
def tiny_encoder() -> Iterator[str]:
    """Name of an encoder of a few thousand weights, which is one of those known while tests run."""
    with tiny.registered() as name:
        yield name


@pytest.fixture(scope="session")
def tiny_transformer(tiny_encoder) -> str:  # noqa: ARG001
    """Name of a vision transformer of two blocks, which is one of the encoders while tests run."""
    return tiny.TRANSFORMER


@pytest.fixture(scope="session")
def tiny_encoder_weights(tmp_path_factory, tiny_encoder) -> Path:  # noqa: ARG001
    """Weights file of the tiny encoder, as Keras writes one."""
    path = tmp_path_factory.mktemp("encoder") / "tiny.weights.h5"
    tiny.write_weights(path)
    return path


@pytest.fixture(scope="session")
def tiny_mobilenet(tmp_path_factory, tiny_encoder) -> tuple[str, Path]:  # noqa: ARG001
    """Name and weights file of an encoder whose features differ for different surfaces."""
    path = tmp_path_factory.mktemp("encoder") / "mobilenet.weights.h5"
    tiny.write_weights(path, tiny.DEEPER)
    return tiny.DEEPER, path


@pytest.fixture(scope="session")
def tensorflow_devices() -> list[str]:
    """Starts TensorFlow; returns the names of its two devices."""
    import tensorflow as tf

    return [device.name for device in tf.config.list_logical_devices("CPU")]


@pytest.fixture(scope="session")
def tiny_network(tiny_config):
    """The tiny network with seeded weights and moving statistics that are not the initial ones."""
    import keras

    from segdec.network.network import build_network

    keras.utils.set_random_seed(7)
    network = build_network(tiny_config.network)
    network(np.random.default_rng(0).uniform(0, 255, (2, 16, 16, 1)).astype(np.float32), training=True)
    return network


@pytest.fixture(scope="session")
def make_once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a read-only folder once for all workers: name, function that fills it → folder."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_artifact(request, make_once, tiny_config) -> Path:
    """The tiny network as an artifact; the same folder for all workers."""
    from segdec.export.model_export import ModelCard, export_model

    card = ModelCard("tiny", "1", {"average_precision": 0.5}, "test", data_fingerprint="0" * 64)
    return make_once(
        "tiny",
        lambda folder: export_model(request.getfixturevalue("tiny_network"), folder, tiny_config, card),
    )


@pytest.fixture(scope="session")
def toy_root(tmp_path_factory) -> Path:
    """A toy set of 24 images of 32 px, with its split file."""
    from datasets.layouts.toy import write_toy

    root = tmp_path_factory.mktemp("data") / "toy"
    write_toy(root, 24, size=32)
    return root


@pytest.fixture(scope="session")
def tiny_experiment(tmp_path_factory, toy_root) -> Path:
    """An experiment file of a few steps on the toy set."""
    folder = tmp_path_factory.mktemp("experiment")
    path = folder / "tiny.toml"
    path.write_text(
        f"""
        name = "tiny"
        runs = "{folder / "runs"}"
        batch_size = 4
        validate_every = 3
        checkpoint_every = 2
        log_every = 1

        [network]
        segmentation_widths = [[4], [4], [4]]
        feature_width = 8
        feature_kernel = 5
        decision_widths = [4, 4, 4]

        [data]
        root = "{toy_root}"
        splits = "{toy_root / "splits.txt"}"

        [augmentation]
        brightness = 0.1
        contrast = 0.2
        shift = 0.1
        noise = 0.02

        [stages]
        segment = {{ steps = 5, weight_decay = 0.01 }}
        decision = {{ steps = 4, optimizer = "sgd", learning_rate = 0.01 }}
        joint = {{ steps = 3, balance = "dynamic", weight_decay = 0.01, weight_decay_kind = "l2" }}
        """
    )
    return path


@pytest.fixture(scope="session")
def finished_run(make_once, tiny_experiment) -> Path:
    """The tiny experiment, trained once for all workers; each worker has a copy of its own."""
    from training.experiment_file import load_experiment, save_experiment
    from training.trainer import Trainer

    def train(folder: Path) -> None:
        Trainer(load_experiment(tiny_experiment, ["--runs", str(folder)])).run()

    config = load_experiment(tiny_experiment)
    shutil.copytree(make_once("finished_run", train) / config.name, config.folder)
    (config.folder / "config.toml").write_text(save_experiment(config))
    return config.folder


SPEED = {"images_per_s", "s_per_step", "input_wait", "model_flops_per_s", "flop_utilisation"}
"""Keys of a log's records that differ between equal runs."""


@pytest.fixture(scope="session")
def read_records():
    """What reads the records of a run's log without what measures speed: run folder → records."""
    from training.run.run_log import read_log

    def read(run: Path) -> list[dict]:
        return [{key: record[key] for key in record.keys() - SPEED} for record in read_log(run)]

    return read


@pytest.fixture(scope="session")
def read_checkpoint():
    """What reads all arrays of a run's checkpoint furthest on: run folder → arrays by name."""
    import tensorflow as tf

    from training.run.checkpoint_folder import CheckpointFolder

    def read(run: Path) -> dict[str, np.ndarray]:
        newest = CheckpointFolder(run / "checkpoints", keep=1).newest_first()[0]
        reader = tf.train.load_checkpoint(str(newest / "state"))
        names = reader.get_variable_to_shape_map().keys() - {"_CHECKPOINTABLE_OBJECT_GRAPH"}
        return {name: reader.get_tensor(name) for name in names}

    return read


class InterruptedRunError(Exception):
    """Stands for a process that is gone."""


@pytest.fixture
def interrupt_run(monkeypatch):
    """What trains up to a step, counted from 1 over all stages, in which the process is gone."""
    from training.run.meter import Meter
    from training.trainer import Trainer

    def interrupt(config, step):
        advance, taken = Meter.advance, []

        def stop(meter, losses, wait_s):
            taken.append(1)
            if len(taken) == step:
                raise InterruptedRunError
            advance(meter, losses, wait_s)

        with monkeypatch.context() as patch:
            patch.setattr(Meter, "advance", stop)
            with pytest.raises(InterruptedRunError):
                Trainer(config).run()

    return interrupt


@pytest.fixture(scope="session")
def check_same_run(read_records, read_weights, read_checkpoint):
    """What asserts that two finished runs are bit-identical: weights, result, log, last checkpoint."""

    def check(run: Path, expected: Path) -> None:
        for read in (read_weights, read_checkpoint):
            arrays, others = read(run), read(expected)
            assert arrays.keys() == others.keys()
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, others[name], err_msg=name)
        assert (run / "result.json").read_text() == (expected / "result.json").read_text()
        assert read_records(run) == read_records(expected)

    return check


@pytest.fixture(scope="session")
def free_ports():
    """What finds ports that nobody listens on: number → ports."""
    from training.distribution.launch import find_ports

    return find_ports


@pytest.fixture(scope="session")
def read_weights():
    """What reads all arrays of a run's weights file: run folder → arrays by name."""
    import h5py

    def read(run: Path) -> dict[str, np.ndarray]:
        arrays = {}
        with h5py.File(run / "network.weights.h5") as file:
            file.visititems(
                lambda name, item: arrays.update({name: item[()]} if hasattr(item, "shape") else {})
            )
        return arrays

    return read
