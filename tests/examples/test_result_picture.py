import cv2
import pytest

from datasets.layouts.toy import make_sample, write_toy
from examples.result_picture import choose, main
from segdec.errors import DatasetError


def test_five_defects_of_all_sizes_and_a_good_photograph_are_drawn(tiny_artifact, tmp_path):
    write_toy(tmp_path / "toy", 60, size=32)
    main([str(tmp_path / "result.jpg"), str(tiny_artifact), str(tmp_path / "toy")])
    height, width, _ = cv2.imread(str(tmp_path / "result.jpg")).shape
    assert (height, width) == (3 * (64 + 384) + 64, 6 * 384 + 5 * 8)


def test_the_choice_spreads_over_the_sizes():
    samples = [make_sample(number, size=32) for number in range(40)]
    sizes = [int((sample.mask > 0).sum()) for sample in samples if sample.label]
    chosen = [int((sample.mask > 0).sum()) for sample in choose(samples, 5)]
    assert chosen == [*(sorted(sizes)[place] for place in (2, 6, 10, 14, 18)), 0]


def test_too_few_photographs_are_refused():
    with pytest.raises(DatasetError, match="2 good and 2 defective"):
        choose([make_sample(number, size=32) for number in range(4)], 5)
