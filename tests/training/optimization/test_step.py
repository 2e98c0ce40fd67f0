import numpy as np
import pytest

from tests.marks import slow_case
from training.config import ExperimentConfig, StageConfig, StagesConfig, TargetConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from segdec.network.layers import ComputePolicy  # noqa: E402
from segdec.network.network import build_network  # noqa: E402
from tests.training.replicas import split_over_replicas  # noqa: E402
from training.distribution.strategies import choose_strategy  # noqa: E402
from training.optimization.ema import WeightEMA  # noqa: E402
from training.optimization.loss_scale import LossScale  # noqa: E402
from training.optimization.schedules import build_optimizer  # noqa: E402
from training.optimization.step import build_step  # noqa: E402
from training.optimization.train_state import TrainState  # noqa: E402
from training.stages import STAGES  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

STAGE_NAMES = [stage.name for stage in STAGES]


def make_batches(count, batch_size=4):
    random = np.random.default_rng(0)
    return [
        {
            "image": random.uniform(0, 255, (batch_size, 16, 16, 1)).astype(np.float32),
            "target": random.uniform(0, 1, (batch_size, 2, 2, 1)).astype(np.float32),
            "weight": random.uniform(0.5, 2, (batch_size, 2, 2, 1)).astype(np.float32),
            "label": random.integers(0, 2, batch_size).astype(np.int32),
        }
        for _ in range(count)
    ]


class Training:
    """One stage of a tiny network under a strategy."""

    def __init__(
        self,
        network_config,
        stage,
        strategy="single",
        decay=0.5,
        replicas=2,
        policy=None,
        loss_scale=None,
        **settings,
    ):
        keras.utils.set_random_seed(1)
        self.stage = STAGES[STAGE_NAMES.index(stage)]
        self.strategy = choose_strategy(strategy, f"cpu:{1 if strategy == 'single' else replicas}")
        settings = StageConfig(steps=10, **{"optimizer": "sgd", "learning_rate": 0.05, **settings})
        with self.strategy.scope():
            self.network = build_network(network_config, policy or ComputePolicy())
            steps_taken = tf.Variable(0, dtype=tf.int64)
            self.optimizer = build_optimizer(settings, stage, steps_taken)
            self.optimizer.build(self.stage.trainable_variables(self.network))
            self.loss_scale = None if loss_scale is None else LossScale(**loss_scale)
            self.ema = WeightEMA(self.network, decay)
        state = TrainState(self.network, {stage: self.optimizer}, self.ema, steps_taken, self.loss_scale)
        config = ExperimentConfig(
            stages=StagesConfig(**{stage: settings}), target=TargetConfig(positive_weight=2.0)
        )
        self.step = build_step(self.strategy, state, self.stage, config)

    def take(self, batches):
        """Takes a step a batch; returns the losses of the last one."""
        for batch in batches:
            losses = self.step(split_over_replicas(self.strategy, batch))
        return {name: float(loss) for name, loss in losses.items()}

    def weights(self):
        return {variable.path: np.asarray(variable.value).copy() for variable in self.network.variables}


def of_all_replicas(losses):
    """Without what each replica says of itself."""
    return {name: loss for name, loss in losses.items() if not name.startswith("replica_loss_")}


def changed(before, after):
    return {path for path in before if (before[path] != after[path]).any()}


@pytest.mark.parametrize(
    ("stage", "moving", "losses"),
    [
        ("segment", {"segmentation"}, {"loss", "segmentation_loss"}),
        ("decision", {"decision"}, {"loss", "decision_loss"}),
        ("joint", {"segmentation", "decision"}, {"loss", "segmentation_loss", "decision_loss"}),
    ],
)
@pytest.mark.parametrize(
    "strategy", ["single", slow_case("mirrored synchronised"), slow_case("central-storage synchronised")]
)
def test_a_stage_moves_its_variables_and_no_other_by_a_bit(tiny_config, strategy, stage, moving, losses):
    name, *synchronized = strategy.split()
    policy = ComputePolicy(synchronized=bool(synchronized))
    training = Training(tiny_config.network, stage, strategy=name, policy=policy)
    before = training.weights()
    taken = of_all_replicas(training.take(make_batches(2)))
    assert taken.keys() == losses | {"gradient_norm", "learning_rate"}
    moved = changed(before, training.weights())
    parts = {"segmentation": training.network.segmentation, "decision": training.network.decision}
    expected = {variable.path for name in moving for variable in parts[name].variables}
    assert moved == expected  # moving statistics included


