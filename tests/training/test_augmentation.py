import numpy as np
import pytest

from training.config import AugmentationConfig

tf = pytest.importorskip("tensorflow")

from training.augmentation import augment  # noqa: E402

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

STILL = {"flip_horizontal": False, "flip_vertical": False}


def make_example():
    """An image whose 8×8 cells hold their target's value times 100."""
    target = np.arange(6, dtype=np.float32).reshape(2, 3, 1) / 6
    image = np.kron(target[..., 0], np.ones((8, 8), np.float32))[..., None] * 100
    return image, target


def run(number, **settings):
    image, target = make_example()
    outputs = augment(image, target, tf.constant([5, number], tf.int64), AugmentationConfig(**settings))
    return [np.asarray(output) for output in outputs]


def test_flips_move_image_and_target_alike_and_all_four_occur():
    seen = set()
    for number in range(24):
        image, target = run(number)
        cells = image.reshape(2, 8, 3, 8, 1).mean(axis=(1, 3))
        np.testing.assert_allclose(cells, target * 100, atol=1e-4)
        seen.add(target.tobytes())
    assert len(seen) == 4


def test_without_changes_nothing_changes():
    image, target = make_example()
    outputs = run(0, **STILL)
    np.testing.assert_array_equal(outputs[0], image)
    np.testing.assert_array_equal(outputs[1], target)


def test_brightness_shifts_all_pixels_alike_within_its_limit():
    image, _ = make_example()
    shifts = [run(number, **STILL, brightness=0.05)[0] - image for number in range(8)]
    inner = [shift[image > 20] for shift in shifts]  # darker ones may be clipped at 0
    assert all(np.ptp(shift) < 1e-4 for shift in inner)
    assert all(abs(shift[0]) <= 0.05 * 255 for shift in inner)
    assert len({round(float(shift[0]), 3) for shift in inner}) == 8


def test_contrast_keeps_the_mean():
    image, target = make_example()
    image = image / 2 + 100  # nothing is clipped
    settings = AugmentationConfig(**STILL, contrast=0.2)
    changed = np.asarray(augment(image, target, tf.constant([5, 1], tf.int64), settings)[0])
    assert changed.mean() == pytest.approx(image.mean(), rel=1e-5)
    assert 0.8 <= changed.std() / image.std() <= 1.2
    assert changed.std() != pytest.approx(image.std(), rel=1e-3)


def test_values_stay_in_range():
    images = [run(number, brightness=1.0, contrast=1.0)[0] for number in range(8)]
    assert min(image.min() for image in images) >= 0
    assert max(image.max() for image in images) <= 255


def test_same_seed_same_result():
    np.testing.assert_array_equal(run(3, brightness=0.5)[0], run(3, brightness=0.5)[0])
