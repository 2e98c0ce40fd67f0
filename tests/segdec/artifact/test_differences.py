import re

import numpy as np
import pytest

from segdec.artifact import (
    PhotographComparison,
    TrainingPhotographs,
    compare_photograph,
    compare_pixels,
    compare_surface,
)
from segdec.config import InputConfig
from segdec.errors import ImageError
from segdec.images import PIXELS, Photograph
from segdec.photograph_check import Alteration, measure_photograph
from segdec.photograph_reasons import BLACK, CAUSES, OTHER_PROPORTIONS, OTHER_SIZE, PART
from tests.segdec.artifact.test_artifact import MANIFEST

MEASURES = "brightness", "sharpness", "layout", "texture"
TRAINED = TrainingPhotographs.of([(100, 200), (110, 200)], [8])


@pytest.mark.parametrize(
    ("height", "width", "depth", "kind", "warnings"),
    [
        (105, 210, 8, "png", []),
        (100, 200, 1, "png", []),
        (200, 400, 8, "png", ["size"]),
        (100, 150, 8, "png", ["aspect", "size"]),
        (200, 100, 8, "png", ["aspect", "size"]),
        (100, 200, 16, "tiff", ["bit_depth"]),
        (100, 200, 16, PIXELS, []),
    ],
)
def test_differences_from_the_training_photographs(height, width, depth, kind, warnings) -> None:
    model = MANIFEST.model_copy(update={"training_photographs": TRAINED})
    photograph = Photograph(np.zeros((height, width, 1), np.uint8), kind, depth)
    found = compare_photograph(model, photograph, photograph.pixels).check()
    assert [text.split(":")[0] for text in found] == warnings
    earlier_version = MANIFEST
    assert compare_photograph(earlier_version, photograph, photograph.pixels) == PhotographComparison()


@pytest.mark.parametrize(
    ("level", "height", "width", "policy", "reason", "refused"),
    [
        (110, 32, 48, "native", None, False),
        (3, 32, 48, "native", BLACK, True),
        (160, 32, 48, "native", PART, False),
        (110, 32, 36, "resize", OTHER_PROPORTIONS, True),
        (110, 32, 42, "resize", OTHER_PROPORTIONS, False),
        (110, 48, 32, "native", OTHER_PROPORTIONS, True),
        (110, 37, 55, "native", OTHER_SIZE, False),
        (110, 64, 96, "native", OTHER_SIZE, True),
        (3, 37, 55, "native", BLACK, True),
        (110, 64, 96, "resize", None, False),
    ],
)
def test_photograph_unlike_those_of_the_training(
    grey_training, level, height, width, policy, reason, refused
) -> None:
    size = {} if policy == "native" else {"height": 32, "width": 48}
    changes = {"training_photographs": grey_training, "input": InputConfig(policy=policy, **size)}
    model = MANIFEST.model_copy(update=changes)
    photograph = Photograph(np.full((height, width, 1), level, np.uint8), "png", 8)
    found = compare_photograph(model, photograph, np.full((32, 48, 1), level, np.uint8))
    assert set(found.distances) == {*MEASURES, "proportions"}
    assert (found.reason, found.refused) == (reason, refused)
    assert [text for text in found.check("warn") if text.startswith("unlike_training")] == (
        [] if reason is None else [f"unlike_training: {reason}"]
    )
    if not refused:
        assert found.check() == found.check("warn")
        return
    with pytest.raises(ImageError, match=re.escape(f"The photograph is {reason}. Expected")) as caught:
        found.check()
    assert caught.value.code == "unlike_training"


NOTHING = PhotographComparison()


