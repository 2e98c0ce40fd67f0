import math

import cv2
import numpy as np
import pytest

from segdec.photograph_check import SURFACE, decode_numbers, measure_photograph
from segdec.photograph_reasons import BLACK, CAUSES, COLOURS, FLAT, PART, SCENE, WHITE, find_reason
from training.photograph_alterations import measure_alterations, measure_blur
from training.photograph_limits import MIN_LIMIT, MIN_PHOTOGRAPHS, choose_limits, extrapolate


def part(seed, *, light=1.0, channels=3):
    """A reddish part with a grainy surface on a dark belt, at nearly the same place."""
    random = np.random.default_rng(seed)
    image = np.full((96, 128, 3), 20.0)
    left, top = random.integers(28, 34), random.integers(18, 24)
    image[top : top + 50, left : left + 60] = np.array([170, 110, 80]) * random.uniform(0.95, 1.05) * light
    image += random.normal(0, 4, (96, 128, 1))
    noise = cv2.GaussianBlur(random.normal(0, 40, (96, 128)), (0, 0), 2)
    image[top : top + 50, left : left + 60] += noise[top : top + 50, left : left + 60, None] * light
    return np.clip(image.round(), 0, 255).astype(np.uint8)[..., :channels]


def limits_of(images, parts=None):
    names = [str(number) for number in range(len(images))] if parts is None else parts
    limits = choose_limits([measure_photograph(image) for image in images], names)
    return limits and limits.model_copy(update={"alterations": measure_alterations(images[:8])})


@pytest.fixture(scope="module")
def limits():
    return limits_of([part(seed) for seed in range(60)])


def reason_of(limits, image):
    measured = measure_photograph(image)
    return find_reason(limits, measured, limits.distances(measured))


def test_photographs_like_those_of_the_training_pass(limits):
    assert (limits.photographs, limits.false_alarm_rate) == (60, 0.001)
    for seed in range(1000, 1040):
        assert reason_of(limits, part(seed)) is None, seed


def test_a_defect_is_not_a_difference(limits):
    for seed in range(1000, 1010):
        image = part(seed)
        cv2.line(image, (40, 30), (80, 60), (40, 30, 20), 2)
        assert reason_of(limits, image) is None, seed


DARKNESS = np.random.default_rng(0).poisson(1, (96, 128, 1)).astype(np.uint8).repeat(3, axis=2)