def test_losses_fall(tiny_config):
    training = Training(tiny_config.network, "joint", optimizer="adam", learning_rate=1e-2)
    batch = make_batches(1)
    first = training.take(batch)["loss"]
    assert training.take(batch * 30)["loss"] < 0.8 * first


def test_joint_loss_is_the_weighted_sum(tiny_config):
    training = Training(tiny_config.network, "joint", segmentation_weight=0.25, decision_weight=3.0)
    losses = training.take(make_batches(1))
    assert losses["loss"] == pytest.approx(
        0.25 * losses["segmentation_loss"] + 3.0 * losses["decision_loss"], rel=1e-6
    )


@pytest.mark.parametrize(
    ("stage", "normalization"),
    [
        slow_case("segment", "instance"),
        slow_case("segment", "feature"),
        slow_case("decision", "instance"),
        slow_case("decision", "feature"),
        ("joint", "instance"),
        slow_case("joint", "feature"),
    ],
)
def test_mirrored_training_equals_one_device(tiny_config, stage, normalization):
    """With statistics per image, nothing may depend on how the batch is split. Float32 SGD: to 1e-6."""
    config = tiny_config.network.model_copy(update={"normalization": normalization})
    batches = make_batches(3)
    single, mirrored = Training(config, stage), Training(config, stage, strategy="mirrored")
    assert mirrored.strategy.num_replicas_in_sync == 2
    single_losses, mirrored_losses = single.take(batches), mirrored.take(batches)
    assert of_all_replicas(mirrored_losses) == pytest.approx(single_losses, rel=1e-5)
    ours, theirs = single.weights(), mirrored.weights()
    for path, value in ours.items():
        np.testing.assert_allclose(theirs[path], value, atol=2e-6, err_msg=path)


def test_uneven_replicas_give_the_gradient_of_the_global_batch(tiny_config):
    """Three images on two replicas: two and one."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    batches = make_batches(2, batch_size=3)
    single, mirrored = Training(config, "joint"), Training(config, "joint", strategy="mirrored")
    assert of_all_replicas(mirrored.take(batches)) == pytest.approx(single.take(batches), rel=1e-5)
    theirs = mirrored.weights()
    for path, value in single.weights().items():
        np.testing.assert_allclose(theirs[path], value, atol=2e-6, err_msg=path)


@pytest.mark.parametrize(
    ("strategy", "sizes"),
    [slow_case("mirrored", (2, 2)), slow_case("mirrored", (2, 1)), slow_case("central-storage", (1, 0))],
)
def test_each_replica_tells_the_loss_of_its_own_images(tiny_config, strategy, sizes):
    """The mean over them; 0 where there are none."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    settings = {"accumulate": 2, "weight_decay": 0.5, "weight_decay_kind": "l2"}
    batch = make_batches(1, batch_size=sum(sizes))[0]
    losses = Training(config, "joint", strategy=strategy, **settings).take([batch])
    for replica, size in enumerate(sizes):
        rows = slice(replica * sizes[0], replica * sizes[0] + size)
        own = {name: values[rows] for name, values in batch.items()}
        expected = Training(config, "joint", **settings).take([own])["loss"] if size else 0.0
        assert losses[f"replica_loss_{replica}"] == pytest.approx(expected, rel=1e-5)
    assert f"replica_loss_{len(sizes)}" not in losses


def test_moving_statistics_are_those_of_all_replicas(tiny_config):
    training = Training(tiny_config.network, "segment", strategy="mirrored")
    training.take(make_batches(3))
    start = Training(tiny_config.network, "segment").weights()
    for variable in training.network.segmentation.non_trainable_variables:
        first, second = (np.asarray(copy) for copy in variable.value.values)
        np.testing.assert_array_equal(first, second)
        assert (first != start[variable.path]).any()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["mirrored", "central-storage"])
def test_a_replica_without_images_leaves_numbers(tiny_config, strategy):
    """One image on two replicas; its statistics alone count."""
    training = Training(tiny_config.network, "joint", strategy=strategy)
    losses = training.take(make_batches(2, batch_size=1))
    assert np.isfinite(list(losses.values())).all()
    assert all(np.isfinite(value).all() for value in training.weights().values())


def kernel_paths(variables):
    return {variable.path for variable in variables if variable.path.endswith("/kernel")}


def squares(weights, paths):
    return sum(np.sum(weights[path].astype(float) ** 2) for path in paths)


