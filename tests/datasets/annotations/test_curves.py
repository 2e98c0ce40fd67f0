import math

import numpy as np
import pytest

from datasets.annotations.curves import Line, box_corners, ellipse, rotated


def drawn(shape, height=8, width=12):
    mask = np.zeros((height, width), np.uint8)
    shape.fill(mask)
    return ["".join("#" if value else "." for value in row) for row in mask]


def test_ellipse_holds_the_centres_within_it():
    # around (6, 2) with half axes 3 and 2: centres at (±.5, ±1.5, ±2.5) / 3 and (±.5, ±1.5) / 2 inside 1
    upright = drawn(ellipse(6, 2, 3, 2), 4)
    assert upright == ["....####....", "...######...", "...######...", "....####...."]
    turned = drawn(ellipse(2, 6, 3, 2, degrees=90), 12, 4)
    assert turned == ["".join(row) for row in zip(*upright, strict=True)]


def test_corners_that_stand_for_an_ellipse_lose_a_hundredth_of_a_pixel():
    polygon = ellipse(0, 0, 500, 200)
    middles = [
        ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        for a, b in zip(polygon.points, polygon.points[1:], strict=False)
    ]
    assert min(math.hypot(x / 500, y / 200) for x, y in middles) >= 1 - 0.01 / 500 - 1e-9
    assert polygon.area_px == pytest.approx(math.pi * 500 * 200, rel=1e-4)


def test_box_turns_clockwise_as_it_is_seen():
    quarter = rotated(box_corners(4, 2, 3, 1), (4, 2), 90)  # right becomes down: x 3…4, y 2…5
    np.testing.assert_allclose(quarter.points, [(4, 2), (4, 5), (3, 5), (3, 2)])


def test_point_is_a_disc_and_is_cut_at_the_edge():
    # centres within 2 of (0, 2): (.5, ±.5), (.5, ±1.5), (1.5, ±.5)
    assert drawn(Line(((0.0, 2.0),), width_px=4), 5, 4) == ["#...", "##..", "##..", "#...", "...."]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Line(()),
        lambda: Line(((math.nan, 1.0),)),
        lambda: ellipse(1, 1, 0, 3),
        lambda: ellipse(1, 1, 2, math.nan),
        lambda: ellipse(1, 1, 2, 3, math.inf),
        lambda: box_corners(1, 1, 0, 3),
    ],
)
def test_what_cannot_be_drawn_is_a_value_error(make):
    with pytest.raises(ValueError, match=r"empty|points|range|above 0"):
        make()
