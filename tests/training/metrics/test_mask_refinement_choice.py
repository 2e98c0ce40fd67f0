"""Choice of the mask threshold's share and of refinement, with an engine that marks cells."""

import threading

import cv2
import numpy as np
import pytest

from datasets.sample import DataSetItem, Sample
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Logits
from segdec.predictor import Predictor
from training.data.reading_pool import ReadingPool
from training.metrics import masked_photographs
from training.metrics.mask_refinement_choice import UNMEASURED_SHARE, choose_mask_refinement
from training.metrics.validation import Validator

MODEL = ModelConfig(network=NetworkConfig(), input=InputConfig(), classes=("good", "defect"))
MEMORY = MODEL.model_copy(update={"network": NetworkConfig(preset="mobilenet", heads=2, memory=8)})
LINE = np.s_[42:50, 36:84]


class CellEngine:
    """Marks cells that have dark pixels, and calls all photographs defective, or all good."""

    batch_pixels = 1

    def __init__(self, defect_logit=5.0):
        self.defect_logit = defect_logit

    def infer(self, images):
        height, width = images.shape[1] // 8, images.shape[2] // 8
        dark = [
            cv2.resize((image < 100).astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
            for image in images[..., 0]
        ]
        classes = np.array([[0, self.defect_logit]] * len(images), np.float32)
        return Logits(6 * np.stack(dark)[..., None] - 2, classes)


def items(supervision="mask", count=3):
    return [DataSetItem(str(n), None, None, 1, str(n), supervision=supervision) for n in range(count)]


def read_line(item, drawn=LINE):
    image, mask = np.full((96, 128, 1), 120, np.uint8), np.zeros((96, 128), np.uint8)
    image[LINE], mask[drawn] = 60, 255
    return Sample(item.name, image, mask, 1, supervision=item.supervision)


def chosen(parts, read, model=MODEL):
    limits = choose_mask_refinement(model, parts, read, ReadingPool(1)).thresholds
    return limits.mask_share, limits.refine_mask


def test_masks_along_the_defect_choose_refinement():
    _, refine = chosen([(Predictor(CellEngine(), MODEL), items())], read_line)
    assert refine


def test_masks_around_the_defect_choose_the_network_s_own():
    def read(item):
        return read_line(item, np.s_[38:56, 32:88])

    assert chosen([(Predictor(CellEngine(), MODEL), items())], read) == (0.0, False)


@pytest.mark.parametrize(("supervision", "logit"), [("label", 5.0), ("mask", -5.0)])
def test_without_measured_masks_models_with_a_memory_refine(supervision, logit):
    parts = [(Predictor(CellEngine(logit), MODEL), items(supervision))]
    assert chosen(parts, read_line, MEMORY) == (UNMEASURED_SHARE, True)
    assert chosen(parts, read_line) == (0.0, False)


@pytest.mark.parametrize("supervision", ["label", "mask"])
def test_masks_for_each_class_need_no_choice(supervision):
    classes = ("good", "line", "spot")
    network = MEMORY.network.model_copy(update={"num_classes": 3, "mask_classes": True})
    model = MEMORY.model_copy(update={"network": network, "classes": classes})
    read = []
    assert chosen([(Predictor(CellEngine(), model), items(supervision))], read.append, model) == (0.0, False)
    assert not read


def test_the_mask_threshold_is_chosen_on_the_networks_own_scores():
    """`calibrate` measures a model whose masks are refined."""
    refined = MODEL.with_mask_refinement(0.4, refine=True)
    pools = []
    for model in (MODEL, refined):
        parts = [(Predictor(CellEngine(), model), items())]
        pools.append(Validator(parts, read_line, 2, ReadingPool(1)).measure().pixels)
    own, measured = (pixels.to_arrays()["defect"] for pixels in pools)
    assert np.array_equal(own, measured)


@pytest.mark.parametrize(("max_pixels", "expected"), [(10**9, 100), (10 * 96 * 128, 10)])
def test_few_photographs_of_all_parts_are_read(monkeypatch, max_pixels, expected):
    monkeypatch.setattr(masked_photographs, "MAX_PIXELS", max_pixels)
    read = []
    parts = [(Predictor(CellEngine(-5.0), MODEL), items(count=125)) for _ in range(2)]
    choose_mask_refinement(MODEL, parts, lambda item: read.append(item) or read_line(item), ReadingPool(1))
    assert len(read) == expected
    for _, own in parts:
        assert {id(item) for item in own} & {id(item) for item in read}


def test_photographs_are_compared_in_parallel():
    meeting = threading.Barrier(2, timeout=60.0)

    def read_together(item):
        meeting.wait()
        return read_line(item)

    parts = [(Predictor(CellEngine(), MODEL), items(count=4))]
    assert choose_mask_refinement(MODEL, parts, read_together, ReadingPool(2)).thresholds.refine_mask
