import numpy as np
import pytest

from api.labelling.pixel_features import describe_pixels


@pytest.mark.parametrize(("shape", "depth"), [((20, 30), 15), ((20, 30, 1), 15), ((20, 30, 3), 19)])
def test_shapes(shape, depth):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    features = describe_pixels(image)
    assert features.shape == (20, 30, depth)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


def test_a_constant_photograph_has_the_same_features_everywhere():
    features = describe_pixels(np.full((16, 16), 128, np.uint8))
    assert np.ptp(features, axis=(0, 1)) == pytest.approx(0, abs=1e-3)
    assert features[0, 0, 0] == pytest.approx(128 * 100 / 255, abs=1e-3)
