"""The memory of good surface against the same computation with numpy."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import cv2
import keras

from segdec.config import NetworkConfig
from segdec.network.network import build_network, feature_inputs
from segdec.network.surface_memory import NEAREST, PATCHES, POSITIONS, Deviation, NearestPatch, build_memory
from tests.tiny_encoder import load_encoder

ENGINES = ("openvino", "tensorflow", "tensorflow-bfloat16", "openvino-int8")


@pytest.mark.parametrize("at_once", [3, 7])
def test_distance_to_the_nearest_patch(at_once, monkeypatch):
    monkeypatch.setattr("segdec.network.surface_memory.PATCHES_AT_ONCE", at_once)
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 3, 5, 8)).astype(np.float32)
    patches = random.normal(size=(7, 8)).astype(np.float32)
    x[0, 1, 2] = patches[4]  # a distance of 0
    layer = NearestPatch(7, folds=2)
    layer.build(x.shape)
    for fold, own in {None: patches, 0: patches + 1, 1: patches - 1}.items():
        layer.set_patches(own, fold)
        distances = np.sqrt(((x[..., None, :] - own) ** 2).sum(-1)).min(-1)
        found = np.exp(layer(x, without=fold))[..., 0]
        np.testing.assert_allclose(found, np.maximum(distances, 1e-3), rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize(("height", "width"), [(POSITIONS, 2 * POSITIONS), (10, 13), (3, 1)])
def test_deviation_depends_on_the_position(height, width):
    random = np.random.default_rng(0)
    layer, x = Deviation(), random.normal(size=(2, height, width, 1)).astype(np.float32)
    layer.build(x.shape)
    usual, spread = random.uniform(0.5, 1.0, (2, POSITIONS, POSITIONS)).astype(np.float32)
    layer.set_weights([usual, spread, np.float32(2.5)])
    usual, spread = (
        cv2.resize(grid, (width, height), interpolation=cv2.INTER_NEAREST)[..., None]
        for grid in (usual, spread)
    )
    expected = (x - usual) / spread - 2.5
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def network(tiny_encoder):
    """A network with a memory of random patches; tests do not change it."""
    keras.utils.set_random_seed(3)
    return build_network(NetworkConfig(preset="mobilenet", encoder=tiny_encoder, heads=0, memory=20))


def test_the_score_is_the_highest_mask_score(network):
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    outputs = network(images)
    assert outputs["mask_logits"].shape == (2, 5, 7, 1)
    highest = np.max(outputs["mask_logits"], axis=(1, 2, 3))
    np.testing.assert_array_equal(outputs["class_logits"], np.stack([0 * highest, highest], axis=1))
    assert not network.heads and not network.decisions and not network.memory.trainable_variables


def test_the_surface_is_the_mean_patch(network):
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    part = keras.Model(network.memory.input, network.memory.get_layer(PATCHES).output)
    patches = part(network.encoder(images)).numpy()
    found = network(images)["surface"]
    np.testing.assert_allclose(found, patches.mean(axis=(1, 2)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(network.without_fold(1)(images)["surface"], found, rtol=1e-4, atol=1e-6)


def test_a_saved_memory_is_the_same(network, tmp_path):
    network.memory.save_weights(tmp_path / "memory.weights.h5")
    features = network.encoder(np.random.default_rng(2).integers(0, 256, (1, 32, 32, 1)).astype(np.float32))
    other = build_memory(feature_inputs(network.encoder), network.config, folded=False)
    other.load_weights(tmp_path / "memory.weights.h5")
    for one, saved in zip(other(features), network.memory(features), strict=True):
        np.testing.assert_array_equal(one, saved)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_each_engine_gives_the_results_of_the_network(
    tiny_encoder, tiny_encoder_weights, tmp_path, name, monkeypatch
):
    """For one size and for others; with reduced precision within a tenth of the deviation."""
    monkeypatch.setattr("segdec.network.surface_memory.PATCHES_AT_ONCE", 20)  # in two products
    engines = pytest.importorskip("segdec.engines")
    pytest.importorskip("nncf" if name.endswith("int8") else engines.ENGINES[name].package)
    from segdec.export.model_export import write_engine

    keras.utils.set_random_seed(4)
    fields = {"encoder": tiny_encoder, "heads": 2, "memory": 30, "adapter_width": 8, "feature_width": 8}
    config = NetworkConfig(preset="mobilenet", **fields, pooled_score=True)
    network, size = build_network(config), (48, 72)
    load_encoder(network, tiny_encoder_weights)
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (4, *size, 1), dtype=np.uint8)
    images = np.sort(images, axis=1)  # patches that differ more than noise
    features = network.segmentation.get_layer("encoder")(images.astype(np.float32))
    patches = keras.Model(network.memory.input, network.memory.get_layer(PATCHES).output)(features)
    flat = np.reshape(patches, (-1, patches.shape[-1]))
    network.memory.get_layer(NEAREST).set_patches(flat[random.permutation(len(flat))[:30]])
    network.combination.set_combination(np.array([0.5, 0.2, 0.3, 0.5]), 0.1)
    pooled = keras.Model(network.input, network.get_layer("feature_statistics").output)(images)
    kernel = random.normal(size=pooled.shape[1]) / np.std(pooled, axis=0) / np.sqrt(pooled.shape[1])
    center = np.mean(pooled, axis=0)
    network.pooled_score.set_maps([(kernel, -center @ kernel)] * 3, center, (-9, 9))

    write_engine(name, network, tmp_path / name, list(images))
    if name.startswith("openvino"):
        check_product_in_float32(tmp_path / name)
    loaded = engines.ENGINES[name].load(tmp_path / name, size=size)
    tolerance = 1e-4 if engines.ENGINES[name].precision == "float32" else 0.1
    for asked in (images, images[:1, :40, :56]):
        expected, answer = network(asked, training=False), loaded.infer(asked)
        exact = np.asarray(expected["class_logits"])
        assert np.abs(answer.classes - exact).max() < tolerance * np.abs(exact).max()
        if tolerance < 0.1:
            np.testing.assert_allclose(answer.mask, expected["mask_logits"], rtol=1e-4, atol=1e-4)
        if not name.endswith("int8"):
            np.testing.assert_allclose(answer.surface, expected["surface"], atol=0.02)


def check_product_in_float32(folder):
    """OpenVINO rounds the result of a convolution with bias to bfloat16, but not that of a limit after it."""
    from segdec.engines.openvino_package import openvino_core

    nodes = openvino_core().read_model(folder / "model.xml").get_ordered_ops()
    assert ["Clamp", "Add", "Convolution"] in [
        kinds_before(node, 3) for node in nodes if node.get_type_name() == "ReduceMax"
    ]


def kinds_before(node, count):
    kinds = []
    for _ in range(count):
        node = node.input_value(0).get_node()
        kinds.append(node.get_type_name())
    return kinds
