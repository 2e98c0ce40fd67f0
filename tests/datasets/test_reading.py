from dataclasses import replace

import numpy as np
import pytest

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.shapes import Box
from datasets.reading import read, read_files
from datasets.sample import DataSetItem
from segdec.errors import DatasetError, ImageError


def test_sample_holds_pixels_and_binary_mask(tmp_path, write_picture):
    image = write_picture(tmp_path / "a.png")
    mask = write_picture(tmp_path / "m.png", mask=True, value=85)
    sample = read(DataSetItem("a", image, mask, label=1, group="a"))
    assert (sample.image.shape, sample.image.dtype) == ((12, 20, 1), np.uint8)
    assert sample.mask.shape == (12, 20)
    assert set(np.unique(sample.mask)) == {0, 255}
    assert np.count_nonzero(sample.mask) == 6
    assert (sample.name, sample.label) == ("a", 1)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((24, 12), r"m\.png is 24×12 pixels.*a\.png is 20×12 pixels"),
        ((12, 20), "EXIF orientation, remove it"),
    ],
)
def test_mask_of_another_size_is_refused(tmp_path, write_picture, size, words):
    image, mask = write_picture(tmp_path / "a.png"), write_picture(tmp_path / "m.png", mask=True, size=size)
    with pytest.raises(DatasetError, match=words):
        read(DataSetItem("a", image, mask, label=1, group="a"))


@pytest.mark.parametrize("wrap", [lambda mask: mask, BoxedMask, lambda mask: CombinedMask((mask,))])
def test_mask_above_the_limit_is_not_drawn(wrap, tmp_path, write_picture):
    image = write_picture(tmp_path / "a.png", size=(20, 12))
    drawn = DrawnMask("line 3", 12, 20, (Box(5, 4, 3, 2),))
    item = DataSetItem("a", image, wrap(drawn), label=1, group="a")
    assert np.count_nonzero(read(item, max_pixels=240).mask) == 6
    with pytest.raises(ImageError, match=r"line 3 .*20 × 12 = 240 pixels\. Expected at most 239"):
        read_files(item, max_pixels=239)
    huge = replace(item, mask_file=wrap(DrawnMask("line 4", 2**15, 2**15, drawn.shapes)))
    with pytest.raises(ImageError, match=r"line 4 .*Expected at most 67,108,864"):
        read_files(huge)
    assert read_files(replace(huge, mask_file=drawn), max_pixels=2**30).mask
    assert read_files(replace(item, mask_file=wrap(replace(drawn, max_pixels=239))), max_pixels=240).mask
