from collections import Counter

import numpy as np
import pytest

from datasets.sample import DataSetItem, Sample, is_unlocalized
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from training.data.array_cache import ArrayCache
from training.data.synthetic_validation import synthetic_validation

COUNT = 4


@pytest.fixture
def photographs(tmp_path):
    """Good photographs [48, 40], and what reads and counts them."""
    random = np.random.default_rng(0)
    names = [f"good/{number}" for number in range(COUNT)]
    images = {name: random.integers(90, 130, (48, 40, 1)).astype(np.uint8) for name in names}
    reads = Counter()

    def read(item):
        reads[item.name] += 1
        return Sample(item.name, images[item.name], None, item.label)

    items = tuple(DataSetItem(name, tmp_path / f"{name}.png", None, 0, name, "val") for name in names)
    return items, read, reads


@pytest.fixture
def model():
    """What takes photographs of 32 × 64."""
    network = NetworkConfig(preset="compact")
    geometry = InputConfig(policy="resize", height=32, width=64)
    return ModelConfig(network=network, input=geometry, classes=("good", "defect"))


def test_each_good_photograph_gets_a_copy_with_a_defect(photographs, model):
    items, read, _ = photographs
    judged = synthetic_validation(items, read, model, 0, ArrayCache(1))
    assert judged.items[:COUNT] == list(items)
    copies = judged.items[COUNT:]
    assert [copy.name for copy in copies] == [f"{item.name} + synthetic defect" for item in items]
    for item, copy in zip(items, copies, strict=True):
        assert (copy.label, copy.group, copy.split) == (1, item.group, "val")
        assert not is_unlocalized(copy)
        assert judged.read(item).image is read(item).image
        sample = judged.read(copy)
        assert (sample.name, sample.label, sample.supervision) == (copy.name, 1, "mask")
        assert sample.image.shape == (32, 64, 1)  # as the network sees it
        assert sample.mask.shape == (32, 64)
        assert sample.mask.any()


def test_copies_are_reproducible_and_cached(photographs, model):
    items, read, reads = photographs

    def images(validation):
        return [validation.read(item).image for item in validation.items]

    one = synthetic_validation(items, read, model, 0, ArrayCache(1))
    first, counted = images(one), reads.total()
    np.testing.assert_equal(images(one), first)
    assert reads.total() == counted
    np.testing.assert_equal(images(synthetic_validation(items, read, model, 0, ArrayCache(0))), first)
    others = images(synthetic_validation(items, read, model, 1, ArrayCache(0)))
    assert any((ours != theirs).any() for ours, theirs in zip(first, others, strict=True))


def test_real_defects_need_no_synthetic_ones(photographs, model):
    items, read, _ = photographs
    defective = DataSetItem("dent/0", items[0].image_file, items[0].image_file, 1, "dent/0", "val")
    assert synthetic_validation((*items, defective), read, model, 0, ArrayCache(1)) is None
