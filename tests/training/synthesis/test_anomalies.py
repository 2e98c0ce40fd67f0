import numpy as np
import pytest

from training.synthesis import anomalies
from training.synthesis.anomalies import (
    KINDS,
    MIN_LEVEL_SHARE,
    MIN_LEVELS,
    TOLERANCE,
    VISIBILITY_RANGE,
    synthesize_anomaly,
)
from training.synthesis.visibility import SurfaceStrength

MANY = 20


def surface(random, height=64, width=96, channels=1, spread=8.0):
    """A grainy surface, of some colour."""
    grain = random.normal(120.0, spread, (height, width, channels))
    return np.clip(grain, 0, 255).astype(np.uint8)


def make(seed, image=None, textures=None, **kind):
    random = np.random.default_rng(seed)
    image = surface(random, **kind) if image is None else image
    textures = [surface(random, **kind)] if textures is None else textures
    return image, *synthesize_anomaly(image, textures, random)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_mask_marks_what_differs_and_nothing_else(channels):
    made = 0
    for seed in range(MANY):
        image, changed, mask = make(seed, channels=channels)
        assert (changed.shape, changed.dtype) == (image.shape, np.uint8)
        if mask is None:
            assert changed is image
            continue
        made += 1
        difference = np.abs(changed.astype(int) - image).max(axis=2)
        assert set(np.unique(mask)) <= {0, 255}
        assert (difference[mask > 0] > MIN_LEVELS).all()
        assert difference[mask == 0].max() <= max(MIN_LEVELS, MIN_LEVEL_SHARE * difference.max())
    assert made > 0.7 * MANY
    np.testing.assert_array_equal(make(0, channels=channels)[1], make(0, channels=channels)[1])
    assert (make(0, channels=channels)[1] != make(1, channels=channels)[1]).any()


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_each_kind_of_defect_can_be_seen(monkeypatch, number):
    chosen = tuple(float(other == number) for other in range(len(KINDS)))
    monkeypatch.setattr(anomalies, "KIND_PROBABILITIES", chosen)
    assert any(make(seed, height=96, width=96)[2] is not None for seed in range(12))


@pytest.mark.parametrize("spread", [3.0, 25.0])
def test_a_defect_stands_out_against_what_the_photograph_shows_itself(spread):
    """On a uniform surface and on a textured one: as strong as aimed at, small ones stronger."""
    made = [make(seed, height=96, width=96, spread=spread) for seed in range(MANY)]
    seen = [
        SurfaceStrength(image).visibility(changed, mask > 0)
        for image, changed, mask in made
        if mask is not None
    ]
    assert len(seen) > 0.7 * MANY
    assert TOLERANCE * VISIBILITY_RANGE[0] <= np.quantile(seen, 0.1)
    assert VISIBILITY_RANGE[0] / TOLERANCE < np.quantile(seen, 0.9) < 2 * VISIBILITY_RANGE[1]


def test_defects_keep_to_the_part():
    image, part = np.zeros((80, 80, 1), np.uint8), np.zeros((80, 80), np.bool_)
    part[20:60, 25:70] = True
    image[part] = surface(np.random.default_rng(0), 80, 80)[part]
    masks = [mask for _, _, mask in (make(seed, image, [image]) for seed in range(MANY)) if mask is not None]
    assert len(masks) > MANY / 2
    assert not any(mask[~part].any() for mask in masks)


@pytest.mark.parametrize("value", [0, 255])
def test_a_constant_surface_gets_a_defect_too(value):
    image = np.full((64, 64, 1), value, np.uint8)
    assert all(make(seed, image, [image])[2] is not None for seed in range(5))


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (8, 64)])
def test_tiny_photographs_raise_no_error(size):
    for seed in range(10):
        image, changed, mask = make(seed, height=size[0], width=size[1])
        assert changed.shape == image.shape
        assert mask is None or mask.shape == size


def test_an_invisible_change_is_not_a_defect(monkeypatch):
    """A piece of grain in place of another one changes every pixel, and nothing to look at."""
    monkeypatch.setattr(anomalies, "MIN_VISIBILITY", 100.0)
    image, changed, mask = make(0)
    assert mask is None
    np.testing.assert_array_equal(changed, image)
