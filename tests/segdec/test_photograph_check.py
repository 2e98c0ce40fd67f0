import math
import time

import numpy as np
import pytest
from pydantic import ValidationError

from segdec.photograph_check import (
    MIN_SIDE,
    MeasureLimit,
    PhotographLimits,
    decode_measures,
    decode_numbers,
    encode_measures,
    encode_numbers,
    measure_photograph,
    measure_proportions,
)


def flat(level, channels=1, height=64, width=48):
    return np.full((height, width, channels), level, np.uint8)


def stripes(period, along=1, low=64, high=192, side=64):
    values = np.where(np.arange(side) // (period // 2) % 2, high, low).astype(np.uint8)
    image = np.broadcast_to(values if along else values[:, None], (side, side))
    return np.ascontiguousarray(image)[..., None]


def test_measures_of_a_flat_photograph():
    measured = measure_photograph(flat(127))
    assert measured["brightness"] == pytest.approx([math.log(128 / 129), 0])
    assert measured["sharpness"] == pytest.approx([math.log(0.1 / 0.1)] * 4)
    assert measured["texture"] == pytest.approx([0] * 9)
    assert measured["layout"] == pytest.approx([0] * 36)
    assert set(measured) == {"brightness", "sharpness", "texture", "layout"}


def test_brightness_reaches_black_and_white():
    black, white = (measure_photograph(flat(level))["brightness"][0] for level in (0, 255))
    assert (black, white) == pytest.approx((-math.log(256), math.log(256)))


def test_stripes_have_their_contrast_and_energy_at_one_scale_and_in_one_direction():
    """Levels 64 and 192 in columns of one pixel: averaging two of them leaves nothing."""
    across, down = (measure_photograph(stripes(2, along)) for along in (1, 0))
    assert across["brightness"][1] == pytest.approx(math.log(64 + 1))
    rest = math.log(0.1 / (64**2 + 0.1))
    assert across["sharpness"] == pytest.approx([0, rest, rest, rest], abs=1e-6)
    wide = [measure_photograph(stripes(8, along))["texture"] for along in (1, 0)]
    assert wide[0][6] > 5 and wide[0][6] == pytest.approx(-wide[1][6])
    assert down["texture"][:6] == pytest.approx(across["texture"][:6])


def test_half_the_light_changes_brightness_and_hardly_sharpness():
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 1), np.uint8)
    full, half = measure_photograph(image), measure_photograph(image // 2)
    assert full["brightness"][0] - half["brightness"][0] > 0.8
    assert half["sharpness"] == pytest.approx(full["sharpness"], abs=0.02)


def test_layout_is_the_brightness_of_the_cells_without_mean():
    image = flat(50, height=96, width=96)
    image[:48] = 150
    layout = measure_photograph(image)["layout"].reshape(6, 6)
    expected = 50 / math.hypot(50, 2)
    assert layout[:3] == pytest.approx(np.full((3, 6), expected))
    assert layout[3:] == pytest.approx(np.full((3, 6), -expected))


def test_swapped_channels_swap_the_ratios_of_colour():
    image = np.random.default_rng(1).integers(0, 60, (64, 64, 3), np.uint8) + np.array(
        [150, 80, 20], np.uint8
    )
    colour = measure_photograph(image)["colour"]
    means = image.reshape(-1, 3).mean(axis=0) + 8
    assert colour[:2] == pytest.approx(np.log(means[[0, 2]] / means[1]), abs=0.01)
    assert measure_photograph(image[..., ::-1])["colour"] == pytest.approx(colour[[1, 0, 3, 2]], abs=1e-5)


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 640, 3), (24, 16, 3), (MIN_SIDE, MIN_SIDE, 1)])
def test_a_photograph_smaller_than_the_filters_is_enlarged(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    measured = measure_photograph(image)
    assert all(np.isfinite(vector).all() for vector in measured.values())
    assert len(measured["texture"]) == 9 and len(measured["layout"]) == 36


def test_measures_cost_little():
    """CPU time of this thread: no clock of the machine."""
    image = np.random.default_rng(0).integers(0, 256, (512, 512, 3), np.uint8)
    measure_photograph(image)
    durations = []
    for _ in range(5):
        began = time.thread_time()
        measure_photograph(image)
        durations.append(time.thread_time() - began)
    assert min(durations) < 0.05  # about 1 ms on one core


# === Limits ===

LIMIT = MeasureLimit(
    lowest=(-1.0, 0.0),
    highest=(1.0, 4.0),
    centre=(0.0, 2.0),
    scale=encode_numbers(np.array([[2.0, 0.0], [0.0, 1.0]])),
)


def limits_of(**measures):
    return PhotographLimits(photographs=20, measures=measures)


def test_numbers_survive_encoding():
    values = np.array([[0.5, -2.0], [1024.0, 0.0]])
    assert decode_numbers(encode_numbers(values)).tolist() == values.ravel().tolist()


def test_measures_beyond_the_range_of_their_encoding_become_its_ends():
    encoded = encode_measures({"surface": np.array([1e6, -1e6, 0.5])})
    assert decode_measures(encoded)["surface"].tolist() == [65504, -65504, 0.5]


@pytest.mark.parametrize("text", ["?", "AAA", "AAAA", encode_numbers(np.array([np.inf]))])
def test_damaged_numbers_are_rejected(text):
    with pytest.raises(ValidationError, match="export the model again"):
        MeasureLimit(**{**LIMIT.model_dump(), "scale": text})


@pytest.mark.parametrize("field", ["lowest", "highest", "scale", "blur", "defocus"])
def test_numbers_of_another_size_are_rejected(field):
    values = LIMIT.model_dump()
    short = encode_numbers(np.zeros(3)) if isinstance(values[field], str) else values[field][1:]
    with pytest.raises(ValidationError, match="do not fit"):
        MeasureLimit(**{**values, field: short})


@pytest.mark.parametrize(
    ("vector", "distance"),
    [((0, 2), 0), ((1, 5), math.sqrt((2**2 + 3**2) / 2)), ((-3, 2), math.sqrt(6**2 / 2))],
)
def test_the_distance_is_the_root_mean_square_of_the_scaled_difference(vector, distance):
    assert limits_of(brightness=LIMIT).distances({"brightness": np.array(vector)}) == {
        "brightness": pytest.approx(distance, rel=1e-3)
    }


def test_a_measure_of_a_later_version_is_rejected():
    with pytest.raises(ValidationError, match="unknown measure 'patches'"):
        limits_of(patches=LIMIT)


@pytest.mark.parametrize("field", ["lowest", "highest", "centre"])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_rejected(field, number):
    """A distance that is not a number exceeds no limit."""
    with pytest.raises(ValidationError, match="finite number"):
        MeasureLimit(**{**LIMIT.model_dump(), field: (0.0, number)})
    shifts = {"cause": "darker", "shifts": {"brightness": (0.0, number)}}
    with pytest.raises(ValidationError, match="finite number"):
        limits_of(brightness=LIMIT).model_validate(
            {**limits_of(brightness=LIMIT).model_dump(), "alterations": [shifts]}
        )


@pytest.mark.parametrize("shifts", [{"sharpness": (1.0, 2.0)}, {"brightness": (1.0,)}, {}])
def test_alterations_of_other_measures_are_rejected(shifts):
    values = limits_of(brightness=LIMIT).model_dump()
    with pytest.raises(ValidationError, match="does not fit the alterations; export the model again"):
        PhotographLimits(**{**values, "alterations": [{"cause": "darker", "shifts": shifts}]})


def test_blur_counts_in_its_direction_alone():
    """At (−1, 3), which is at a distance of √((2² + 1²) / 2) from the centre, blur is at twice its limit."""
    limit = LIMIT.model_copy(update={"blur": encode_numbers(np.array([-1.0, 1.0]))})
    vector, opposite = np.array([-1.0, 3.0]), np.array([1.0, 1.0])
    assert limit.distance(vector) == pytest.approx(2, abs=1e-3)
    assert LIMIT.distance(vector) == pytest.approx(math.sqrt(2.5), abs=1e-3)
    assert limit.distance(opposite) == LIMIT.distance(opposite)


@pytest.mark.parametrize(
    ("changes", "vector", "refused"),
    [
        ({}, (99, 99), False),
        ({"refused": 2}, (0, 2 + 2.8), False),  # at 2.8 / √2
        ({"refused": 2}, (0, 2 + 2.9), True),
        ({"blur": (0, 1), "refused": 2}, (0, 2 + 2.5), False),  # blur alone never refuses
        ({"defocus": (0, 1)}, (0, 2.9), False),
        ({"defocus": (0, 1)}, (0, 3.1), True),
        ({"defocus": (0, 1)}, (0, -99), False),  # sharper
    ],
)
def test_a_photograph_is_refused_beyond_a_multiple_of_the_limit_or_by_defocus(changes, vector, refused):
    encoded = {
        name: encode_numbers(np.array(value, float)) if isinstance(value, tuple) else value
        for name, value in changes.items()
    }
    limit = LIMIT.model_copy(update=encoded)
    assert limit.refuses(np.array(vector)) is refused
    assert limits_of(brightness=limit).refuses({"brightness": np.array(vector)}) is refused
    assert limits_of(brightness=limit).refuses({"colour": np.array(vector)}) is False


# === Confirmed photographs ===


def test_a_confirmed_photograph_is_within_the_limit_and_its_opposite_too():
    """(0, 6) is 4 beyond the centre, so at 4 / √2; its direction becomes wider, the other one does not."""
    wide = LIMIT.widen([np.array([0.0, 6.0])])
    assert LIMIT.distance(np.array([0, 6])) == pytest.approx(4 / math.sqrt(2))
    assert wide.distance(np.array([0, 6])) == wide.distance(np.array([0, -2])) == pytest.approx(0.8, abs=1e-3)
    assert wide.distance(np.array([3, 2])) == LIMIT.distance(np.array([3, 2]))
    assert wide.widen([np.array([0.0, 6.0]), np.array([0.1, 2.0])]) == wide
    assert (wide.lowest, wide.highest, wide.centre) == (LIMIT.lowest, LIMIT.highest, LIMIT.centre)


def test_limits_include_all_confirmed_photographs_in_any_order():
    random = np.random.default_rng(0)
    size = 24
    scale = np.linalg.cholesky(np.cov(random.normal(size=(size, 3 * size))) + np.eye(size))
    ranges = dict.fromkeys(("lowest", "highest", "centre"), (0.0,) * size)
    limit = MeasureLimit(**ranges, scale=encode_numbers(scale))
    drift = random.normal(size=size)
    confirmed = [drift + 0.5 * random.normal(size=size) for _ in range(8)]
    assert min(map(limit.distance, confirmed)) > 1
    one, other = limit.widen(confirmed), limit.widen(confirmed[::-1])
    assert max(map(one.distance, confirmed)) < 0.801
    drifted = [drift + 0.5 * random.normal(size=size) for _ in range(50)]
    assert [one.distance(each) for each in drifted] == pytest.approx(
        [other.distance(each) for each in drifted], rel=0.1
    )
    scales = [decode_numbers(each.scale).reshape(size, size) for each in (limit, one)]
    units = np.stack(confirmed) @ scales[0]
    _, _, directions = np.linalg.svd(units)
    for orthogonal in directions[len(confirmed) :]:
        vector = np.linalg.solve(scales[0].T, orthogonal)
        assert one.distance(vector) == pytest.approx(limit.distance(vector), rel=0.01)


def test_many_confirmed_photographs_leave_finite_numbers():
    far = [np.array([20.0, -20.0]) * random for random in np.random.default_rng(0).normal(size=200)]
    wide = LIMIT.model_copy(update={"blur": encode_numbers(np.ones(2))}).widen([*far, np.array([0.0, 2.0])])
    assert MeasureLimit(**wide.model_dump()) == wide
    assert max(map(wide.distance, far)) < 0.81


def test_confirmed_blur_is_within_its_limit_and_strong_defocus_is_still_refused():
    along = encode_numbers(np.array([0.0, 1.0]))
    limit = LIMIT.model_copy(update={"blur": along, "defocus": along})
    wide = limit.widen([np.array([0.0, 2.9])])
    assert limit.distance(np.array([0, 4])) == pytest.approx(2)
    assert wide.distance(np.array([0, 2.9])) == pytest.approx(0.8, abs=1e-3)
    assert wide.refuses(np.array([0, 2.9])) is False
    assert wide.refuses(np.array([0, 3.1])) is True


def test_proportions_are_refused_as_before():
    limit = MeasureLimit(
        lowest=(0,), highest=(0,), centre=(0,), scale=encode_numbers(np.array([[10.0]])), refused=2
    )
    wide = limit.widen([np.array([0.15])])
    assert wide.distance(np.array([0.15])) == pytest.approx(0.8, abs=1e-3)
    assert wide.refuses(np.array([0.199])) is False
    assert wide.refuses(np.array([0.201])) is True


def test_only_the_measures_of_confirmed_photographs_get_wider():
    limits = limits_of(brightness=LIMIT, sharpness=LIMIT)
    wide = limits.widen([{"sharpness": np.array([0.0, 6.0])}, {"sharpness": np.array([3.0, 2.0])}])
    assert wide.measures["brightness"] is limits.measures["brightness"]
    assert wide.distances({"sharpness": np.array([0.0, 6.0])})["sharpness"] < 0.801
    for other in ({"surface": np.zeros(2)}, {"brightness": np.zeros(1)}):
        with pytest.raises(ValueError, match="there is no measure"):
            limits.widen([other])


def test_proportions_are_those_of_width_to_height():
    assert measure_proportions(100, 200) == pytest.approx([math.log(2)])