NOISY = np.clip(part(500) + np.random.default_rng(0).normal(0, 40, (96, 128, 1)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (DARKNESS, BLACK),
        (part(500, light=0.1), BLACK),
        (part(500) // 16, BLACK),
        (np.full((96, 128, 3), 255, np.uint8), WHITE),
        (np.full((96, 128, 3), 50, np.uint8), FLAT),
        (part(500) // 2, CAUSES["darker"]),
        (cv2.GaussianBlur(part(500), (0, 0), 3), CAUSES["blurred"]),
        (NOISY, CAUSES["noisier"]),
        (part(500)[..., ::-1], COLOURS),
        (np.roll(part(500), 64, axis=1), SCENE),
        (np.random.default_rng(0).integers(0, 256, (96, 128, 3), np.uint8), SCENE),
    ],
)
def test_photographs_unlike_those_of_the_training_get_the_reason_that_a_person_names(limits, image, reason):
    assert reason_of(limits, image) == reason


def test_limits_survive_their_file(limits):
    again = type(limits).model_validate_json(limits.model_dump_json())
    assert again == limits
    assert len(limits.model_dump_json()) < 50_000


@pytest.mark.parametrize("degrees", [3, 100])
def test_the_rate_of_false_alarms_is_kept(degrees):
    """Correlated vectors with a heavy tail, and nearly normal ones; 100 of them are of the training."""
    random = np.random.default_rng(3)
    vectors = random.standard_t(degrees, size=(5_100, 4)) @ random.normal(size=(4, 4))
    limits = choose_limits(
        [{"sharpness": each} for each in vectors[:100]], list(map(str, range(100))), rate=0.01
    )
    assert limits is not None
    alarms = [limits.distances({"sharpness": vector})["sharpness"] > 1 for vector in vectors[100:]]
    assert np.mean(alarms) < 0.01


def test_extrapolation_by_hand():
    """The 90 % quantile of 0.00, 0.01 … 0.99 is 0.891; ten exceed it by 0.009 … 0.099, on average 0.054."""
    scale = (10 * 0.054 + 10 * 0.2) / 20
    expected = 0.891 + scale * math.log(0.1 / 0.0002) * (1 + 3 / 100)
    assert extrapolate(np.arange(100) / 100, 100, 0.0002) == pytest.approx(expected)
    assert extrapolate(np.arange(100) / 100 - 5, 100, 0.0002) == MIN_LIMIT
    assert extrapolate(np.arange(100) / 100, 1, 0.0002) == pytest.approx(0.891 + 3.0)  # at most


def surfaces(count, seed=0):
    """Mean patches of 100 numbers that vary in 10 directions, as `measure_with` returns them."""
    random = np.random.default_rng(seed)
    directions = np.random.default_rng(9).normal(0, 0.02, (10, 100))
    values = 0.1 + random.normal(size=(count, 10)) @ directions + random.normal(0, 0.001, (count, 100))
    return [{**measure_photograph(part(number)), SURFACE: value} for number, value in enumerate(values)]


def test_another_surface_is_recognised():
    measured = surfaces(60)
    limits = choose_limits(measured, [str(number) for number in range(60)])
    assert decode_numbers(limits.measures[SURFACE].scale).size == 100 * 60  # of 60 photographs
    assert len(limits.model_dump_json()) < 60_000
    for own in surfaces(20, seed=1):
        assert limits.distances(own)[SURFACE] < 1
    changed = measured[0] | {SURFACE: measured[0][SURFACE] + np.random.default_rng(2).normal(0, 0.03, 100)}
    assert find_reason(limits, changed, limits.distances(changed)) == PART
    without = {name: value for name, value in changed.items() if name != SURFACE}
    assert find_reason(limits, without, limits.distances(without)) is None


def test_identical_surfaces_permit_rounding():
    measured = [surfaces(1)[0]] * 12
    limits = choose_limits(measured, [str(number) for number in range(12)])
    rounded = measured[0] | {SURFACE: measured[0][SURFACE] + 0.002}
    assert limits.distances(rounded)[SURFACE] < 1


# === Bad input ===


@pytest.mark.parametrize("count", [1, MIN_PHOTOGRAPHS - 1])
def test_too_few_photographs_have_no_limits(count):
    assert limits_of([part(seed) for seed in range(count)]) is None


@pytest.mark.parametrize("first", ["7", "8"])
def test_photographs_of_one_or_two_parts_have_limits(first):
    """One of two has a single photograph."""
    limits = limits_of(
        [part(seed) for seed in range(MIN_PHOTOGRAPHS)], [first, *["7"] * (MIN_PHOTOGRAPHS - 1)]
    )
    assert reason_of(limits, part(99)) is None and reason_of(limits, DARKNESS)


def test_identical_photographs_permit_noise_and_little_light():
    limits = limits_of([part(1)] * 20)
    random = np.random.default_rng(0)
    noisy = np.clip(part(1) * 1.03 + random.normal(0, 0.5, (96, 128, 1)), 0, 255).astype(np.uint8)
    assert reason_of(limits, noisy) is None
    assert reason_of(limits, DARKNESS) and reason_of(limits, part(500, light=0.1))


def test_constant_photographs_have_limits():
    limits = limits_of([np.full((64, 64, 1), level, np.uint8) for level in range(90, 110)])
    assert reason_of(limits, np.full((64, 64, 1), 100, np.uint8)) is None
    assert reason_of(limits, np.full((64, 64, 1), 0, np.uint8)) == BLACK
    assert reason_of(limits, part(1, channels=1))


# === Blur ===


def blur_of(images):
    return measure_blur(images[:8], measure_photograph)


def test_slight_blur_is_recognised_in_its_direction():
    """The distance alone does not exceed the limit."""
    images = [part(seed) for seed in range(60)]
    measured, names = [measure_photograph(image) for image in images], list(map(str, range(60)))
    plain, known = choose_limits(measured, names), choose_limits(measured, names, blur_of(images))

    def texture(limits, image):
        return limits.distances(measure_photograph(image))["texture"]

    for seed in range(1000, 1020):
        blurred = cv2.GaussianBlur(part(seed), (0, 0), 1.5)
        assert texture(plain, blurred) < 1 < texture(known, blurred), seed
        assert texture(known, part(seed)) < 1, seed


def test_the_direction_of_blur_is_the_linear_discriminant():
    """Two independent elements of standard deviation 1 and 2, changed by (1, 2): both count the same."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(4000, 2)) * [1, 2]
    limits = choose_limits(
        [{"texture": vector} for vector in vectors],
        list(map(str, range(4000))),
        {"texture": np.array([1.0, 2.0])},
        rate=0.01,
    )
    direction = decode_numbers(limits.measures["texture"].blur)
    assert direction[0] / direction[1] == pytest.approx(2, rel=0.05)  # (1 / 1², 2 / 2²)
    alarms = np.mean((vectors - vectors.mean(axis=0)) @ direction > 1)
    assert 0 < alarms < 0.005  # half of the rate
