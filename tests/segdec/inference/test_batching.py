import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.inference.batching import Batcher, PendingPhotograph
from segdec.predictor import Predictor
from tests.segdec.first_pixel_engine import FirstPixelEngine


@pytest.fixture
def engine() -> FirstPixelEngine:
    return FirstPixelEngine()


@pytest.fixture
def predictor(engine: FirstPixelEngine) -> Predictor:
    config = ModelConfig(
        network=NetworkConfig(preset="compact"), input=InputConfig(), classes=("good", "defect")
    )
    return Predictor(engine, config)


def flat(value: int, height: int = 8, width: int = 8) -> NDArray[np.uint8]:
    return np.full((height, width, 1), value, np.uint8)


def answers(batcher: Batcher, images: list[NDArray[np.uint8]]) -> list[str]:
    """Labels of images that all wait before the first one is inferred."""
    waiting = [batcher.prepare(PendingPhotograph(image)) for image in images]
    return [batcher.interpret(batcher.infer(each)).label for each in waiting]


def test_waiting_photographs_share_batches(predictor: Predictor, engine: FirstPixelEngine) -> None:
    labels = answers(Batcher(predictor, batch_size=4), [flat(95 + value) for value in range(11)])
    assert labels == ["good"] * 5 + ["defect"] * 6  # logit 0, probability 0.5, is defective
    assert [shape[0] for shape in engine.shapes] == [4, 4, 2, 1]


def test_batches_have_one_size_in_order(predictor: Predictor, engine: FirstPixelEngine) -> None:
    images = [flat(1), flat(200), flat(1, 16), flat(200), flat(1), flat(1)]
    labels = ["good", "defect", "good", "defect", "good", "good"]
    assert answers(Batcher(predictor, batch_size=8), images) == labels
    assert [shape[0] for shape in engine.shapes] == [2, 1, 2, 1]


def test_default_batch_size_follows_the_engine(predictor: Predictor, engine: FirstPixelEngine) -> None:
    assert predictor.warmup_shape() == (256, 256, 1)
    for pixels, count in ((1, 2), (2 * 256 * 256, 4), (99 * 256 * 256, 16)):
        predictor.batch_pixels = pixels
        answers(Batcher(predictor), [flat(1)] * count)
    assert [shape[0] for shape in engine.shapes] == [1, 1, 2, 2, 8, 8]


def test_batch_that_fails_is_the_error_of_its_photographs(predictor: Predictor) -> None:
    batcher = Batcher(predictor, batch_size=2)
    waiting = [batcher.prepare(PendingPhotograph(flat(value))) for value in (1, 255, 2, 3)]
    asked = [batcher.infer(each) for each in waiting]
    for failed in asked[:2]:
        with pytest.raises(MemoryError):
            batcher.interpret(failed)
    assert [batcher.interpret(each).label for each in asked[2:]] == ["good", "good"]


# === Predictor.predict_many ===


def test_many_are_predicted_as_one_by_one(predictor: Predictor) -> None:
    sides = np.random.default_rng(0).integers(8, 40, (20, 2)).tolist()
    images = [flat(value, *size) for value, size in enumerate(sides, start=80)]
    with predictor.predict_many(iter(images), threshold=0.3, batch_size=3) as predictions:
        found = list(predictions)
    for one, other in zip(found, predictor.predict(images, threshold=0.3), strict=True):
        assert (one.label, one.score, one.threshold) == (other.label, other.score, other.threshold)
        np.testing.assert_array_equal(one.mask_scores, other.mask_scores)


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"max_in_flight": 0}])
def test_wrong_numbers_are_rejected(wrong: dict[str, int], predictor: Predictor) -> None:
    with pytest.raises(ValueError, match=r"=0\. Expected at least 1"):
        predictor.predict_many([], **wrong)
