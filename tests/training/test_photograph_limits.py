import cv2
import numpy as np
import pytest

from segdec.photograph_check import PROPORTIONS, SURFACE, decode_numbers, measure_photograph
from segdec.photograph_reasons import BLACK, CAUSES, COLOURS, FLAT, PART, SCENE, WHITE, find_reason
from training.photograph_alterations import measure_alterations
from training.photograph_limits import MIN_PHOTOGRAPHS, MIN_SPREAD, BlurChanges, choose_limits, count_unlike


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
    limits = choose_limits([measure_photograph(image) for image in images], names, BlurChanges.of(images[:8]))
    return limits.model_copy(update={"alterations": measure_alterations(images[:8])})


@pytest.fixture(scope="module")
def limits():
    return limits_of([part(seed) for seed in range(60)])


def reason_of(limits, image):
    measured = measure_photograph(image)
    return find_reason(limits, measured, limits.distances(measured))


def test_photographs_like_those_of_the_training_pass(limits):
    assert limits.photographs == 60
    for seed in range(1000, 1040):
        assert reason_of(limits, part(seed)) is None, seed


def test_a_defect_is_not_a_difference(limits):
    for seed in range(1000, 1010):
        image = part(seed)
        cv2.line(image, (40, 30), (80, 60), (40, 30, 20), 2)
        assert reason_of(limits, image) is None, seed


DARKNESS = np.random.default_rng(0).poisson(1, (96, 128, 1)).astype(np.uint8).repeat(3, axis=2)

NOISY = np.clip(part(500) + np.random.default_rng(0).normal(0, 65, (96, 128, 1)), 0, 255).astype(np.uint8)


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


# === Limits worked out by hand ===


def limit_of(name, values, parts=None, blur=None):
    """The limit of a measure of one element."""
    names = [str(number) for number in range(len(values))] if parts is None else parts
    limits = choose_limits([{name: np.array([float(value)])} for value in values], names, blur)
    return limits.measures[name]


def test_the_limit_is_a_multiple_of_the_distance_of_parts_to_the_others():
    """0 and 10 in turn; without a part the others are 3 and 4 of these."""
    limit = limit_of("sharpness", [0, 10] * 4)
    others = (4 / 7) * 10  # the mean without one of the zeros
    spread = 7 / 6 * (3 * others**2 + 4 * (10 - others) ** 2) / 7 + MIN_SPREAD**2
    distance = others / spread**0.5
    assert distance > 1
    unit = (8 / 7 * 25 + MIN_SPREAD**2) ** 0.5
    assert limit.centre == (5.0,)
    assert limit.distance(np.array([5.0 + 3.2 * (1 + 2 / 8) * distance * unit])) == pytest.approx(1, abs=1e-3)


def test_photographs_of_one_part_count_together():
    """Twenty of a part that is alike and one of each of the others: the centre is the mean of the parts."""
    limit = limit_of("sharpness", [0] * 20 + [3, 6, 9], ["a"] * 20 + ["b", "c", "d"])
    assert limit.centre == (pytest.approx(4.5),)


def test_identical_photographs_have_the_smallest_spread():
    limit = limit_of("sharpness", [7] * 10)
    assert limit.distance(np.array([7 + 3.2 * 1.2 * MIN_SPREAD])) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("name", "refused"), [(PROPORTIONS, 2.0), ("brightness", None), ("layout", None)])
def test_proportions_refuse_at_twice_their_limit_and_others_never(name, refused):
    assert limit_of(name, range(10)).refused == refused


@pytest.mark.parametrize(
    ("changes", "refused", "warned"),
    [({}, "", ""), ({4: 0.18}, "", "e"), ({4: 5}, "e", ""), ({4: 5, 14: 0.18}, "e", "")],
)
def test_parts_unlike_the_others_are_counted_once(changes, refused, warned):
    """Two photographs of each of ten parts; the limit is about 3.2 · 0.03 (1 + 2 / 9)."""
    values = [0.01 * (index % 2) + changes.get(index, 0) for index in range(20)]
    measured = [{PROPORTIONS: np.array([value])} for value in values]
    found = count_unlike(measured, list("abcdefghij") * 2)
    assert ["".join(np.array(list("abcdefghij"))[each]) for each in found] == [refused, warned]
    assert [len(each) for each in count_unlike(measured, ["a", "b", "c", "d"] * 5)] == [0, 0]


def test_few_parts_have_wider_limits():
    few, many = (limit_of("sharpness", [7] * 40, [str(i % parts) for i in range(40)]) for parts in (5, 40))
    ratio = many.distance(np.array([8.0])) / few.distance(np.array([8.0]))
    assert ratio == pytest.approx((1 + 2 / 5) / (1 + 2 / 40), rel=2e-3)


