import numpy as np
import pytest

from segdec.artifact import TrainingPhotographs, describe_differences
from segdec.config import InputConfig
from segdec.errors import ImageError
from segdec.images import PIXELS, Photograph
from tests.segdec.artifact.test_artifact import MANIFEST

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
    found = describe_differences(model, photograph, photograph.pixels)
    assert [text.split(":")[0] for text in found] == warnings
    assert describe_differences(MANIFEST, photograph, photograph.pixels) == ()  # of an earlier version


@pytest.mark.parametrize(
    ("level", "height", "width", "policy", "reason"),
    [
        (110, 32, 48, "native", None),
        (3, 32, 48, "native", "darker"),
        (110, 48, 32, "native", "of other proportions"),
        (110, 64, 96, "native", "of another size"),
        (110, 64, 96, "resize", None),
    ],
)
def test_photograph_unlike_those_of_the_training(grey_training, level, height, width, policy, reason) -> None:
    size = {} if policy == "native" else {"height": 32, "width": 48}
    changes = {"training_photographs": grey_training, "input": InputConfig(policy=policy, **size)}
    model = MANIFEST.model_copy(update=changes)
    photograph = Photograph(np.full((height, width, 1), level, np.uint8), "png", 8)
    prepared = np.full((32, 48, 1), level, np.uint8)
    if reason is None:
        found = describe_differences(model, photograph, prepared)
        assert not any(text.startswith("unlike_training") for text in found)
        return
    with pytest.raises(ImageError, match=f"The photograph is {reason} than those of the training") as caught:
        describe_differences(model, photograph, prepared)
    assert caught.value.code == "unlike_training"
    first, *_ = describe_differences(model, photograph, prepared, "warn")
    assert first == f"unlike_training: {reason} than those of the training"
