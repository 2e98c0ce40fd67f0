import numpy as np
import pytest

from tests.marks import slow_case

tf = pytest.importorskip("tensorflow")

from segdec.network.network import build_network  # noqa: E402
from tests.training.optimization.single_stage import Training, changed_paths, make_batches, stage_config  # noqa: E402
from training.distribution.strategies import choose_strategy  # noqa: E402
from training.optimization.ema import WeightEMA  # noqa: E402
from training.optimization.loss_scale import LossScale  # noqa: E402


def of_all_replicas(losses):
    """The losses without those of single replicas."""
    return {name: loss for name, loss in losses.items() if not name.startswith("replica_loss_")}


@pytest.mark.parametrize("stage", [slow_case("segment"), "decision"])
def test_a_stage_changes_only_its_variables(tiny_config, stage):
    """Moving statistics included."""
    training = Training(stage_config(tiny_config.network, stage))
    before = training.weights()
    losses = training.run(make_batches(2))
    network = training.network
    part, model = {
        "segment": ("segmentation", network.segmentation),
        "decision": ("decision", network.decisions[0]),
    }[stage]
    assert losses.keys() == {"loss", "gradient_norm", "learning_rate", f"{part}_loss"}
    expected = {variable.path for variable in model.variables}
    assert changed_paths(before, training.weights()) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "images", "settings"),
    [
        ("mirrored", 3, {"clip_norm": 0.05, "accumulate": 2}),
        ("central-storage", 1, {"accumulate": 2, "weight_decay": 0.5, "weight_decay_kind": "l2"}),
    ],
)
def test_replicas_and_parts_equal_one_device(tiny_config, strategy, images, settings):
    """Few images on two replicas, with statistics per image. Float32 SGD: to 1e-6."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    (batch,) = make_batches(1, batch_size=images)
    plain = {name: value for name, value in settings.items() if name != "accumulate"}
    single = Training(stage_config(config, "joint", **plain))
    several = Training(stage_config(config, "joint", **settings), strategy)
    expected, losses = single.run([batch]), several.run([batch])
    assert of_all_replicas(losses) == pytest.approx(expected, rel=1e-5)
    sizes = (2, 1) if images == 3 else (1, 0)
    by_replica = [losses[f"replica_loss_{index}"] for index in (0, 1)]  # 0 without images
    assert np.average(by_replica, weights=sizes) == pytest.approx(expected["loss"], rel=1e-5)
    assert (by_replica[1] == 0.0) == (images == 1)
    ours, theirs = single.weights(), several.weights()
    for path, value in ours.items():
        np.testing.assert_allclose(theirs[path], value, atol=2e-6, err_msg=path)


@pytest.mark.slow
def test_decay_applies_once_to_the_kernels_of_the_stage(tiny_config):
    """Decoupled and as L2 of the loss, in addition to the step: without momentum both are rate · decay."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    plain, decoupled, l2 = (
        Training(stage_config(config, "segment", momentum=0.0, accumulate=2, **settings), "mirrored")
        for settings in ({}, {"weight_decay": 2.0}, {"weight_decay": 2.0, "weight_decay_kind": "l2"})
    )
    for training in (plain, decoupled, l2):
        for variable in training.network.trainable_variables:
            variable.value.assign(variable.value + 0.1)  # offsets and biases begin at 0, which none shrinks
    start = plain.weights()
    expected, same, losses = (training.run(make_batches(1)) for training in (plain, decoupled, l2))
    kernels = {
        path for path in start if path.endswith("/kernel") and path in changed_paths(start, plain.weights())
    }
    assert kernels
    by_hand = sum(np.sum(start[path].astype(float) ** 2) for path in kernels)
    assert losses["l2_loss"] == pytest.approx(by_hand, rel=1e-5)
    assert losses["loss"] == pytest.approx(expected["loss"] + by_hand, rel=1e-5)
    assert same["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    undecayed = plain.weights()
    for ours in (decoupled.weights(), l2.weights()):
        for path, value in undecayed.items():
            decay = 0.05 * 2.0 * start[path] if path in kernels else 0.0
            np.testing.assert_allclose(ours[path], value - decay, atol=2e-6, err_msg=path)


def state(training):
    """Everything that a skipped step must not change, on every replica."""
    variables = [variable.value for variable in training.network.variables]
    variables += [variable.value for variable in training.state.optimizers[training.stage.name].variables]
    variables += [*training.state.ema.shadows, *training.state.ema.variables]
    results = training.strategy.experimental_local_results
    return [np.asarray(copy).copy() for variable in variables for copy in results(variable)]


@pytest.mark.parametrize("strategy", ["single", slow_case("mirrored")])
def test_overflow_on_one_replica_skips_the_step_on_all(tiny_config, strategy):
    settings = {"precision": "mixed_float16", "optimizer": "adam", "weight_decay": 0.1}
    training = Training(stage_config(tiny_config.network, "segment", **settings), strategy)
    training.state.loss_scale.value.assign(1024.0)
    (sound,), (overflow,) = make_batches(1), make_batches(1)
    overflow["target"][-1] = 1e6  # a gradient beyond float16, though a finite loss
    assert training.run([sound])["skipped_steps"] == 0
    before = state(training)
    losses = training.run([overflow])
    assert all(np.isfinite(list(losses.values())))
    assert (losses["gradient_norm"], losses["loss_scale"], losses["skipped_steps"]) == (0.0, 512.0, 1)
    for ours, theirs in zip(state(training), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    losses = training.run([sound])
    assert (losses["loss_scale"], losses["skipped_steps"]) == (512.0, 1)
    assert losses["gradient_norm"] > 0
    assert any((ours != theirs).any() for ours, theirs in zip(state(training), before, strict=True))


@pytest.mark.slow
def test_half_precision_follows_float32(tiny_config):
    """Unscaled, the gradient and its norm are those of float32, to three digits (measured: 0.006).

    Without momentum the first step is rate · clipped gradient.
    """
    half, full = (
        Training(stage_config(tiny_config.network, "joint", momentum=0.0, clip_norm=0.1, precision=each))
        for each in ("mixed_float16", "float32")
    )
    half.state.loss_scale.value.assign(256.0)
    start = full.weights()
    ours, theirs = half.run(make_batches(1)), full.run(make_batches(1))
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, rel=0.02), name
    assert {variable.dtype for variable in half.network.variables} == {"float32"}
    moved, rounded = full.weights(), half.weights()
    for path, value in moved.items():
        np.testing.assert_allclose(rounded[path], value, atol=5e-3, err_msg=path)
    trained = [variable.path for variable in full.network.trainable_variables]
    length = np.sqrt(sum(np.sum((moved[path] - start[path]) ** 2) for path in trained))
    assert theirs["gradient_norm"] > 0.1
    assert length == pytest.approx(0.05 * 0.1, rel=1e-2)


def test_the_loss_scale_doubles_after_finite_steps_and_halves_down_to_1():
    with choose_strategy("single", "cpu:1").scope():
        scale, applied = LossScale(value=2.0, growth_steps=2), tf.Variable(0)

    @tf.function
    def step(finite):
        return scale.apply_or_skip(finite, lambda: applied.assign_add(1), lambda: applied.assign_sub(1))

    results = []
    for finite in (True, True, False, False, False):
        helps = bool(step(tf.constant(finite)))
        results.append((float(scale.value), int(applied), int(scale.skipped), helps))
    # The third skipped step starts at scale 1: a smaller scale cannot help.
    assert results == [
        (2.0, 1, 0, False),
        (4.0, 2, 0, False),
        (2.0, 1, 1, True),
        (1.0, 0, 2, True),
        (1.0, -1, 3, False),
    ]


def test_moving_average_of_the_weights(tiny_config):
    """First update: rate 1 − min(0.9, 2/11) = 9/11."""
    copy = build_network(tiny_config.network)
    ema = WeightEMA(copy, 0.9)
    start = [variable.numpy() for variable in copy.variables]
    for variable in copy.variables:
        variable.assign(variable + 1.0)
    ema.update(choose_strategy("single", "cpu:1"))
    for shadow, first in zip(ema.shadows, start, strict=True):
        np.testing.assert_allclose(shadow.numpy(), first + 9 / 11, atol=1e-5)
    ema.restart()
    for shadow, variable in zip(ema.shadows, copy.variables, strict=True):
        np.testing.assert_array_equal(shadow.numpy(), variable.numpy())
