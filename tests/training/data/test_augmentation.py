import numpy as np
import pytest

from training.config import AugmentationConfig
from training.data.augmentation import AugmentationParameters, augment, draw_parameters, transform_geometry

STILL = {"flip_horizontal": False, "flip_vertical": False}
NO_DRAW = AugmentationParameters(*[0.5] * len(AugmentationParameters._fields))  # no flip, no change


def make_example(shape=(16, 24)):
    """An image whose bright pixels are its mask, in no symmetric place."""
    mask = np.zeros(shape, np.uint8)
    mask[2:4, 5:10] = 255
    mask[11, 3] = 255
    return (40 + mask // 255 * 100)[..., None], mask


def run(number, shape=(16, 24), **settings):
    image, mask = make_example(shape)
    return augment(image, mask, np.random.default_rng([5, number]), AugmentationConfig(**settings))[:2]


@pytest.mark.parametrize(
    ("shape", "settings", "count"),
    [((16, 24), {}, 4), ((16, 16), {"rotate": True}, 8), ((16, 24), {"rotate": True, **STILL}, 2)],
)
def test_flips_and_turns_move_image_and_mask_alike_and_all_occur(shape, settings, count):
    seen = set()
    for number in range(64):
        image, mask = run(number, shape, **settings)
        assert image.shape == (*shape, 1)
        np.testing.assert_array_equal(image[..., 0] > 100, mask > 0)
        seen.add(mask.tobytes())
    assert len(seen) == count


def test_shifts_are_whole_pixels_by_hand():
    image, mask = make_example()
    draws = NO_DRAW._replace(shift_down=1.0, shift_right=0.25)  # 25 % of 16 down, half of 25 % of 24 left
    moved, moved_mask = transform_geometry(image, mask, draws, AugmentationConfig(**STILL, shift=0.25))[:2]
    np.testing.assert_array_equal(moved_mask[4:, :21] > 0, mask[:12, 3:] > 0)
    np.testing.assert_array_equal(moved[4:, :21], image[:12, 3:])
    assert not moved_mask[:4].any()  # background comes in
    assert moved[0, 3] == image[0, 6]  # the border is extended


@pytest.mark.parametrize(("draw", "side"), [(1.0, 24), (0.0, 8)])
def test_scale_grows_about_the_middle(draw, side):
    mask = np.zeros((32, 32), np.uint8)
    mask[8:24, 8:24] = 255
    draws = NO_DRAW._replace(scale=draw)
    config = AugmentationConfig(**STILL, scale=0.5)
    image, moved, *_ = transform_geometry(mask[..., None], mask, draws, config)
    rows, columns = np.nonzero(moved)
    assert (rows.min(), rows.max()) == (columns.min(), columns.max())
    assert rows.min() + rows.max() == 31
    assert abs(rows.max() - rows.min() + 1 - side) <= 1  # an edge may take the pixel it covers in part
    np.testing.assert_array_equal(moved > 0, image[..., 0] >= 64)


def test_a_shift_does_not_remove_a_defect():
    """Its class stays: two rows further down nothing would be left of it."""
    config = AugmentationConfig(**STILL, shift=0.25)
    mask = np.zeros((8, 8), np.uint8)
    mask[6, 2] = 255
    image = mask[..., None]
    gone = transform_geometry(image, mask, NO_DRAW._replace(shift_down=1.0), config)
    np.testing.assert_array_equal(gone[0], image)
    np.testing.assert_array_equal(gone[1], mask)
    moved = transform_geometry(image, mask, NO_DRAW._replace(shift_down=0.0), config)
    assert np.argwhere(moved[0][..., 0] == 255).tolist() == np.argwhere(moved[1]).tolist() == [[4, 2]]


def test_intensity_changes():
    """Brightness shifts all pixels alike, noise is as strong as drawn, blur spreads a point."""
    image, _ = make_example()
    shifts = [run(number, **STILL, brightness=0.05)[0] - image for number in range(8)]
    assert all(np.ptp(shift) < 1e-4 and abs(shift[0, 0, 0]) <= 0.05 * 255 for shift in shifts)
    assert len({round(float(shift[0, 0, 0]), 3) for shift in shifts}) == 8
    flat, config = np.full((64, 64, 3), 128, np.uint8), AugmentationConfig(**STILL, noise=0.1)
    noisy = augment(flat, None, np.random.default_rng(0), config).image
    assert noisy.std() == pytest.approx(25.5 * draw_parameters(np.random.default_rng(0)).noise, rel=0.05)
    assert noisy.mean() == pytest.approx(128, abs=1)
    point = np.zeros((33, 33, 1), np.uint8)
    point[16, 16] = 255
    blurred = augment(point, None, np.random.default_rng(0), AugmentationConfig(**STILL, blur_px=2.0)).image
    assert 0 < blurred[16, 15, 0] == blurred[15, 16, 0] < blurred[16, 16, 0] < 255
    assert blurred.sum() == pytest.approx(255, rel=0.1)  # of 8 bits


def test_same_seed_same_result_and_one_setting_leaves_the_others_draws_alone():
    np.testing.assert_array_equal(run(3, brightness=0.5, noise=0.1)[0], run(3, brightness=0.5, noise=0.1)[0])
    np.testing.assert_array_equal(run(3)[1], run(3, brightness=0.5, noise=0.1)[1])
