"""The memory of good surface against the same computation with numpy."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import cv2
import keras

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.network.folding import fold_network
from segdec.network.network import build_network
from segdec.network.surface_memory import NEAREST, PATCHES, POSITIONS, Deviation, NearestPatch
from tests.marks import slow_case

ENGINES = (
    "tensorflow",
    "openvino",
    slow_case("tensorflow-bfloat16"),
    slow_case("openvino-bfloat16"),
    slow_case("openvino-int8"),
)

pytestmark = pytest.mark.usefixtures("tensorflow_devices", "shared_application")


def test_distance_to_the_nearest_patch():
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


def test_folding_keeps_the_memory(network):
    images = np.random.default_rng(2).integers(0, 256, (2, 40, 56, 1)).astype(np.float32)
    expected, found = network(images, training=False), fold_network(network)(images, training=False)
    for name, answer in expected.items():
        np.testing.assert_allclose(found[name], answer, rtol=1e-4, atol=1e-4)


def test_a_saved_network_is_the_same(network, tmp_path):
    network.save_weights(tmp_path / "network.weights.h5")
    other = build_network(network.config)
    other.load_weights(tmp_path / "network.weights.h5")
    images = np.random.default_rng(2).integers(0, 256, (1, 32, 32, 1)).astype(np.float32)
    np.testing.assert_array_equal(other(images)["mask_logits"], network(images)["mask_logits"])


@pytest.mark.parametrize("name", ENGINES)
def test_each_engine_gives_the_results_of_the_network(tiny_encoder, tmp_path, name):
    """For one size, for others and in batches; with reduced precision within a tenth of the deviation."""
    engines = pytest.importorskip("segdec.engines")
    pytest.importorskip("nncf" if name.endswith("int8") else engines.ENGINES[name].package)
    from segdec.engines.tensorflow import NetworkEngine
    from segdec.export.model_export import check_parity, write_engine

    keras.utils.set_random_seed(4)
    fields = {"encoder": tiny_encoder, "heads": 2, "memory": 30}
    network, size = build_network(NetworkConfig(preset="mobilenet", **fields)), (48, 72)
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (4, *size, 1), dtype=np.uint8)
    images = np.sort(images, axis=1)  # patches that differ more than noise
    features = network.segmentation.get_layer("encoder")(images.astype(np.float32))
    patches = keras.Model(network.memory.input, network.memory.get_layer(PATCHES).output)(features)
    flat = np.reshape(patches, (-1, patches.shape[-1]))
    network.memory.get_layer(NEAREST).set_patches(flat[random.permutation(len(flat))[:30]])
    network.combination.set_combination(np.array([0.5, 0.2, 0.3]), 0.1)

    write_engine(name, network, tmp_path / name, list(images))
    loaded, reference = engines.ENGINES[name].load(tmp_path / name, size=size), NetworkEngine(network)
    if engines.ENGINES[name].precision == "float32":
        check_parity(
            reference,
            loaded,
            ModelConfig(network=network.config, input=InputConfig(), classes=("good", "bad")),
            size,
        )
    expected, found = reference.infer(images), loaded.infer(images)
    assert np.abs(found.classes - expected.classes).max() < 0.1 * np.abs(expected.classes).max()
    assert expected.surface is not None and expected.surface.shape == (4, 96)
    if not name.endswith("int8"):
        np.testing.assert_allclose(found.surface, expected.surface, atol=0.02)