@pytest.mark.parametrize(
    ("optimizer", "strategy"),
    [
        slow_case("adamw", "mirrored"),
        ("adam", "single"),
        slow_case("sgd", "single"),
        slow_case("sgd", "central-storage"),
    ],
)
def test_decoupled_decay_shrinks_the_kernels_of_the_stage_alone(tiny_config, strategy, optimizer):
    """By rate · decay, 10 % here, beside what the optimiser does; scales and biases take the plain step."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    settings = {"strategy": strategy, "optimizer": optimizer, "learning_rate": 1e-3}
    plain, decayed = (Training(config, "segment", weight_decay=decay, **settings) for decay in (0.0, 100.0))
    for training in (plain, decayed):
        for variable in training.network.trainable_variables:
            variable.value.assign(variable.value + 0.1)  # offsets and biases begin at 0, which none shrinks
    start, losses = plain.weights(), [training.take(make_batches(1)) for training in (plain, decayed)]
    assert losses[0].keys() == losses[1].keys()
    kernels = kernel_paths(plain.network.segmentation.variables)
    expected, ours = plain.weights(), decayed.weights()
    assert changed(expected, ours) == kernels
    for path in kernels:
        np.testing.assert_allclose(ours[path], expected[path] - 0.1 * start[path], atol=1e-6, err_msg=path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "images"),
    [
        ("mirrored", 3),
        ("mirrored", 1),
        ("single", 4),
        ("central-storage", 4),
        ("central-storage", 1),
    ],
)
def test_l2_in_the_loss_counts_once(tiny_config, strategy, images):
    """However many replicas, parts and images: of plain SGD it is then the decoupled decay."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    settings = {"strategy": strategy, "momentum": 0.0, "accumulate": 2, "weight_decay": 2.0}
    decoupled, l2 = (
        Training(config, "joint", weight_decay_kind=kind, **settings) for kind in ("decoupled", "l2")
    )
    start = l2.weights()
    batches = make_batches(1, batch_size=images)
    expected, losses = decoupled.take(batches), l2.take(batches)
    by_hand = 0.5 * 2.0 * squares(start, kernel_paths(l2.network.variables))
    assert losses["l2_loss"] == pytest.approx(by_hand, rel=1e-5)
    assert losses["loss"] == pytest.approx(expected["loss"] + by_hand, rel=1e-5)
    theirs = decoupled.weights()
    for path, value in l2.weights().items():
        np.testing.assert_allclose(value, theirs[path], atol=2e-6, err_msg=path)


