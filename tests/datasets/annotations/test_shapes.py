import cv2
import numpy as np
import pytest

from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.run_length_shape import RunLengthShape
from datasets.annotations.shapes import Bitmap, Box, Polygon, check_inside, read_points
from segdec.images import decode_mask


def drawn(*shapes, height=6, width=8):
    return DrawnMask("a.json, entry 1", height, width, shapes).draw() // 255


def rows(mask):
    return ["".join(map(str, row)) for row in mask]


def test_polygon_along_pixel_edges_covers_its_area_exactly():
    shape = Polygon.from_flat([2, 1, 5, 1, 5, 3, 2, 3])
    assert rows(drawn(shape)) == ["00000000", "00111000", "00111000", "00000000", "00000000", "00000000"]
    assert shape.area_px == drawn(shape).sum() == 6


def test_pixel_belongs_to_the_polygon_that_holds_its_centre():
    # the long side, x + y = 4, runs through centres: they belong to the shape on its right
    lower = Polygon(((0.0, 0.0), (4.0, 0.0), (0.0, 4.0)))
    upper = Polygon(((4.0, 0.0), (4.0, 4.0), (0.0, 4.0)))
    assert rows(drawn(lower, height=4, width=4)) == ["1110", "1100", "1000", "0000"]
    assert rows(drawn(upper, height=4, width=4)) == ["0001", "0011", "0111", "1111"]


def test_polygon_too_thin_to_hold_a_centre_marks_the_pixels_it_runs_through():
    # its lower end is on the edge between two pixels: of the lower one
    assert rows(drawn(Polygon.from_flat([1.6, 1, 1.8, 4, 1.7, 4]), height=5, width=3)) == ["000"] + 4 * [
        "010"
    ]


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (Box(2, 0, 3, 1), "00111000"),
        (Box(1.5, 0, 2, 1), "01100000"),  # from centre to centre: the left one
        (Box(1.6, 0, 1.8, 1), "00100000"),
        (Box(6.7, 0, 0.1, 1), "00000010"),
    ],
)
def test_box_covers_the_pixels_whose_centres_it_holds(box, expected):
    assert rows(drawn(box, height=1)) == [expected]


def test_bitmap_keeps_its_pixels_and_its_place():
    shape = Bitmap.from_mask(3, 1, np.array([[7, 0, 7], [0, 7, 0]]))
    assert rows(drawn(shape, height=3)) == ["00000000", "00010100", "00001000"]
    assert shape.area_px == 3
    assert shape == Bitmap.from_mask(3, 1, np.array([[1, 0, 1], [0, 1, 0]]))


def test_drawn_mask_reads_as_a_png_file():
    mask = DrawnMask("a.json, entry 1", 6, 8, (Box(2, 1, 3, 2), Polygon.from_flat([4, 2, 7, 2, 7, 4, 4, 4])))
    assert str(mask) == "a.json, entry 1"
    pixels = decode_mask(mask.read_bytes(), str(mask))
    assert rows(pixels // 255)[:4] == ["00000000", "00111000", "00111110", "00001110"]
    assert cv2.countNonZero(pixels) == 6 + 6 - 1  # one pixel is in both


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Polygon.from_flat([1, 1, 2, 2]), "a polygon of 2 different points"),
        (lambda: Polygon.from_flat([1, 1, 2, 2, 3]), "5 numbers has an x without a y"),
        (lambda: Polygon.from_flat([1, 1, 2, "2", 3, 3]), "'2' is not a number"),
        (lambda: Polygon.from_flat([1, 1, True, 2, 3, 3]), "True is not a number"),
        (lambda: Polygon.from_flat({"size": [1, 1]}), "not a list of numbers"),
        (lambda: Polygon.from_flat([1, 1, float("nan"), 2, 3, 3]), "the coordinate nan"),
        (lambda: Polygon.from_flat([1, 1, 10**400, 2, 3, 3]), "the coordinate 1000"),
        (lambda: read_points([[1, 1], [2, 2, 2], [3, 3]]), "a point of 3 numbers"),
        (lambda: read_points("1,1"), "not a list of points"),
        (lambda: Box(1, 1, 5, -2), "the box of 5×-2 pixels is empty"),
        (lambda: Box.from_list([1, 2, 3]), "the box has 3 numbers"),
        (lambda: Bitmap.from_mask(0, 0, np.zeros((2, 2))), "marks no pixel"),
        (lambda: Bitmap.from_mask(0, 0, np.zeros((2, 0))), r"shape \(2, 0\)"),
    ],
)
def test_what_cannot_be_drawn_is_reported(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Box(8, 0, 2, 2), r"the shape from \(8, 0\) to \(10, 2\) is outside the picture of 8×6"),
        (Polygon.from_flat([-5, 1, -1, 1, -1, 3]), "outside the picture"),
    ],
)
def test_shape_outside_its_picture_is_refused(shape, words):
    with pytest.raises(ValueError, match=words):
        check_inside(shape, 6, 8)


def test_shape_over_the_edge_by_more_than_a_pixel_is_reported():
    for shape in (Box(-1, -1, 10, 8), Polygon.from_flat([-0.4, 0, 8.6, 0, 8, 6.9])):
        assert not check_inside(shape, 6, 8)
    assert not check_inside(RunLengthShape.from_starts("1 48", 6, 8), 6, 8)
    assert check_inside(Box(2, -1.5, 2, 4), 6, 8).startswith("y = -1.5 is outside the picture of 8×6")
    assert "x = 9.5 is outside" in check_inside(Polygon.from_flat([2, 1, 9.5, 1, 2, 3]), 6, 8)
    assert "y = 8 is outside" in check_inside(Bitmap.from_mask(2, 4, np.ones((4, 2))), 6, 8)
