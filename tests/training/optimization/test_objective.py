"""What a stage minimises, on a tiny network, worked out anew from its logits."""

import numpy as np
import pytest

from segdec.config import NetworkConfig
from tests.marks import slow_case
from training.config import ExperimentConfig, LossConfig, StageConfig, StagesConfig, TargetConfig

tf = pytest.importorskip("tensorflow")

from segdec.network.network import build_network  # noqa: E402
from training.optimization.losses import box_weight, segmentation_loss  # noqa: E402
from training.optimization.objective import stage_losses  # noqa: E402
from training.stages import STAGES  # noqa: E402

JOINT = STAGES[-1]
SIDE, IMAGES = 16, 3


@pytest.fixture(scope="module", params=[8, 2])
def network(request, tiny_config):
    changes = {"normalization": "instance", "mask_stride": request.param}
    return build_network(tiny_config.network.model_copy(update=changes))


def make_batch(stride):
    random = np.random.default_rng(0)
    cells = (IMAGES, SIDE // stride, SIDE // stride, 1)
    return {
        "image": random.uniform(0, 255, (IMAGES, SIDE, SIDE, 1)).astype(np.float32),
        "target": random.uniform(0, 1, cells).astype(np.float32),
        "weight": random.uniform(0.5, 2, cells).astype(np.float32),
        "label": np.array([0, 1, 1], np.int32),
        "has_boxes": np.array([0, 0, 1], np.int32),
    }


def losses(network, *, target=None, terms=None, batch=None, steps_taken=0, **settings):
    batch = batch or make_batch(network.config.mask_stride)
    config = ExperimentConfig(
        stages=StagesConfig(joint=StageConfig(steps=8, **settings)),
        target=target or TargetConfig(positive_weight=3.0),
        loss=terms or LossConfig(),
    )
    losses = stage_losses(network, JOINT, config, batch, steps_taken)
    return {name: loss.numpy() for name, loss in losses.items()}


def expected_segmentation(network, positive_weight):
    factor, batch = 8 // network.config.mask_stride, make_batch(network.config.mask_stride)
    ((_, coarse, fine),) = network.segment(batch["image"], training=True)
    maps = batch["target"], batch["weight"]
    pooled = [one.reshape(IMAGES, 2, factor, 2, factor, 1).mean(axis=(2, 4)) for one in maps]
    losses = [
        segmentation_loss(
            logits,
            target,
            weight * box_weight(logits, target, tf.constant(batch["has_boxes"])),
            LossConfig(),
            positive_weight,
        ).numpy()
        for logits, (target, weight) in ((fine, maps), (coarse, pooled))
    ]
    return losses[0] if factor == 1 else np.mean(losses, axis=0)


@pytest.mark.parametrize(("weighting", "factor"), [slow_case("uniform", 3.0), ("distance", 1.0)])
def test_a_refined_mask_is_trained_at_both_sizes(network, weighting, factor):
    """Where the weights of the pixels hold the weight of defects, the entropy has none."""
    target = TargetConfig(positive_weight=3.0, weighting=weighting)
    ours = losses(network, target=target)["segmentation_loss"]
    np.testing.assert_allclose(ours, expected_segmentation(network, factor), rtol=1e-5)


def test_an_image_of_unknown_mask_trains_the_decision_alone(network):
    batch = make_batch(network.config.mask_stride)
    batch["target"][1], batch["weight"][1] = 0, 0
    ours = losses(network, batch=batch, terms=LossConfig(focal_gamma=2, dice_weight=1))
    assert (ours["segmentation_loss"] > 0).tolist() == [True, False, True]
    assert ours["loss"][1] == ours["decision_loss"][1] > 0


def test_l2_is_that_of_the_trained_kernels(network):
    ours = losses(network, weight_decay=0.5, weight_decay_kind="l2")
    kernels = [variable.numpy() for variable in network.variables if variable.path.endswith("/kernel")]
    expected = 0.25 * sum(np.sum(kernel.astype(float) ** 2) for kernel in kernels)
    np.testing.assert_allclose(ours["l2_loss"], [expected] * IMAGES, rtol=1e-5)


@pytest.mark.parametrize(("steps_taken", "balance"), [(0, 1.0), (7, 0.125)])
def test_dynamic_balance_moves_from_segmentation_to_decision(network, steps_taken, balance):
    step = tf.Variable(steps_taken, dtype=tf.int64)
    weights = {"segmentation_weight": 0.5, "decision_weight": 4.0}
    ours = losses(network, steps_taken=step, balance="dynamic", **weights)
    expected = balance * 0.5 * ours["segmentation_loss"] + (1 - balance) * 4.0 * ours["decision_loss"]
    np.testing.assert_allclose(ours["loss"], expected, rtol=1e-6)


# === Heads ===


@pytest.fixture(scope="module")
def heads(tiny_encoder):
    widths = {"adapter_width": 4, "feature_width": 4, "feature_kernel": 3, "decision_widths": (2, 2)}
    return build_network(NetworkConfig(encoder=tiny_encoder, **widths, heads=2))


def test_an_example_trains_the_heads_of_the_other_folds_only(heads):
    """Gradients of the first example alone, whose fold the second head is trained without."""
    batch = {**make_batch(8), "head_weight": np.array([[1, 0], [0, 1], [1, 1]], np.float32)}
    config = ExperimentConfig(stages=StagesConfig(joint=StageConfig(steps=8)))
    with tf.GradientTape() as tape:
        loss = stage_losses(heads, JOINT, config, batch)["loss"][0]
    parts = [(head, decide) for head, decide in zip(heads.heads, heads.decisions, strict=True)]
    variables = [[one.value for model in part for one in model.trainable_variables] for part in parts]
    first, second = tape.gradient(loss, variables, unconnected_gradients="zero")
    assert any(np.abs(gradient).max() > 0 for gradient in first)
    assert not any(np.abs(gradient).max() > 0 for gradient in second)


def test_the_loss_is_the_mean_of_the_heads(heads):
    batch = {**make_batch(8), "head_weight": np.ones((IMAGES, 2), np.float32)}
    both = losses(heads, batch=batch)
    batch["head_weight"][:, 1] = 0
    first = losses(heads, batch=batch)
    batch["head_weight"][:] = [0, 1]
    second = losses(heads, batch=batch)
    np.testing.assert_allclose(both["loss"], first["loss"] + second["loss"], rtol=1e-5)