def test_the_surface_is_compared_if_the_model_knows_it(grey_training, surface_training) -> None:
    known = MANIFEST.model_copy(update={"training_photographs": surface_training})
    like, unlike, other = (np.array([0.11, second], np.float32) for second in (0.2, 0.211, 0.3))
    found = compare_surface(known, like, NOTHING)
    assert found.reason is None and set(found.distances) == {"surface"} and found.check() == ()
    for surface in (unlike, other):
        assert compare_surface(known, surface, NOTHING).check("warn") == (
            "unlike_training: of another part or surface than those of the training",
        )
    assert compare_surface(known, unlike, NOTHING).check() == compare_surface(known, unlike, NOTHING).check(
        "warn"
    )
    with pytest.raises(
        ImageError, match=r"than those of the training, or shows a very large defect\. Expected"
    ):
        compare_surface(known, other, NOTHING).check()
    before = MANIFEST.model_copy(update={"training_photographs": grey_training})
    for model, surface in ((known, None), (before, other), (MANIFEST, other)):
        assert compare_surface(model, surface, NOTHING) == NOTHING


@pytest.mark.parametrize(
    ("level", "side", "surface", "reason", "refused"),
    [
        (110, 1, 0.2, None, False),
        (160, 1, 0.2, PART, False),
        (160, 1, 0.3, PART, True),
        (110, 1.15, 0.2, OTHER_SIZE, False),
        (110, 1.15, 0.3, PART, True),
        (110, 2, 0.2, OTHER_SIZE, True),
    ],
)
def test_the_surface_adds_to_what_was_found_before(
    surface_training, level, side, surface, reason, refused
) -> None:
    """A photograph has one warning, by all that was found."""
    changes = {"training_photographs": surface_training, "input": InputConfig(policy="native")}
    model = MANIFEST.model_copy(update=changes)
    size = round(32 * side), round(48 * side)
    photograph = Photograph(np.full((*size, 1), level, np.uint8), "tiff", 16)
    before = compare_photograph(model, photograph, np.full((32, 48, 1), level, np.uint8))
    found = compare_surface(model, np.array([0.11, surface], np.float32), before)
    assert (found.reason, found.refused) == (reason, refused)
    assert set(found.distances) == {*before.distances, "surface"} and found.warnings == before.warnings
    words = [text.split(":")[0] for text in found.check("warn")]
    assert words.count("unlike_training") == (reason is not None) and words[-1] == "bit_depth"


def test_the_measures_beyond_their_limits_are_those_that_can_be_confirmed(surface_training) -> None:
    model = MANIFEST.model_copy(update={"training_photographs": surface_training})
    measured = {"brightness": np.array([-1.1, 0.0])}
    warned = compare_surface(
        model, np.array([0.11, 0.211], np.float32), PhotographComparison(measured=measured)
    )
    assert list(warned.beyond_limits) == ["brightness", "surface"]
    assert warned.beyond_limits["brightness"] is measured["brightness"]
    like = compare_surface(model, np.array([0.11, 0.2], np.float32), NOTHING)
    refused = compare_surface(model, np.array([0.11, 0.3], np.float32), NOTHING)
    assert (like.beyond_limits, refused.beyond_limits, NOTHING.beyond_limits) == ({}, {}, {})


def test_another_surface_is_explained_by_what_was_measured_before(surface_training) -> None:
    """A photograph that is a little darker than those of the training, within the limit."""
    grey, dark = (np.full((32, 48, 1), level, np.uint8) for level in (110, 90))
    shifts = {
        name: tuple((measure_photograph(dark)[name] - vector).tolist())
        for name, vector in measure_photograph(grey).items()
    }
    darker = Alteration(cause="darker", shifts=shifts)
    limits = surface_training.limits.model_copy(update={"alterations": (darker,)})
    trained = surface_training.model_copy(update={"limits": limits})
    model = MANIFEST.model_copy(update={"training_photographs": trained})
    before = compare_pixels(model, (32, 48), dark)
    assert before.reason is None and 0.2 < before.distances["brightness"] < 1
    other = np.array([0.11, 0.3], np.float32)
    assert compare_surface(model, other, before).reason == CAUSES["darker"]
    like = compare_pixels(model, (32, 48), grey)
    assert compare_surface(model, other, like).reason == PART
