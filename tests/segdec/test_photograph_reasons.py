"""Limits of two measures of two elements, whose distances can be worked out by hand: all spreads are 1."""

import math

import numpy as np
import pytest

from segdec.photograph_check import Alteration, MeasureLimit, PhotographLimits, encode_numbers
from segdec.photograph_reasons import (
    BLACK,
    CAUSES,
    COLOURS,
    FLAT,
    OTHER_PROPORTIONS,
    PART,
    SCENE,
    WHITE,
    find_reason,
    is_refused,
)


def limit_of(*centre, **changes):
    return MeasureLimit(
        lowest=tuple(value - 0.1 for value in centre),
        highest=tuple(value + 0.1 for value in centre),
        centre=centre,
        scale=encode_numbers(np.eye(len(centre))),
        **changes,
    )


CONTRAST = math.log(41)
LIMITS = PhotographLimits(
    photographs=20,
    measures={
        "brightness": limit_of(0.0, CONTRAST),
        "colour": limit_of(0.0, 0.0),
        "sharpness": limit_of(0.0, 0.0),
        "layout": limit_of(0.0, 0.0),
        "proportions": limit_of(0.0, refused=2.0),
        "surface": limit_of(0.0, 0.0, defocus=encode_numbers(np.array([-2.0, 0.0]))),
    },
    alterations=(
        Alteration(
            cause="blurred",
            shifts={"brightness": (0, -1), "sharpness": (-4, -2), "colour": (0, 0), "layout": (0, 0)},
        ),
        Alteration(
            cause="darker",
            shifts={"brightness": (-2, -1), "sharpness": (1, 0), "colour": (0, 0), "layout": (0, 0)},
        ),
    ),
)


def reason_of(*, brightness=(0, 0), **others):
    """`brightness`: beyond that of the training photographs."""
    measured = {
        "brightness": np.add(brightness, (0, CONTRAST)),
        "colour": np.zeros(2),
        "sharpness": np.zeros(2),
        "layout": np.zeros(2),
        **{name: np.array(vector, float) for name, vector in others.items()},
    }
    return find_reason(LIMITS, measured, LIMITS.distances(measured))


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        ({}, None),
        ({"sharpness": (-1.4, 0)}, None),  # at a distance of 1.4 / √2
        ({"brightness": (0, -1), "sharpness": (-4, -2)}, CAUSES["blurred"]),
        ({"brightness": (0, -0.8), "sharpness": (-3.2, -1.6)}, CAUSES["blurred"]),  # less blurred
        ({"brightness": (-2, -1), "sharpness": (1, 0)}, CAUSES["darker"]),
        ({"colour": (3, 3)}, COLOURS),
        ({"colour": (3, 3), "brightness": (-2, -1), "sharpness": (1, 0)}, PART),  # two causes
        ({"sharpness": (4, 2)}, PART),  # the contrary of blur
        ({"layout": (3, 3)}, SCENE),
        ({"layout": (3, 3), "sharpness": (-4, -2)}, SCENE),
        ({"surface": (3, 3)}, PART),
        ({"surface": (-0.6, 0)}, PART),  # within the limit, but defocused
        ({"proportions": (1.1,), "layout": (3, 3)}, OTHER_PROPORTIONS),
        ({"proportions": (0.9,), "sharpness": (-4, -2), "brightness": (0, -1)}, CAUSES["blurred"]),
        ({"surface": (3, 3), "brightness": (-0.2, -0.1), "sharpness": (0.1, 0)}, PART),  # hardly darker
        ({"surface": (3, 3), "brightness": (-1.2, -0.6), "sharpness": (0.6, 0)}, CAUSES["darker"]),
    ],
)
def test_the_reason_is_the_alteration_without_which_it_is_like_the_training(measured, reason):
    assert reason_of(**measured) == reason


def log_odds(level):
    return math.log(level / (256 - level))


@pytest.mark.parametrize(
    ("brightness", "reason"),
    [
        ((log_odds(27), math.log(11) - CONTRAST), BLACK),  # 27 + 2 · 10
        ((log_odds(29), math.log(11) - CONTRAST), None),
        ((log_odds(229), math.log(11) - CONTRAST), WHITE),
        ((log_odds(227), math.log(11) - CONTRAST), None),
        ((0, math.log(1 + 1.9) - CONTRAST), FLAT),
        ((0, math.log(1 + 2.1) - CONTRAST), None),
        ((-5, math.log(1 + 1.9) - CONTRAST), BLACK),
    ],
)
def test_black_white_and_flat_photographs(brightness, reason):
    found = reason_of(brightness=brightness)
    assert (found if found in (BLACK, WHITE, FLAT) else None) == reason


def test_a_dark_photograph_is_not_black_if_those_of_the_training_are_as_dark():
    dark = {"measures": {**LIMITS.measures, "brightness": limit_of(log_odds(20), math.log(11))}}
    limits = LIMITS.model_copy(update=dark)
    measured = {"brightness": np.array([log_odds(20), math.log(11)]), "layout": np.array([3.0, 3.0])}
    assert find_reason(limits, measured, limits.distances(measured)) == SCENE


def test_without_alterations_the_part_differs():
    plain = LIMITS.model_copy(update={"alterations": ()})
    measured = {"sharpness": np.array([-4.0, -2.0]), "brightness": np.array([0.0, CONTRAST])}
    assert find_reason(plain, measured, plain.distances(measured)) == PART


def test_proportions_that_are_still_refused_with_confirmed_ones_are_named():
    """Those at 1.9 are confirmed, so that the limit is at 1.9 / 0.8; beyond 2 they still certainly differ."""
    limits = LIMITS.widen([{"proportions": np.array([1.9])}])
    measured = {"proportions": np.array([2.1])}
    distances = limits.distances(measured)
    assert distances["proportions"] < 1 and is_refused(limits, measured)
    assert find_reason(limits, measured, distances) == OTHER_PROPORTIONS


@pytest.mark.parametrize(
    ("measured", "refused"),
    [
        ({"brightness": np.array([log_odds(27), math.log(11)])}, True),  # black
        ({"brightness": np.array([-9.0, CONTRAST])}, False),
        ({"layout": np.array([99.0, 99.0])}, False),
        ({"surface": np.array([99.0, 99.0])}, False),
        ({"surface": np.array([-0.6, 0.0])}, True),  # defocused
        ({"proportions": np.array([1.9])}, False),
        ({"proportions": np.array([2.1])}, True),
    ],
)
def test_what_certainly_shows_something_else_is_refused(measured, refused):
    assert is_refused(LIMITS, measured) is refused
