"""Run lengths of COCO."""

import numpy as np
import pytest

from segdec.imaging.run_lengths import decode_run_lengths, encode_box_run_lengths, encode_run_lengths


@pytest.mark.parametrize("seed", range(5))
def test_the_run_lengths_of_a_box_are_those_of_the_mask(seed):
    random = np.random.default_rng(seed)
    box = random.random((3, 4)) < 0.5
    box[0, 0] = True
    for left, top in ((0, 0), (6, 4), (2, 1)):
        mask = np.zeros((7, 10), np.uint8)
        mask[top : top + 3, left : left + 4] = box
        assert encode_box_run_lengths(box, left, top, (7, 10)) == encode_run_lengths(mask)


def test_a_box_may_be_the_whole_mask():
    counts = encode_box_run_lengths(np.ones((3, 4), bool), 0, 0, (3, 4))
    assert decode_run_lengths(counts) == [0, 12]
