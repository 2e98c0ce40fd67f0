import numpy as np

from api.labelling.edges import MIN_PIXELS, refine_edge


def test_the_edge_moves_to_where_the_colour_changes():
    """A dark square of 20 px, found two pixels too large."""
    colours = np.full((60, 60, 1), 80, np.float32)
    colours[20:40, 20:40] = 30
    found = np.zeros((60, 60), np.uint8)
    found[18:42, 18:42] = 1
    values = np.full((60, 60), -0.5, np.float32)
    values[found > 0] = 0.5
    refine_edge(values, found, colours)
    np.testing.assert_array_equal(values > 0, colours[..., 0] == 30)
    assert values[0, 0] == -0.5  # beyond the ring


def test_a_tiny_segmentation_stays():
    values = np.full((20, 20), -0.5, np.float32)
    found = np.zeros((20, 20), np.uint8)
    found[3, 3 : 3 + MIN_PIXELS - 4] = 1
    before = values.copy()
    refine_edge(values, found, np.random.default_rng(0).random((20, 20, 3), np.float32))
    np.testing.assert_array_equal(values, before)
