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


@pytest.fixture
def examples():
    return Examples()


@pytest.fixture
def make(examples):
    def make(classes=2, **target):
        return SyntheticSource(examples, classes, TargetConfig(**target))

    return make


def random(seed=0):
    return np.random.default_rng(seed)


def test_unchanged_examples(make, examples):
    source = make(3)
    for index in range(len(examples)):
        assert source.get(index, UNCHANGED, random()).image is examples.images[index]
        masked = index == 2
        assert source.label(index, UNCHANGED, masked=masked) == examples.labels[index]
        assert source.is_supervised(index, UNCHANGED) == examples.supervised[index]
        assert source.name(index, UNCHANGED) == f"photograph/{index}"


@pytest.mark.parametrize(("classes", "label"), [(2, 1), (3, ANY_DEFECT), (7, ANY_DEFECT)])
def test_the_class_of_a_synthetic_defect(make, examples, classes, label):
    source = make(classes)
    example = source.get(1, SYNTHETIC, random())
    assert (example.image != examples.images[1]).any()
    assert example.mask.any()
    assert source.label(1, SYNTHETIC, masked=True) == label
    assert source.is_supervised(1, SYNTHETIC)
    assert source.name(1, SYNTHETIC) == "photograph/1 + synthetic defect"


def test_an_example_without_visible_defect_is_good(make):
    assert make().label(1, SYNTHETIC, masked=False) == 0


def test_a_transplanted_defect_keeps_its_class(make, examples):
    source = make(3)
    example = source.get(0, 2, random())
    assert example.mask.any()
    unchanged = example.mask == 0
    assert np.mean(example.image[unchanged] == examples.images[0][unchanged]) > 0.8
    assert np.median(example.image[~unchanged]) > 180
    assert source.label(0, 2, masked=True) == 1
    assert source.is_supervised(0, 2)
    assert source.name(0, 2) == "photograph/0 + photograph/2"


def test_a_donor_without_mask_is_returned_itself(make, examples):
    """As scaling loses a defect that is small enough."""
    source = make(3)
    assert source.get(0, 4, random()).image is examples.images[4]
    assert source.label(0, 4, masked=False) == 1


def test_a_synthetic_mask_is_dilated_like_others(make):
    """Before they come here, in the photograph's pixels; otherwise all grow when targets are built."""
    exact = make().get(0, SYNTHETIC, random(3)).mask
    config = TargetConfig(dilation_px=7, dilation_at="photograph")
    grown = make(dilation_px=7, dilation_at="photograph").get(0, SYNTHETIC, random(3)).mask
    np.testing.assert_array_equal(grown, dilate(exact, config) * 255)
    assert np.count_nonzero(grown) > np.count_nonzero(exact)
