import numpy as np

from training.data.decoys import find_striking_place, move_striking_place


def surface(seed=0, size=(64, 80), spread=3.0, channels=1):
    values = np.random.default_rng(seed).normal(120.0, spread, (*size, channels))
    return np.clip(values, 0, 255).astype(np.uint8)


def spotted(**kind):
    image = surface(**kind)
    image[12:20, 50:58] = 250
    return image


def test_what_differs_most_is_found():
    """Whatever is drawn: a spot is brighter, rough at its rim, and darker around it."""
    image, spot = spotted(), np.zeros((64, 80), np.bool_)
    spot[0:36, 36:76] = True
    places = [find_striking_place(image, np.random.default_rng(seed)) for seed in range(20)]
    found = [place for place in places if place is not None]
    assert len(found) > 10
    assert np.mean([(place[spot] > 0).any() for place in found]) > 0.6


def test_a_plain_photograph_has_none():
    image = np.full((40, 40, 1), 90, np.uint8)
    for seed in range(10):
        assert find_striking_place(image, np.random.default_rng(seed)) is None
        assert move_striking_place(image, image, np.random.default_rng(seed)) is image


def test_it_is_moved_and_nothing_else_changes():
    image, other = surface(1, channels=3), spotted(channels=3)
    image.setflags(write=False)
    other.setflags(write=False)
    brightest = []
    for seed in range(20):
        changed = move_striking_place(image, other, np.random.default_rng(seed))
        assert changed.shape == image.shape
        assert changed.dtype == np.uint8
        assert (changed == image).mean() > 0.5
        brightest.append(int(changed.max()))
    assert max(brightest) > 220
    assert int(image.max()) < 160


def test_the_same_generator_moves_the_same():
    image, other = surface(1), spotted()
    one, same, another = (
        move_striking_place(image, other, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != another).any()


def test_tiny_photographs_are_no_trouble():
    for size in ((1, 1), (3, 5), (8, 64)):
        image = surface(0, size, 20.0)
        for seed in range(10):
            assert move_striking_place(image, image, np.random.default_rng(seed)).shape == image.shape
