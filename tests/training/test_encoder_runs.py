"""Runs whose network stands on a pretrained encoder."""

import json
import shutil

import numpy as np
import pytest

from segdec.encoders import ENCODERS
from segdec.errors import ConfigError, RunError
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from training.run.folder import RunFolder
from training.run.run_log import read_log
from training.trainer import Trainer

pytestmark = [pytest.mark.usefixtures("tensorflow_devices"), pytest.mark.slow]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory, toy_root, tiny_encoder, tiny_encoder_weights):
    """A few steps on features of the tiny encoder; images are flipped at most."""
    folder = tmp_path_factory.mktemp("encoder_runs")
    path = folder / "tiny.toml"
    path.write_text(
        f"""
        name = "tiny"
        runs = "{folder / "runs"}"
        batch_size = 4
        validate_every = 3
        checkpoint_every = 2
        log_every = 1
        encoder_weights = "{tiny_encoder_weights}"

        [network]
        encoder = "{tiny_encoder}"
        adapter_width = 8
        feature_width = 8
        feature_kernel = 3
        decision_widths = [4, 4]

        [data]
        root = "{toy_root}"
        splits = "{toy_root / "splits.txt"}"

        [stages]
        segment = {{ steps = 4, weight_decay = 0.01 }}
        decision = {{ steps = 2 }}
        joint = {{ steps = 3 }}
        """
    )
    return path


def load(experiment, tmp_path, *flags):
    return load_experiment(experiment, ["--runs", str(tmp_path), *flags])


@pytest.fixture(scope="module")
def run(experiment):
    """The experiment, trained to its end on features that are kept."""
    return Trainer(load_experiment(experiment)).run()


def losses(folder):
    return [record["loss"] for record in read_log(folder) if record["kind"] == "train"]


def test_the_encoder_ends_as_it_began(run, tiny_encoder, tiny_encoder_weights):
    from segdec.network.encoder import load_application

    began = load_application(ENCODERS[tiny_encoder])
    began.load_weights(tiny_encoder_weights)
    layers = [layer for layer in run.network().backbone.layers if layer.weights]
    assert len(layers) == 2 * (1 + 2 * 7)  # the first convolution, two in each block; each is normalised
    for layer in layers:
        for ours, expected in zip(
            layer.get_weights(), began.get_layer(layer.name).get_weights(), strict=True
        ):
            np.testing.assert_array_equal(ours, expected, err_msg=layer.name)


def test_the_run_says_what_its_encoder_began_with(run, tiny_encoder):
    origin = run.result().encoder
    assert (origin.encoder, origin.weights, origin.trainable) == (tiny_encoder, "tiny.weights.h5", "frozen")
    assert json.loads((run.path / "encoder.json").read_text()) == origin.model_dump()


def test_checkpoints_hold_what_has_been_trained_alone(run, read_checkpoint):
    """Neither the encoder nor an average of it nor its best."""
    kept = sum(array.size for array in read_checkpoint(run.path).values())
    network = run.network()
    trained = network.count_params() - network.backbone.count_params()
    assert 3 * trained < kept < 8 * trained  # weights, averages, best ones, two moments of Adam a stage
    assert network.backbone.count_params() > trained


def test_the_size_of_the_cache_changes_no_bit(experiment, run, tmp_path, check_same_run, capsys):
    small = Trainer(load(experiment, tmp_path, "--data.cache-mb", "0")).run().path
    check_same_run(small, run.path)
    assert capsys.readouterr().err.count("warning: The encoder's features of") == 1


def test_another_file_of_weights_is_refused(experiment, tiny_encoder_weights, tmp_path):
    """The same one may lie elsewhere, as the photographs may."""
    Trainer(load(experiment, tmp_path)).folder.close()
    moved, changed = tmp_path / "moved.weights.h5", tmp_path / "changed.weights.h5"
    shutil.copy(tiny_encoder_weights, moved)
    trainer = Trainer(load(experiment, tmp_path, "--encoder-weights", str(moved)))
    trainer.folder.close()
    assert trainer.folder.encoder().weights == "tiny.weights.h5"

    import h5py

    shutil.copy(moved, changed)
    with h5py.File(changed, "a") as file:
        file["layers"]["conv2d"]["vars"]["0"][0, 0, 0, 0] += 0.5
    before = sorted(path.name for path in (tmp_path / "tiny").iterdir())
    with pytest.raises(RunError, match=r"started from weights with SHA-256 \w{64}; now .* SHA-256 .*--fresh"):
        Trainer(load(experiment, tmp_path, "--encoder-weights", str(changed)))
    assert sorted(path.name for path in (tmp_path / "tiny").iterdir()) == before
    with pytest.raises(ConfigError, match=r"gone\.h5' does not exist"):
        Trainer(load(experiment, tmp_path, "--encoder-weights", str(tmp_path / "gone.h5")))
    Trainer(load(experiment, tmp_path, "--encoder-weights", str(changed)), fresh=True).folder.close()
    assert RunFolder(tmp_path / "tiny").encoder().weights == "changed.weights.h5"


def test_a_trained_encoder_goes_on_where_it_was(experiment, tmp_path, interrupt_run, check_same_run):
    """Of a checkpoint that holds what is trained of it alone; light changes."""
    flags = ["--encoder-trainable", "top", "--augmentation.brightness", "0.1"]
    whole = Trainer(load(experiment, tmp_path / "whole", *flags)).run().path
    config = load(experiment, tmp_path / "cut", *flags)
    interrupt_run(config, 8)
    check_same_run(Trainer(config).run().path, whole)
