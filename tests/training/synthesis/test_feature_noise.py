"""Noise is where its mask says, where the photograph is inspected, and within what a channel shows."""

import numpy as np
import pytest

from training.synthesis.feature_noise import AREA_SHARES, add_noise, draw_noise_mask

SIZE = 64, 96


@pytest.fixture
def features():
    random = np.random.default_rng(3)
    coarse = np.maximum(random.normal(0.0, 2.0, (4, 6, 16)), 0.0).astype(np.float16)
    coarse[..., 0] = 0.0  # a channel that sees nothing here
    return {"joined_8": np.abs(random.normal(0.0, 1.0, (8, 12, 4))).astype(np.float16), "joined_16": coarse}


def test_masks_are_of_any_size_between_the_bounds():
    shares = [np.mean(draw_noise_mask(np.random.default_rng(seed), SIZE) > 0) for seed in range(80)]
    rounding = 1 / np.prod(SIZE)
    assert AREA_SHARES[0] - rounding <= min(shares) < 0.006
    assert 0.07 < max(shares) <= AREA_SHARES[1] + rounding


def test_a_mask_is_where_the_photograph_is_inspected():
    area = np.zeros(SIZE, np.uint8)
    area[:20, :30] = 255
    for seed in range(20):
        mask = draw_noise_mask(np.random.default_rng(seed), SIZE, area)
        assert mask.any()
        assert not mask[area == 0].any()
    assert draw_noise_mask(np.random.default_rng(0), SIZE, np.zeros(SIZE, np.uint8)) is None


def test_noise_changes_what_is_under_the_mask_alone(features):
    mask = np.zeros(SIZE, np.uint8)
    mask[16:32, 48:64] = 255
    noisy = add_noise(features, mask, np.random.default_rng(0))
    for name, places in {"joined_8": np.s_[2:4, 6:8], "joined_16": np.s_[1:2, 3:4]}.items():
        changed = (noisy[name] != features[name]).any(axis=2)
        assert changed[places].all(), name
        changed[places] = False
        assert not changed.any(), name
        assert noisy[name].dtype == np.float16


def test_a_channel_stays_within_what_it_shows(features):
    """So that it is not a value that no photograph has by which noise is found."""
    noisy = add_noise(features, np.full(SIZE, 255, np.uint8), np.random.default_rng(1))
    for name, plain in features.items():
        assert (noisy[name].min(axis=(0, 1)) >= plain.min(axis=(0, 1))).all()
        assert (noisy[name].max(axis=(0, 1)) <= plain.max(axis=(0, 1))).all()
    assert not noisy["joined_16"][..., 0].any()
