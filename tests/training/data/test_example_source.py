from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datasets.sample import DataSetItem, Sample
from segdec.config import InputConfig
from segdec.errors import ConfigError
from training.data.array_cache import ArrayCache
from training.data.example_source import PhotographSource, TileSource

TILES = {"policy": "tile", "height": 16, "width": 24}


def make_source(shapes, cache_mb=10, unmasked=(), **geometry):
    """Photograph 0 is good, the others have a defect in the first pixel."""
    reads = []
    items = [
        DataSetItem(f"r{i}", None, Path("mask") if i and i not in unmasked else None, int(i > 0), f"r{i}")
        for i in range(len(shapes))
    ]

    def read(item):
        index = items.index(item)
        reads.append(index)
        image = np.full((*shapes[index], 1), index, np.uint8)
        mask = np.zeros(shapes[index], np.uint8)
        mask[0, 0] = 255
        return Sample(item.name, image, mask if item.mask_file else None, item.label)

    return PhotographSource(items, read, InputConfig(**geometry), 1, ArrayCache(cache_mb)), reads


def test_examples_are_prepared_as_for_inference():
    source, _ = make_source([(13, 20), (13, 20), (13, 20)], unmasked=[2])
    assert source.common_shape() == (16, 24, 1)  # padded to multiples of 8
    assert (source[0].mask, source.supervised[0]) == (None, True)  # good: nothing is defective
    assert source[1].mask.shape == (16, 24)
    assert np.argwhere(source[1].mask).tolist() == [[0, 0]]
    assert source[1].image.max() == 1
    assert (source[2].mask, source.supervised[2]) == (None, False)  # defective, location unknown
    assert source.labels == [0, 1, 1]


def test_masks_differ_from_boxes_and_labels():
    source, _ = make_source([(20, 38)] * 4, unmasked=[2], **TILES)
    source.items[3] = replace(source.items[3], supervision="box")
    assert [source.has_drawn_mask(index) for index in range(4)] == [False, True, False, False]
    assert [source.has_boxes(index) for index in range(4)] == [False, False, False, True]
    photographs, _ = make_source([(20, 38)] * 3, **TILES)
    photographs.items[2] = replace(photographs.items[2], supervision="box")
    tiles = TileSource(photographs, InputConfig(**TILES), 8)
    assert [index for index in range(len(tiles)) if tiles.has_drawn_mask(index)] == [4]
    assert [index for index in range(len(tiles)) if tiles.has_boxes(index)] == [8, 9, 10, 11]


def test_examples_are_cached_if_there_is_space():
    source, reads = make_source([(8, 8)] * 2)
    assert [source[0].image[0, 0, 0], source[0].image[0, 0, 0]] == [0, 0]
    assert reads == [0]
    uncached, reads = make_source([(8, 8)] * 2, cache_mb=0)
    assert uncached[1].image is not uncached[1].image
    assert reads == [1, 1]


def test_different_sizes_are_rejected():
    source, _ = make_source([(16, 16), (16, 32)])
    with pytest.raises(ConfigError, match=r"'r0' is 16×16, 'r1' is 32×16.*input.policy = 'resize'"):
        source.common_shape()


def test_tiles_are_labelled_by_their_own_part_of_the_mask():
    # 16 px of 24 rows with 8 shared: rows 0 and 8. 24 px of 40 columns: 0 and 16.
    source = TileSource(make_source([(20, 38), (20, 38)], **TILES)[0], InputConfig(**TILES), 8)
    assert source.common_shape() == source[4].image.shape == (16, 24, 1)
    names = ["r0[0,0]", "r0[16,0]", "r0[0,8]", "r0[16,8]", "r1[0,0]"]
    assert [source.name(index) for index in range(5)] == names
    assert source.labels == [0, 0, 0, 0, 1, 0, 0, 0]
    assert source[4].mask.shape == (16, 24)
    assert (source[5].mask, source.supervised[5]) == (None, True)


def test_label_only_photographs_cannot_be_cut_into_tiles():
    photographs, reads = make_source([(20, 38)] * 4, unmasked=[1, 3], **TILES)
    with pytest.raises(ConfigError, match=r"2 defective .*: r1, r3\. Expected masks"):
        TileSource(photographs, InputConfig(**TILES), 8)
    assert reads == []
