"""Checkpoints: when they are written, which are kept, and recovery from damaged ones."""

import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from segdec.errors import RunError
from segdec.network.network import build_network
from tests.marks import slow_case
from training.config import ExperimentConfig, StageConfig, StagesConfig
from training.optimization.ema import WeightEMA
from training.optimization.train_state import TrainState
from training.run.checkpoints import RunState


@pytest.fixture(scope="module")
def parts(tiny_config):
    """What a state saves: what training changes, and the validated network."""
    network, validated = build_network(tiny_config.network), build_network(tiny_config.network)
    optimizer = keras.optimizers.Adam()
    optimizer.build(network.trainable_variables)
    step = tf.Variable(0, dtype=tf.int64)
    return TrainState(network, {"segment": optimizer}, WeightEMA(network, 0.9), step), validated


def make_state(folder, parts, *, clock=time.monotonic, **settings):
    config = ExperimentConfig(stages=StagesConfig(segment=StageConfig(steps=1)), **settings)
    return RunState(folder, *parts, config, writes=True, clock=clock)


def fill(network, value):
    for weight in network.variables:
        weight.assign(tf.fill(weight.shape, tf.cast(value, weight.dtype)))


def held(network):
    """The one number that fills all weights."""
    values = {float(value) for weight in network.variables for value in np.unique(weight.numpy())}
    assert len(values) == 1
    return values.pop()


def save(state, parts, stage, step):
    """A checkpoint whose weights all are 100 · stage + step."""
    state.stage.assign(stage)
    fill(parts[0].network, 100 * stage + step)
    state.save(step)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_checkpoints_are_due_by_steps_and_minutes(tmp_path, parts):
    now = [1000.0]
    state = make_state(tmp_path, parts, checkpoint_every=4, checkpoint_minutes=2, clock=lambda: now[0])
    assert [step for step in range(1, 10) if state.is_due(step)] == [4, 8]
    now[0] += 119.0
    assert not state.is_due(5)
    now[0] += 1.0
    assert state.is_due(5)
    save(state, parts, 0, 5)
    assert not state.is_due(6)


def test_newest_checkpoints_are_kept(tmp_path, parts):
    state = make_state(tmp_path, parts, keep_checkpoints=2)
    for stage, step in [(0, 10), (1, 9), (1, 10)]:
        save(state, parts, stage, step)
    assert names(tmp_path) == {"ckpt-1-9", "ckpt-1-10"}
    fill(parts[0].network, 0)
    again = make_state(tmp_path, parts)
    assert again.restore()
    assert (int(again.stage), int(again.step), held(parts[0].network)) == (1, 10, 110)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        slow_case("state.index", cut),
        ("state.data-00000-of-00001", flip),
        slow_case("state.data-00000-of-00001", Path.unlink),
    ],
)
def test_damaged_checkpoint_is_reported_and_the_previous_one_used(tmp_path, parts, capsys, file, damage):
    state = make_state(tmp_path, parts)
    save(state, parts, 0, 2)
    save(state, parts, 0, 4)
    damage(tmp_path / "ckpt-0-4" / file)

    state = make_state(tmp_path, parts)
    assert state.restore()
    assert (int(state.step), held(parts[0].network)) == (2, 2)
    printed = capsys.readouterr().err
    assert printed.startswith(f"warning: The checkpoint '{tmp_path / 'ckpt-0-4'}' cannot be read: ")
    assert f"from the previous one, '{tmp_path / 'ckpt-0-2'}'" in printed

    save(state, parts, 0, 3)  # behind the damaged one, which must not be taken for the newest
    assert names(tmp_path) == {"ckpt-0-2", "ckpt-0-3"}
    state = make_state(tmp_path, parts)
    assert state.restore()
    assert (int(state.step), capsys.readouterr().err) == (3, "")


def test_best_weights_belong_to_the_restored_checkpoint(tmp_path, parts):
    """The later stage's best weights must not become the earlier stage's."""
    network, validated = parts[0].network, parts[1]
    state = make_state(tmp_path, parts)
    fill(validated, 7)
    state.save_best((0.5, 0.0))
    save(state, parts, 0, 4)
    fill(validated, 9)
    state.save_best((0.9, 0.0))
    save(state, parts, 1, 2)
    cut(tmp_path / "ckpt-1-2" / "state.index")
    state = make_state(tmp_path, parts)
    state.restore()
    assert state.is_better((0.5, 0.0))
    assert not state.is_better((0.4, 0.0))
    state.restore_best()
    assert held(network) == 7


def test_checkpoint_of_another_network_is_rejected(tmp_path, parts, tiny_config):
    save(make_state(tmp_path, parts), parts, 0, 2)
    wider = build_network(tiny_config.network.model_copy(update={"feature_width": 16}))
    with pytest.raises(RunError, match="Expected an intact checkpoint of the same network"):
        other = TrainState(wider, {}, WeightEMA(wider, 0.9), parts[0].step)
        make_state(tmp_path, (other, wider)).restore()


@pytest.mark.parametrize(
    "error",
    [tf.errors.ResourceExhaustedError(None, None, "SaveV2; No space left on device"), OSError(28, "")],
)
def test_full_disk_keeps_earlier_checkpoints(tmp_path, parts, monkeypatch, error):
    state = make_state(tmp_path, parts)
    save(state, parts, 0, 2)

    def write_half(_checkpoint, prefix):
        Path(f"{prefix}.data-00000-of-00001").write_bytes(b"half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(tf.train.Checkpoint, "write", write_half)
        with pytest.raises(RunError, match=r"Cannot write .*: No space left on device\. Earlier checkpoints"):
            save(state, parts, 0, 4)
    assert names(tmp_path) == {"ckpt-0-2"}
    assert make_state(tmp_path, parts).restore()
