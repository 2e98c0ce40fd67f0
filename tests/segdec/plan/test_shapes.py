import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from segdec.plan.shapes import Circle, Polygon, Rectangle, Ring, bounds, draw

POLYGON = TypeAdapter(Polygon)


def polygon(*corners):
    return POLYGON.validate_python(corners)


def test_shapes_contain_the_pixels_whose_centre_is_inside():
    assert draw(Rectangle(corner=(2, 1), width=3, height=2), 6, 8).nonzero() == pytest.approx(
        np.array([[1, 1, 1, 2, 2, 2], [2, 3, 4, 2, 3, 4]])
    )
    disc = draw(Circle(center=(50, 40), radius=20), 100, 100)
    assert np.count_nonzero(disc) == pytest.approx(np.pi * 400, rel=0.01)
    assert disc[40, 69]
    assert not disc[40, 70]
    ring = draw(Ring(center=(50, 40), inner_radius=10, outer_radius=20), 100, 100)
    assert np.count_nonzero(ring) == pytest.approx(np.pi * 300, rel=0.01)
    assert not (ring & ~disc).any()
    triangle = draw(polygon((0, 0), (40, 0), (0, 40)), 50, 50)
    assert np.count_nonzero(triangle) == pytest.approx(800, rel=0.05)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Circle(center=(5, 6), radius=2), (3, 4, 7, 8)),
        (Ring(center=(5, 6), inner_radius=1, outer_radius=2), (3, 4, 7, 8)),
        (Rectangle(corner=(1, 2), width=3, height=4), (1, 2, 4, 6)),
        (((1, 2), (5, 3), (4, 9)), (1, 2, 5, 9)),
    ],
)
def test_bounds(shape, expected):
    assert bounds(shape) == expected


@pytest.mark.parametrize(
    ("corners", "message"),
    [
        ([(0, 0), (10, 10), (10, 0), (0, 10)], r"begin at \(0, 0\) and \(10, 0\) cross"),
        ([(0, 0), (10, 0), (5, 0), (5, 5)], "cross"),
        ([(0, 0), (10, 0), (10, 10), (0, 0)], "two equal corners"),
        ([(0, 0), (10, 0)], "2 corners"),
        ([(-1, 0), (10, 0), (5, 5)], "greater than or equal to 0"),
        ([(float("nan"), 0), (10, 0), (5, 5)], "less than or equal to 65536"),
    ],
)
def test_polygons_that_are_rejected(corners, message):
    with pytest.raises(ValidationError, match=message):
        polygon(*corners)


def test_a_star_of_500_corners_is_accepted():
    angles = np.linspace(0, 2 * np.pi, 500, endpoint=False)
    radii = np.where(np.arange(500) % 2, 40, 20)
    corners = [(50 + r * np.cos(a), 50 + r * np.sin(a)) for r, a in zip(radii, angles, strict=True)]
    assert len(polygon(*corners)) == 500
