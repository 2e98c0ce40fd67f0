import numpy as np
import pytest

from training.config import TargetConfig
from training.data.example_source import Example
from training.data.sampling import SYNTHETIC, UNCHANGED
from training.data.synthetic_source import ANY_DEFECT, SyntheticSource
from training.data.targets import dilate

SIDE = 48


class Examples:
    """Two good ones, one with a square, one of which the class alone is known, one whose mask was lost."""

    labels = (0, 0, 1, 2, 1)
    supervised = (True, True, True, False, True)

    def __init__(self):
        random = np.random.default_rng(0)
        self.images = [random.integers(100, 130, (SIDE, SIDE, 1)).astype(np.uint8) for _ in self.labels]
        self.images[2][10:22, 10:22] = 220
        self.mask = np.zeros((SIDE, SIDE), np.uint8)
        self.mask[10:22, 10:22] = 255

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return Example(self.images[index], self.mask if index == 2 else None)

    def name(self, index):
        return f"photograph/{index}"

    def has_boxes(self, index):
        return index == 4


EXAMPLES = Examples()


def make(classes=3, **target):
    return SyntheticSource(EXAMPLES, classes, TargetConfig(**target))


def get(index, donor, seed=0, **settings):
    return make(**settings).get(index, donor, np.random.default_rng(seed))


def test_unchanged_examples():
    source = make()
    for index in range(len(EXAMPLES)):
        assert get(index, UNCHANGED).image is EXAMPLES.images[index]
        assert source.label(index, UNCHANGED, masked=index == 2) == EXAMPLES.labels[index]
        assert source.is_supervised(index, UNCHANGED) == EXAMPLES.supervised[index]
        assert source.name(index, UNCHANGED) == f"photograph/{index}"
        assert source.has_boxes(index, UNCHANGED) == (index == 4)


@pytest.mark.parametrize(("classes", "label"), [(2, 1), (3, ANY_DEFECT)])
def test_a_synthetic_defect(classes, label):
    source, example = make(classes), get(1, SYNTHETIC)
    assert (example.image != EXAMPLES.images[1]).any()
    assert example.mask.any()
    assert source.label(1, SYNTHETIC, masked=True) == label
    assert source.label(1, SYNTHETIC, masked=False) == 0  # no visible defect
    assert source.is_supervised(1, SYNTHETIC)
    assert not source.has_boxes(4, SYNTHETIC)
    assert source.name(1, SYNTHETIC) == "photograph/1 + synthetic defect"


def test_a_transplanted_defect_keeps_its_class():
    source, example = make(), get(0, 2)
    unchanged = example.mask == 0
    assert np.mean(example.image[unchanged] == EXAMPLES.images[0][unchanged]) > 0.8
    assert np.median(example.image[~unchanged]) > 180
    assert source.label(0, 2, masked=True) == 1
    assert source.is_supervised(0, 2)
    assert not source.has_boxes(0, 4)
    assert source.name(0, 2) == "photograph/0 + photograph/2"
    assert get(0, 4).image is EXAMPLES.images[4]  # scaling may lose a small mask: then the donor itself
    assert source.label(0, 4, masked=False) == 1


def test_a_synthetic_mask_is_dilated_like_others():
    """Before they come here, in the photograph's pixels; otherwise all grow when targets are built."""
    config = {"dilation_px": 7, "dilation_at": "photograph"}
    exact, grown = get(0, SYNTHETIC, 3).mask, get(0, SYNTHETIC, 3, **config).mask
    np.testing.assert_array_equal(grown, dilate(exact, TargetConfig(**config)) * 255)
    assert np.count_nonzero(grown) > np.count_nonzero(exact)
