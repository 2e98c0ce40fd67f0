"""The vision transformer takes any size, and exports give its results. See `test_transformer_weights`."""

import numpy as np
import pytest

from segdec.config import InputConfig, ModelConfig, NetworkConfig

keras = pytest.importorskip("keras")

from segdec.network.vision_transformer import PositionEmbedding, build_vision_transformer  # noqa: E402


def test_maps_have_their_strides():
    """At a size that is not square and not divisible by 14."""
    height, width = 48, 80
    network = build_vision_transformer(8, 3, heads=2, grid=5)
    maps = network(np.random.default_rng(5).normal(size=(2, height, width, 3)), training=False)
    assert [one.shape for one in maps] == [(2, height // s, width // s, 8) for s in (4, 8, 16)]


def test_positions_of_the_trained_size_are_unchanged():
    layer = PositionEmbedding(5)
    added = layer(np.zeros((1, 5, 5, 3), np.float32))[0, 0, 1:]
    np.testing.assert_allclose(added, np.reshape(layer.positions, (-1, 3)), atol=1e-6)


# === Export ===


HEAD = {"preset": "mobilenet", "adapter_width": 8, "feature_width": 8, "decision_widths": (4, 4, 4)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "memory"), [("openvino", 50), ("tensorflow-bfloat16", 0), ("openvino-int8", 50)]
)
def test_exports_give_the_results_of_the_network(tiny_transformer, tmp_path, engine, memory):
    """At sides that need padding; the engines with reduced precision within a tenth of the deviation.

    See also `test_exports_of_all_encoders_pass_the_check_and_equal_the_network`.
    """
    pytest.importorskip("openvino" if engine.startswith("openvino") else "tensorflow")
    if engine.endswith("int8"):
        pytest.importorskip("nncf")
    from segdec.engines import ENGINES
    from segdec.engines.tensorflow import NetworkEngine
    from segdec.export.model_export import check_parity, write_engine
    from segdec.network.network import build_network

    keras.utils.set_random_seed(2)
    own = {"heads": 0 if memory else 1, "memory": memory}
    config = NetworkConfig(**HEAD, encoder=tiny_transformer, input_channels=3, **own)
    network, size = build_network(config), (56, 88)
    images = np.random.default_rng(5).integers(0, 256, (2, *size, 3), dtype=np.uint8)
    network(images.astype(np.float32), training=True)
    write_engine(engine, network, tmp_path / engine, list(images))
    loaded, reference = ENGINES[engine].load(tmp_path / engine, size=size), NetworkEngine(network)
    if ENGINES[engine].precision == "float32":
        model = ModelConfig(network=config, input=InputConfig(), classes=("good", "defect"))
        check_parity(reference, loaded, model, size)
    expected, found = reference.infer(images).mask, loaded.infer(images).mask
    assert np.abs(found - expected).mean() < 0.1 * expected.std()