def surfaces(count, seed=0):
    """Mean patches of 100 numbers that vary in 10 directions, as `measure_with` returns them."""
    random = np.random.default_rng(seed)
    directions = np.random.default_rng(9).normal(0, 0.02, (10, 100))
    values = 0.1 + random.normal(size=(count, 10)) @ directions + random.normal(0, 0.001, (count, 100))
    return [{**measure_photograph(part(number)), SURFACE: value} for number, value in enumerate(values)]


def test_another_surface_is_recognised_and_refused():
    measured = surfaces(60)
    limits = choose_limits(measured, [str(number) for number in range(60)])
    assert len(limits.model_dump_json()) < 60_000
    for own in surfaces(20, seed=1):
        assert limits.distances(own)[SURFACE] < 1 and not limits.refuses(own)
    changed = measured[0] | {SURFACE: measured[0][SURFACE] + np.random.default_rng(2).normal(0, 0.2, 100)}
    assert find_reason(limits, changed, limits.distances(changed)) == PART and limits.refuses(changed)
    without = {name: value for name, value in changed.items() if name != SURFACE}
    assert find_reason(limits, without, limits.distances(without)) is None


def test_identical_surfaces_permit_rounding():
    measured = [surfaces(1)[0]] * 12
    limits = choose_limits(measured, [str(number) for number in range(12)])
    rounded = measured[0] | {SURFACE: measured[0][SURFACE] + 0.002}
    assert limits.distances(rounded)[SURFACE] < 1


# === Bad input ===


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


def test_a_flat_part_may_be_a_little_flatter_than_those_of_the_training():
    def flat(seed, deviation):
        noise = np.random.default_rng(seed).normal(0, deviation, (64, 64, 1))
        return np.clip((128 + noise).round(), 0, 255).astype(np.uint8)

    limits = limits_of([flat(seed, 1.5 + 0.02 * seed) for seed in range(10)])
    assert reason_of(limits, flat(99, 1.45)) is None
    assert reason_of(limits, flat(99, 0.1)) == FLAT


def test_constant_photographs_have_limits():
    limits = limits_of([np.full((64, 64, 1), level, np.uint8) for level in range(90, 110)])
    assert reason_of(limits, np.full((64, 64, 1), 100, np.uint8)) is None
    assert reason_of(limits, np.full((64, 64, 1), 0, np.uint8)) == BLACK
    assert reason_of(limits, part(1, channels=1))


# === Blur ===


def test_slight_blur_is_recognised_in_its_direction():
    """The distance alone does not exceed the limit."""
    images = [part(seed) for seed in range(60)]
    measured, names = [measure_photograph(image) for image in images], list(map(str, range(60)))
    plain, known = choose_limits(measured, names), choose_limits(measured, names, BlurChanges.of(images[:8]))

    def texture(limits, image):
        return limits.distances(measure_photograph(image))["texture"]

    for seed in range(1000, 1020):
        blurred = cv2.GaussianBlur(part(seed), (0, 0), 1.5)
        assert texture(plain, blurred) < 1 < texture(known, blurred), seed
        assert texture(known, part(seed)) < 1, seed


def changes_of(name, slight, strong=(0.0, 0.0)):
    return BlurChanges({name: np.array(slight)}, {name: np.array(strong)})


def test_the_direction_of_blur_is_the_linear_discriminant():
    """Two independent elements of standard deviation 1 and 2, changed by (1, 2): both count the same."""
    vectors = np.random.default_rng(0).normal(size=(4000, 2)) * [1, 2]
    names = list(map(str, range(4000)))
    limits = choose_limits([{"texture": each} for each in vectors], names, changes_of("texture", (1.0, 2.0)))
    direction = decode_numbers(limits.measures["texture"].blur)
    assert direction[0] / direction[1] == pytest.approx(2, rel=0.05)  # (1 / 1², 2 / 2²)
    assert np.std(vectors @ direction) == pytest.approx(1 / 3.2, rel=0.05)


@pytest.mark.parametrize(("share", "refused"), [(0.65, False), (0.75, True), (-0.75, False)])
def test_defocus_is_refused_beyond_a_share_of_the_change_by_strong_defocus(share, refused):
    """The spread along the other element does not matter."""
    vectors = [{SURFACE: np.array([0.01 * number, 0.0])} for number in range(-3, 4)]
    change = changes_of(SURFACE, (0.0, 0.01), (0.0, 0.1))
    limit = choose_limits(vectors, list("abcdefg"), change).measures[SURFACE]
    limit = limit.model_copy(update={"refused": None})
    assert limit.refuses(np.array([0.5, 0.1 * share])) is refused


def test_a_surface_that_defocus_does_not_change_is_not_refused_for_rounding():
    vectors = [{SURFACE: np.full(4, 0.2)}] * 8
    change = BlurChanges({SURFACE: np.zeros(4)}, {SURFACE: np.full(4, 1e-6)})
    limit = choose_limits(vectors, list("abcdefgh"), change).measures[SURFACE]
    assert not limit.refuses(np.full(4, 0.2 + 0.002)) and limit.blur == ""
