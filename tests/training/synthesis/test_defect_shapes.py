import numpy as np
import pytest

from training.synthesis.defect_shapes import clip_to_image, draw_blob, draw_crack, perlin_noise


def test_noise_is_zero_on_the_corners_and_bounded_between():
    """Gradient noise: at a corner only its own gradient counts, over no distance."""
    noise = perlin_noise(np.random.default_rng(0), 41, 65, 8.0)
    assert noise.shape == (41, 65)
    np.testing.assert_allclose(noise[::8, ::8], 0.0, atol=1e-6)
    assert 0.3 < np.abs(noise).max() <= 1.0


def test_a_shape_is_cut_at_the_border():
    opacity = np.arange(25, dtype=np.float32).reshape(5, 5)
    shape = clip_to_image((10, 8), (1, 7), opacity)
    assert (shape.rows, shape.columns) == (slice(0, 4), slice(5, 8))
    np.testing.assert_array_equal(shape.opacity, opacity[1:, :3])


@pytest.mark.parametrize("place", [(0, 0), (15, 39), (31, 20)])
@pytest.mark.parametrize("length", [3.0, 20.0, 90.0])
def test_shapes_lie_within_the_image(place, length):
    random = np.random.default_rng(3)
    for shape in (
        draw_blob(random, (32, 40), place, length, 0.3),
        draw_crack(random, (32, 40), place, length, 2.0),
    ):
        assert 0 <= shape.rows.start < shape.rows.stop <= 32
        assert 0 <= shape.columns.start < shape.columns.stop <= 40
        extent = shape.rows.stop - shape.rows.start, shape.columns.stop - shape.columns.start
        assert shape.opacity.shape == extent
        assert shape.opacity.dtype == np.float32
        assert 0.0 <= shape.opacity.min() <= shape.opacity.max() <= 1.0


def test_a_blob_covers_its_middle_and_fades_before_its_window_ends():
    for seed in range(20):
        shape = draw_blob(np.random.default_rng(seed), (200, 200), (100, 100), 40.0, 0.2)
        assert shape.opacity.max() == 1.0
        border = (shape.opacity[0], shape.opacity[-1], shape.opacity[:, 0], shape.opacity[:, -1])
        assert max(side.max() for side in border) == 0.0
