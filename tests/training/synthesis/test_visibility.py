import numpy as np
import pytest

from training.synthesis.visibility import Surface


def grain(spread=8.0, size=(96, 96), channels=1):
    values = np.random.default_rng(0).normal(120.0, spread, (*size, channels))
    return np.clip(values, 0, 255).astype(np.uint8)


def changed_square(image, offset, channel=slice(None)):
    changed, mask = image.copy(), np.zeros(image.shape[:2], np.bool_)
    mask[40:52, 40:52] = True
    moved = changed[40:52, 40:52, channel].astype(int) + offset
    changed[40:52, 40:52, channel] = np.clip(moved, 0, 255)
    return changed, mask


def test_the_same_change_stands_out_less_on_a_restless_surface():
    seen = [
        Surface(image).visibility(*changed_square(image, -30)) for image in (grain(16), grain(28), grain(45))
    ]
    assert seen[0] > seen[1] > seen[2]
    assert seen[0] > 1.5 * seen[2]


@pytest.mark.parametrize("offset", [-40, 40])
def test_darker_and_brighter_count_alike(offset):
    image = grain()
    faint, strong = (Surface(image).visibility(*changed_square(image, part * offset // 4)) for part in (1, 4))
    assert strong > 2 * faint
    assert strong > 1


def test_texture_that_is_gone_is_seen():
    image = grain(20, (160, 160))
    changed, mask = image.copy(), np.zeros((160, 160), np.bool_)
    mask[60:100, 60:100] = True
    changed[mask] = 120
    assert Surface(image).visibility(changed, mask) > 0.9
    assert Surface(image).visibility(changed, mask) > 2 * Surface(image).visibility(image, mask)


def test_the_outline_of_a_part_sets_no_limit():
    """A grey disc on black: the edge of the disc is ignored."""
    image = np.zeros((160, 160, 1), np.uint8)
    rows, columns = np.mgrid[:160, :160]
    disc = np.hypot(rows - 80, columns - 80) < 60
    image[disc] = grain(4, (160, 160))[disc]
    changed, mask = image.copy(), np.zeros((160, 160), np.bool_)
    mask[75:85, 75:85] = True
    changed[mask] = 80
    surface = Surface(image)
    assert surface.part is not None
    assert surface.visibility(changed, mask) > 1.5
