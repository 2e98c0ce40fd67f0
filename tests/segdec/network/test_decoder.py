import cv2
import numpy as np
import pytest

from segdec.config import NetworkConfig

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from segdec.network.network import build_network, build_segmentation  # noqa: E402

TINY = {
    "segmentation_widths": ((4,), (4,), (4,)),
    "feature_width": 6,
    "feature_kernel": 3,
    "decision_widths": (4, 4, 4),
    "decoder_widths": (5, 4, 3),
}
IMAGES = np.random.default_rng(0).uniform(0, 255, (2, 16, 24, 1)).astype(np.float32)


@pytest.fixture(scope="module", params=[4, 1])
def network(request):
    """An untrained network of each stride; tests leave it as it is."""
    return build_network(NetworkConfig(**TINY, mask_stride=request.param))


def test_untrained_decoder_upsamples_the_coarse_mask(network):
    stride = network.config.mask_stride
    features, coarse, fine = (np.asarray(output) for output in network.segment(IMAGES, training=False)[0])
    assert features.shape == (2, 2, 3, 6)
    assert fine.shape == (2, 16 // stride, 24 // stride, 1)
    expected = [cv2.resize(one, (24 // stride, 16 // stride)) for one in coarse[..., 0]]
    np.testing.assert_allclose(fine[..., 0], expected, atol=1e-6)


def test_gradient_reaches_the_decoder_after_one_step():
    part = build_segmentation(NetworkConfig(**TINY, mask_stride=1))
    decoder = [one for one in part.layers if one.name.startswith(("decoder", "mask_correction"))]
    kernels = {layer.name: layer.kernel for layer in decoder if hasattr(layer, "kernel")}

    def reached():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((part(IMAGES, training=True)["head"][2] - 1.0) ** 2)
        gradients = tape.gradient(loss, {name: kernel.value for name, kernel in kernels.items()})
        for name, kernel in kernels.items():
            kernel.assign(kernel - 0.1 * gradients[name])
        return {name for name, gradient in gradients.items() if np.abs(gradient).max() > 0}

    assert reached() == {"mask_correction"}  # behind its zeros
    assert reached() == kernels.keys()


# === Receptive field ===


@pytest.mark.parametrize(("stride", "side"), [(8, 52), (2, 84)])
def test_receptive_field_matches_an_impulse_response(stride, side):
    """With positive weights and no offset, a bright column is seen wherever it counts."""
    config = NetworkConfig(**TINY, mask_stride=stride)
    part = build_segmentation(config)
    for variable in part.trainable_variables:
        if variable.path.endswith("kernel"):
            variable.assign(np.full(variable.shape, 1.0 / np.prod(variable.shape[:3])))
    columns, cell = 136, 8  # the cell from column 64 on, in the middle
    impulses = (255 * np.eye(columns, dtype=np.float32))[:, None, :, None].repeat(8, axis=1)
    mask = np.asarray(part(impulses)["head"][2])  # [columns, 8/s, 136/s, 1]
    seen = mask[:, :, cell * 8 // stride : (cell + 1) * 8 // stride].max(axis=(1, 2, 3)) > 0
    assert config.receptive_field == side
    assert np.flatnonzero(seen).tolist() == list(range(68 - side // 2, 68 + side // 2))
