import numpy as np
import pytest

from training.synthesis.visibility import SurfaceStrength


def grain(spread=8.0, size=(96, 96), channels=1):
    values = np.random.default_rng(0).normal(120.0, spread, (*size, channels))
    return np.clip(values, 0, 255).astype(np.uint8)


def visibility(image, offset):
    changed, mask = image.copy(), np.zeros(image.shape[:2], np.bool_)
    mask[40:52, 40:52] = True
    changed[mask] = np.clip(changed[mask].astype(int) + offset, 0, 255)
    return SurfaceStrength(image).visibility(changed, mask)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_change_stands_out_if_it_is_strong_and_its_surface_uniform(sign):
    seen = [visibility(grain(spread), 30 * sign) for spread in (16, 28, 45)]
    assert seen[0] > seen[1] > seen[2]
    assert seen[0] > 1.5 * seen[2]
    assert visibility(grain(), 40 * sign) > max(1, 2 * visibility(grain(), 10 * sign))


def test_texture_that_is_gone_is_seen():
    image = grain(20, (160, 160))
    changed, mask = image.copy(), np.zeros((160, 160), np.bool_)
    mask[60:100, 60:100] = True
    changed[mask] = 120
    assert SurfaceStrength(image).visibility(changed, mask) > 0.9
    assert SurfaceStrength(image).visibility(changed, mask) > 2 * SurfaceStrength(image).visibility(
        image, mask
    )


def test_the_outline_of_a_part_sets_no_limit():
    """A grey disc on black: the edge of the disc is ignored."""
    image = np.zeros((160, 160, 1), np.uint8)
    rows, columns = np.mgrid[:160, :160]
    disc = np.hypot(rows - 80, columns - 80) < 60
    image[disc] = grain(4, (160, 160))[disc]
    changed, mask = image.copy(), np.zeros((160, 160), np.bool_)
    mask[75:85, 75:85] = True
    changed[mask] = 80
    surface = SurfaceStrength(image)
    assert surface.part is not None
    assert surface.visibility(changed, mask) > 1.5
