import numpy as np
import pytest

from segdec.artifact import TrainingPhotographs, describe_differences
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
    assert [text.split(":")[0] for text in describe_differences(model, photograph)] == warnings
    assert describe_differences(MANIFEST, photograph) == ()  # an artifact of an earlier version