@pytest.mark.parametrize("stage", ["segment", slow_case("decision")])
def test_l2_is_that_of_the_kernels_that_the_stage_trains(tiny_config, stage):
    part = "segmentation" if stage == "segment" else "decision"
    training = Training(tiny_config.network, stage, weight_decay=0.5, weight_decay_kind="l2")
    kernels = kernel_paths(getattr(training.network, part).variables)
    expected = 0.25 * squares(training.weights(), kernels)
    assert training.take(make_batches(1))["l2_loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_l2_is_not_rounded_where_the_network_computes_in_float16(tiny_config):
    settings = {"weight_decay": 2.0, "weight_decay_kind": "l2", "momentum": 0.0}
    half = Training(
        tiny_config.network,
        "joint",
        policy=ComputePolicy("mixed_float16"),
        loss_scale={"value": 256.0},
        **settings,
    )
    full = Training(tiny_config.network, "joint", **settings)
    ours, theirs = half.take(make_batches(1)), full.take(make_batches(1))
    assert ours["l2_loss"] == theirs["l2_loss"]
    assert ours["skipped_steps"] == 0
    for path, value in full.weights().items():
        np.testing.assert_allclose(half.weights()[path], value, atol=5e-3, err_msg=path)


def make_overflow(batch_size=4):
    """A batch whose last image has a gradient beyond float16, though a finite loss."""
    batch = make_batches(1, batch_size)[0]
    batch["target"][-1] = 1e6
    return batch


def state(training):
    """All that a skipped step must leave alone, bit for bit: copies on every replica included."""
    variables = [variable.value for variable in training.network.variables]
    variables += [variable.value for variable in training.optimizer.variables]
    variables += [*training.ema.shadows, *training.ema.variables]
    results = training.strategy.experimental_local_results
    return [np.asarray(copy).copy() for variable in variables for copy in results(variable)]


@pytest.mark.parametrize("strategy", ["single", slow_case("mirrored"), slow_case("central-storage")])
def test_an_overflow_on_one_replica_skips_the_step_on_all(tiny_config, strategy):
    settings = {"policy": ComputePolicy("mixed_float16"), "loss_scale": {"value": 1024.0}}
    training = Training(
        tiny_config.network, "segment", strategy=strategy, optimizer="adam", weight_decay=0.1, **settings
    )
    sound, overflow = make_batches(1)[0], make_overflow()
    assert training.take([sound])["skipped_steps"] == 0
    before = state(training)
    losses = training.take([overflow])
    assert all(np.isfinite(list(losses.values())))
    assert (losses["gradient_norm"], losses["loss_scale"], losses["skipped_steps"]) == (0.0, 512.0, 1)
    for ours, theirs in zip(state(training), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    losses = training.take([sound])
    assert (losses["loss_scale"], losses["skipped_steps"]) == (512.0, 1)
    assert losses["gradient_norm"] > 0
    assert any((ours != theirs).any() for ours, theirs in zip(state(training), before, strict=True))


@pytest.mark.slow
def test_an_overflow_that_no_scale_cures_is_not_hidden(tiny_config):
    settings = {"policy": ComputePolicy("mixed_float16"), "loss_scale": {"value": 1.0}}
    training = Training(tiny_config.network, "segment", **settings)
    batch = make_overflow()
    batch["target"][-1] = 1e9
    losses = training.take([batch])
    assert not np.isfinite(losses["gradient_norm"])
    assert losses["loss_scale"] == 1.0


@pytest.mark.slow
def test_the_scale_grows_after_sound_steps(tiny_config):
    settings = {
        "policy": ComputePolicy("mixed_float16"),
        "loss_scale": {"value": 8.0, "growth_steps": 2},
    }
    training = Training(tiny_config.network, "joint", strategy="mirrored", **settings)
    batch = make_batches(1)
    assert [training.take(batch)["loss_scale"] for _ in range(4)] == [8.0, 16.0, 16.0, 32.0]


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "digits"), [("mixed_float16", 0.02), ("mixed_bfloat16", 0.16)])
def test_half_precision_follows_float32(tiny_config, precision, digits):
    """Unscaled, the gradient and its norm are those of float32, to the digits that the precision has.

    Measured 0.006 and 0.054 of the norm: bfloat16 has three bits fewer.
    """
    scale = {"loss_scale": {"value": 256.0}} if precision == "mixed_float16" else {}
    half = Training(tiny_config.network, "joint", policy=ComputePolicy(precision), clip_norm=0.1, **scale)
    full = Training(tiny_config.network, "joint", clip_norm=0.1)
    ours, theirs = half.take(make_batches(1)), full.take(make_batches(1))
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, rel=digits), name
    assert {variable.dtype for variable in half.network.variables} == {"float32"}
    for path, value in full.weights().items():
        np.testing.assert_allclose(half.weights()[path], value, atol=5e-3, err_msg=path)


@pytest.mark.slow
def test_the_norm_is_that_of_the_global_gradient_before_clipping(tiny_config):
    """Without momentum the first step is rate · gradient."""
    config = tiny_config.network.model_copy(update={"normalization": "instance"})
    for clip_norm in (None, 1e-3):
        training = Training(config, "joint", strategy="mirrored", momentum=0.0, clip_norm=clip_norm)
        start = training.weights()
        norm = training.take(make_batches(1))["gradient_norm"]
        moved = training.weights()
        length = np.sqrt(sum(np.sum((moved[path] - start[path]) ** 2) for path in start))
        assert length == pytest.approx(0.05 * min(norm, clip_norm or norm), rel=1e-2)
        assert norm > 0.01


def averaged_weights(training, tiny_config):
    copy = build_network(tiny_config.network)
    training.ema.copy_to(copy)
    return {variable.path: variable.numpy() for variable in copy.variables}


def test_average_follows_the_weights_and_steps_aside(tiny_config):
    training = Training(tiny_config.network, "segment", decay=0.9)
    start = training.weights()
    training.take(make_batches(1))  # first update: rate 1 − min(0.9, 2/11) = 9/11
    raw = training.weights()
    averaged = averaged_weights(training, tiny_config)
    assert not changed(raw, training.weights())
    for path, value in averaged.items():
        np.testing.assert_allclose(value, start[path] + (raw[path] - start[path]) * 9 / 11, atol=1e-6)
    assert changed(raw, averaged)
    training.ema.restart()
    assert not changed(raw, averaged_weights(training, tiny_config))
