import numpy as np
import pytest

from datasets.annotations.run_length_shape import RunLengthShape

MASK = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 1]])
"""Down the columns: 0 1 1, 1 1 0, 0 0 1; one good pixel, four of defect, three good, one of defect."""


def drawn(shape, height=3, width=3):
    mask = np.zeros((height, width), np.uint8)
    shape.fill(mask)
    return mask // 255


def test_coco_counts_run_down_the_columns():
    shape = RunLengthShape.from_coco([1, 4, 3, 1], 3, 3)
    np.testing.assert_array_equal(drawn(shape), MASK)
    assert shape.area_px == 5


def test_packed_counts_are_those_of_pycocotools():
    encode = pytest.importorskip("pycocotools.mask").encode
    mask = np.random.default_rng(0).integers(0, 2, (37, 23), dtype=np.uint8)
    mask[:, 5:9] = 1  # a run of more than five bits, and negative differences
    packed = encode(np.asfortranarray(mask))["counts"].decode()
    np.testing.assert_array_equal(drawn(RunLengthShape.from_coco(packed, 37, 23), 37, 23), mask)


def test_starts_count_from_one_in_any_order():
    shape = RunLengthShape.from_starts("9 1 2 4", 3, 3)
    np.testing.assert_array_equal(drawn(shape), MASK)
    assert shape == RunLengthShape.from_coco([1, 4, 3, 1], 3, 3)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([1, 4], "5 pixels, the picture of 3×3 has 9"),
        ([10, -1], "a run has -1 pixels"),
        ([9], "mark no pixel"),
        ([1, 2.5, 5.5], "whole numbers"),
        ([1, "x", 8], "whole numbers"),
        ([[1, 2], [3, 4]], "whole numbers"),
        ([1, 10**30], "whole numbers"),
        ([1, 2**40], "exceeds any picture"),
        ({"a": 1}, "type dict"),
        ("14o", "end inside a number"),
        ("o" * 10_000, "'o'"),
    ],
)
def test_broken_counts_are_reported(counts, words):
    with pytest.raises(ValueError, match=words):
        RunLengthShape.from_coco(counts, 3, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2 3", "3 numbers arrived; expected pairs"),
        ("", "mark no pixel"),
        ("8 3", "the run of 3 pixels from pixel 8 exceeds the picture of 3×3 = 9 pixels"),
        ("0 2", "from pixel 0 exceeds"),
        ("3 -1", "a run has -1 pixels"),
        ("1 3 3 2", "from pixel 1 and from pixel 3 overlap"),
        ("1 three", "whole numbers"),
    ],
)
def test_broken_starts_are_reported(text, words):
    with pytest.raises(ValueError, match=words):
        RunLengthShape.from_starts(text, 3, 3)
