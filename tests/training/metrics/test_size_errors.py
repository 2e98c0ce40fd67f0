"""Sizes in predicted masks, compared with those in true masks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import lognorm

from datasets.sample import DataSetItem, Sample
from segdec.plan.measuring import Sizes
from tests.segdec.plan.plans import make_model, predict, scores_of
from training.data.reading_pool import ReadingPool
from training.metrics.size_errors import (
    MIN_DEFECTS,
    ComparedSizes,
    compare_sizes,
    estimate_size_errors,
    measure_size_errors,
)

MODEL = make_model(errors=None)


def compared(length, measured, possible):
    return ComparedSizes(*(Sizes(size, size / 4, size**2 / 4) for size in (length, measured, possible)))


def test_parts_that_overlap_are_one_defect():
    truth = scores_of((10, 10, 40, 4), (10, 40, 5, 5)) > 0.5
    scores = scores_of((10, 10, 12, 4), (30, 10, 20, 4), (80, 40, 9, 9))
    scores[10:14, 22:30] = 0.2  # may belong to the defect
    [one] = compare_sizes(predict(scores, MODEL), MODEL, truth)
    assert one.true.length == pytest.approx(40, abs=1)
    assert one.measured.length == pytest.approx(20, abs=1)
    assert one.possible.length == pytest.approx(40, abs=1)
    assert one.measured.area == 80


def test_a_photograph_that_is_called_good_is_not_compared():
    truth = scores_of((10, 10, 40, 4)) > 0.5
    assert compare_sizes(predict(scores_of((10, 10, 40, 4)), MODEL, score=0.1), MODEL, truth) == []


def test_limits_hold_for_further_defects():
    """Of log-normal quotients 99 % are below the upper limit, and 95 % above the lower."""
    random, quotients = np.random.default_rng(0), lognorm(0.3)
    above, below = [], []
    for _ in range(500):
        drawn = quotients.rvs(20, random_state=random)
        errors = estimate_size_errors([compared(100 * quotient, 100, 100) for quotient in drawn])
        low, high = errors.length
        above.append(1 - quotients.cdf(high))
        below.append(quotients.cdf(low))
    assert np.mean(above) == pytest.approx(0.01, abs=0.003)
    assert np.mean(below) == pytest.approx(0.05, abs=0.01)


def test_equal_quotients_are_the_limits():
    errors = estimate_size_errors([compared(30, 20, 40)] * 8)
    assert errors.length == pytest.approx((1.5, 0.75))
    assert errors.area == pytest.approx((2.25, 0.5625))
    assert errors.defects == 8


def test_few_defects_have_no_limits():
    pairs = [compared(20, 20, 20)] * MIN_DEFECTS
    assert estimate_size_errors(pairs[1:]) is None
    assert estimate_size_errors(pairs) is not None


class Marker:
    """Predicts the same scores for each photograph."""

    def __init__(self, model, scores):
        self.config, self.scores = model, scores

    def with_config(self, model):
        return Marker(model, self.scores)

    def predict(self, images):
        return [predict(self.scores, self.config) for _ in images]


def test_only_photographs_with_known_masks_are_compared():
    def read(item):
        truth = (scores_of((10, 10, 40, 4)) > 0.5).view(np.uint8) * np.uint8(255)
        sample = Sample(item.name, np.zeros((60, 100, 1), np.uint8), truth, 1, supervision="mask")
        return replace(sample, ignored=truth) if item.name == "ignored" else sample

    def item(name, label=1, supervision="mask"):
        return DataSetItem(name, Path(name), None, label, name, supervision=supervision)

    items = [item(str(number)) for number in range(5)]
    others = [item("ignored"), item("label", supervision="label"), item("good", label=0)]
    parts = [(Marker(MODEL, scores_of((10, 10, 20, 4))), items + others)]
    model = measure_size_errors(MODEL, parts, read, ReadingPool(1))
    assert model.size_errors.defects == 5
    assert model.size_errors.length[0] == pytest.approx(2, abs=0.1)
    assert measure_size_errors(model, [(parts[0][0], others)], read, ReadingPool(1)).size_errors is None
