import pytest

from datasets.annotations.cvat_shapes import read_shape
from datasets.annotations.cvat_xml import Element


def test_a_mask_is_bounded_however_large_the_photograph():
    """Its run lengths are unpacked as soon as they are read, and a few letters name any number of pixels."""
    place = {"label": "dent", "left": "0", "top": "0", "rle": "0, 400000000"}
    element = Element("mask", {**place, "width": "20000", "height": "20000"}, line=1)
    with pytest.raises(ValueError, match=r"20000×20000 pixels .*at most 67108864; draw the defect in parts"):
        read_shape(element, 20_000, 20_000)
    small = Element("mask", {**place, "width": "2", "height": "1", "rle": "1, 1"}, line=1)
    assert read_shape(small, 20_000, 20_000).shape.area_px == 1
