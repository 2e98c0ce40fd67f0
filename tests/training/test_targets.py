import numpy as np
import pytest

from datasets.sample import Record, Sample
from segdec.config import InputConfig
from segdec.errors import ConfigError
from training.config import TargetConfig
from training.example_cache import ExampleCache
from training.targets import ExampleSource, segmentation_target


def test_target_is_the_share_of_each_cell():
    mask = np.zeros((16, 24), np.uint8)
    mask[0:4, 8:16] = 255  # half of the upper middle cell
    mask[8:16, 16:24] = 255  # the whole lower right cell
    expected = [[0.0, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert segmentation_target(mask, 1)[..., 0].tolist() == expected


def test_dilation_grows_a_diamond():
    mask = np.zeros((16, 16), np.uint8)
    mask[4, 4] = 255  # a 5 px diamond holds 1 + 4 + 8 = 13 pixels
    assert segmentation_target(mask, 5)[0, 0, 0] == 13 / 64
    assert segmentation_target(mask, 1)[0, 0, 0] == 1 / 64


def make_source(shapes, cache_mb=10, **geometry):
    reads = []
    records = [Record(f"r{i}", None, None, 0, f"r{i}") for i in range(len(shapes))]

    def read(record):
        index = records.index(record)
        reads.append(index)
        image = np.full((*shapes[index], 1), index, np.uint8)
        mask = np.zeros(shapes[index], np.uint8)
        mask[0, 0] = 255
        return Sample(record.name, image, mask if index else None, int(index > 0))

    cache = ExampleCache(cache_mb)
    source = ExampleSource(records, read, InputConfig(**geometry), 1, TargetConfig(dilation_px=1), cache)
    return source, reads


def test_examples_are_prepared_as_for_inference():
    source, _ = make_source([(13, 20), (13, 20)])
    assert source.check_one_size() == (16, 24, 1)  # padded to multiples of 8
    assert source[0].target.max() == 0.0  # no mask file: nothing is defective
    assert source[1].target[0, 0, 0] == 1 / 64
    assert source[1].image.max() == 1


def test_cache_keeps_what_fits():
    source, reads = make_source([(8, 8)] * 2)
    assert [source[0].image[0, 0, 0], source[0].image[0, 0, 0]] == [0, 0]
    assert reads == [0]
    uncached, reads = make_source([(8, 8)] * 2, cache_mb=0)
    assert uncached[1] is not uncached[1]
    assert reads == [1, 1]


def test_different_sizes_cannot_share_a_batch():
    source, _ = make_source([(16, 16), (16, 32)])
    with pytest.raises(ConfigError, match=r"'r0' is 16×16, 'r1' is 32×16.*input.policy = 'resize'"):
        source.check_one_size()


def test_resize_makes_sizes_equal():
    source, _ = make_source([(16, 16), (16, 32)], policy="resize", height=24, width=40)
    assert source.check_one_size() == (24, 40, 1)
