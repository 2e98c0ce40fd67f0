import numpy as np
import pytest

from datasets.sample import Sample
from segdec.imaging.overlay import PREDICTED, TRUTH
from segdec.inference.postprocessing import Prediction
from training.data.synthetic_validation import ValidationImages
from training.run.panel import draw_example, draw_picture, join_pictures
from training.run.training_panel import draw_validation


def predict(mask, label="defect"):
    return Prediction(
        label=label,
        score=0.875,
        log_odds=2.0,
        threshold=0.5,
        review_threshold=None,
        probabilities={},
        mask=mask,
        mask_scores=(mask / 255).astype(np.float32),
        grid_scores=np.zeros((1, 1), np.float32),
        mask_threshold=0.5,
        regions=(),
    )


def draw(height, width, *, channels=1, label="defect", masked=True):
    image = np.full((height, width, channels), 100, np.uint8)
    mask = np.zeros((height, width), np.uint8)
    mask[height // 4 : height // 2, width // 4 : width // 2] = 255
    sample = Sample("defect/1", image, mask if masked else None, 1)
    return draw_picture(sample, predict(mask, label), "defect")


def draw_trained(target, weight):
    """An image of 80 × 64 px, three times as large in the picture, without a predicted defect."""
    prediction = predict(np.zeros((80, 64), np.uint8))
    return draw_example("defect/1", np.full((80, 64, 1), 100, np.uint8), target, weight, prediction, "defect")


def holds(picture, color):
    return bool((picture == color).all(axis=2).any())


@pytest.mark.parametrize(
    ("height", "width", "channels"),
    [(32, 32, 1), (1408, 512, 3), (512, 1408, 1), (1400, 60, 1), (1, 3000, 3)],
)
def test_any_photograph_becomes_a_picture_that_can_be_read(height, width, channels):
    picture = draw(height, width, channels=channels)
    assert picture.dtype == np.uint8
    assert 480 <= picture.shape[1] <= 1600
    assert picture.shape[0] <= 2000
    if min(height, width) > 1:
        assert holds(picture, PREDICTED)
        assert holds(picture, TRUTH)


def test_a_training_image_is_shown_beside_its_target():
    target, weight = np.zeros((10, 8), np.float32), np.ones((10, 8), np.float32)
    target[2, 3] = 0.5
    plain = draw_trained(target, weight)
    assert holds(plain, TRUTH)
    weight[2, 3] = 4.0
    weighted = draw_trained(target, weight)
    assert weighted.shape[1] > plain.shape[1]
    unknown = draw_trained(np.zeros_like(target), np.zeros_like(weight))
    assert unknown.shape == plain.shape
    assert not holds(unknown, TRUTH)


def test_pictures_of_any_size_share_a_sheet():
    pictures = [np.full((100 + i, 700, 3), 200, np.uint8) for i in range(5)]
    sheet = join_pictures(pictures)
    assert sheet.shape[1] <= 1600
    assert (sheet == 200).all(axis=2).sum() == sum(p.shape[0] * p.shape[1] for p in pictures)


def test_panel_holds_the_same_defective_and_good_images_each_time(predictor, make_samples):
    entries = [(f"defect/{i:02}", 1, 220, True) for i in range(10)]
    entries += [(f"good/{i:02}", 0, None, False) for i in range(10)]
    images = ValidationImages(*make_samples(*entries))
    panel = draw_validation(predictor, images)
    names = ["defect/00", "defect/03", "defect/06", "defect/09", "good/00", "good/09"]
    assert list(panel) == list(draw_validation(predictor, images)) == names
    for name, picture in panel.items():
        assert holds(picture, TRUTH) == name.startswith("defect")
