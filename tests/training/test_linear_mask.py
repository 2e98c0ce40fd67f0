"""Linear maps from features to mask logits, fitted to features that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from segdec.config import NetworkConfig
from segdec.encoders import JOINED_STRIDES
from segdec.network.layers import BilinearUpsampling
from segdec.network.network import build_network
from tests.segdec.network.trained_encoder import HEAD
from training.config import ExperimentConfig
from training.linear_mask import LINEAR_STEPS, LinearMasks, _interpolate, fit_linear_masks, fit_logistic

SIDE = 6


def test_the_bias_is_the_log_odds_of_the_weighted_targets():
    """Features without information: positive part 3 · (2 · 1 + 1 · 0.5) = 7.5, negative part 1 · 0.5 + 4."""
    target, weight = np.array([1, 0.5, 0], np.float32), np.array([2, 1, 4], np.float32)
    fitted = fit_logistic(np.zeros((3, 2), np.float32), target, weight, 3.0, np.zeros(3, np.float32))
    np.testing.assert_allclose(fitted, [0, 0, np.log(7.5 / 4.5)], atol=1e-3)


def test_cells_between_coarse_ones_are_interpolated_as_in_the_network():
    grid = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    rows, columns = (axis.ravel() for axis in np.indices((6, 8)))
    enlarged = np.asarray(BilinearUpsampling(2)(grid[None]))[0]
    np.testing.assert_allclose(_interpolate(grid, rows, columns, 2).reshape(6, 8, 2), enlarged, rtol=1e-5)


class Examples:
    """Examples of two folds; a cell is defective where the fold's feature is high. The last has no mask."""

    labels, supervised = (1, 0, 1, 0, 1), (True, True, True, True, False)

    def __len__(self):
        return len(self.labels)

    def fold(self, index):
        return 1 if index < 2 else 2

    def load_unaugmented(self, index):
        random = np.random.default_rng(index)
        features = {
            f"joined_{stride}": random.normal(size=(SIDE // (stride // 8 or 1),) * 2 + (2,)).astype(
                np.float16
            )
            for stride in JOINED_STRIDES
        }
        high = features["joined_8"][..., self.fold(index) - 1 : self.fold(index)] > 0.5
        target = (high & bool(self.labels[index])).astype(np.float32)
        return {**features, "target": target, "weight": np.ones_like(target)}


@pytest.mark.parametrize("balanced", [True, False])
def test_a_head_learns_nothing_from_its_own_fold(balanced):
    config = SimpleNamespace(
        seed=0,
        balanced=balanced,
        network=SimpleNamespace(heads=2),
        target=SimpleNamespace(cross_entropy_weight=1.0),
    )
    without_first, without_second = fit_linear_masks(Examples(), Examples(), config)[:, 2:4]
    assert np.abs(without_first).argmax() == 1 and np.abs(without_second).argmax() == 0
    config.network.heads = 1
    assert (fit_linear_masks(Examples(), Examples(), config)[0, 2:4] > 0).all()


@pytest.mark.parametrize(("labels", "weights"), [((1, 0, 0, 0), (1, 1)), ((1, 0, 1, 0), (1, 0))])
def test_a_head_without_a_defect_that_counts_has_a_map_of_zero(labels, weights):
    """The second fold has no defect, or all of it is ignored; `weights` are those of the folds."""

    class Counted(Examples):
        def load_unaugmented(self, index):
            arrays = super().load_unaugmented(index)
            return {**arrays, "weight": arrays["weight"] * weights[self.fold(index) - 1]}

    examples = Counted()
    examples.labels = (*labels, 1)
    network = {"preset": "mobilenet", "heads": 2, "memory": 9}
    config = ExperimentConfig(network=network, stages={"joint": {"steps": 1}})
    without_first, without_second = fit_linear_masks(examples, examples, config)
    assert not without_first.any()
    assert np.abs(without_second[2:4]).argmax() == 0


def test_without_a_known_mask_the_maps_are_zero():
    examples = Examples()
    examples.supervised = (False, True, False, True, False)
    config = ExperimentConfig(
        network={"preset": "mobilenet", "heads": 3, "memory": 9}, stages={"joint": {"steps": 1}}
    )
    assert not fit_linear_masks(examples, examples, config).any()


def test_a_bounded_number_of_examples_is_read(monkeypatch):
    """One good and one defective; the defective one without a mask is not read."""
    read = []

    class Recorded(Examples):
        def load_unaugmented(self, index):
            read.append(index)
            return super().load_unaugmented(index)

    monkeypatch.setattr("training.linear_mask.MAX_EXAMPLES", 1)
    network = {"preset": "mobilenet", "heads": 3, "memory": 9}
    config = ExperimentConfig(network=network, stages={"joint": {"steps": 1}})
    fit_linear_masks(Recorded(), Recorded(), config)
    assert read == [1, 0]


def test_the_maps_are_the_first_mask_and_decrease_to_zero(tiny_encoder):
    network = build_network(NetworkConfig(**HEAD, encoder=tiny_encoder, linear_mask=True))
    random = np.random.default_rng(0)
    features = {
        name: random.normal(size=(1, 8, 8, one.shape[3])) for name, one in network.encoder.output.items()
    }
    features["joined_16"] = features["joined_16"][:, ::2, ::2]
    channels = sum(features[f"joined_{stride}"].shape[3] for stride in JOINED_STRIDES)
    fitted = random.normal(size=(1, channels + 1)).astype(np.float32)
    rows, columns = (axis.ravel() for axis in np.indices((8, 8)))
    parts = [_interpolate(features[f"joined_{s}"][0], rows, columns, s // 8 or 1) for s in JOINED_STRIDES]
    expected = np.concatenate(parts, axis=1) @ fitted[0, :-1] + fitted[0, -1]
    linear = LinearMasks(network, fitted)
    for steps, share in [(0, 1.0), (LINEAR_STEPS // 2, 0.5), (LINEAR_STEPS, 0.0), (LINEAR_STEPS + 9, 0.0)]:
        linear.set_after(steps)
        _, coarse, mask = network.segment(features, training=False)[0]
        np.testing.assert_allclose(np.ravel(mask), share * expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(mask, coarse)
    assert not any("linear" in variable.path for variable in network.trainable_variables)
