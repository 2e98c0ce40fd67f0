import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pycocotools import mask as coco

from segdec.imaging.polygons import fill_polygon, trace_outlines

PARTS = {
    "one pixel": ["1"],
    "line": ["11111"],
    "column beside the border": ["01", "01", "01"],
    "diagonal": ["100", "010", "001"],
    "both diagonals": ["10001", "01010", "00100", "01010", "10001"],
    "concave corners": ["1101", "0111", "1100"],
    "hole": ["1111", "1001", "1111"],
    "holes that share a corner": ["01110", "11011", "10111", "01110"],
    "part in a hole": ["11111", "10001", "10101", "10001", "11111"],
    "hole open at a corner": ["0111", "1001", "1111"],
    "empty": ["00"],
}


def pixels(rows: list[str]) -> NDArray[np.uint8]:
    return np.array([list(row) for row in rows]).astype(np.uint8)


def check_outlines(mask: NDArray[np.uint8]) -> None:
    """Compares a mask with its outlines as our own code, COCO's and OpenCV draw and measure them."""
    height, width = mask.shape
    parts = trace_outlines(mask)
    assert len(parts) == cv2.connectedComponents(mask, connectivity=8)[0] - 1
    rings = [np.array(ring) for outer, holes in parts for ring in (outer, *holes)]
    np.testing.assert_array_equal(fill_polygon(rings, height, width), mask)
    drawn = np.zeros_like(mask)
    for ring in rings:
        drawn ^= coco.decode(coco.frPyObjects([ring.ravel().astype(float)], height, width))[..., 0]
        vertical = np.roll(ring, -1, axis=0)[:, 0] == ring[:, 0]
        assert (vertical != np.roll(vertical, 1)).all()  # no point between two corners
    np.testing.assert_array_equal(drawn, mask)
    assert sum(-cv2.contourArea(ring.astype(np.int32), oriented=True) for ring in rings) == mask.sum()


@pytest.mark.parametrize("rows", PARTS.values(), ids=PARTS)
def test_outlines_contain_exactly_the_pixels_of_their_mask(rows: list[str]) -> None:
    check_outlines(pixels(rows))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.floats(0.1, 0.9), st.integers(0, 2**32 - 1))
def test_outlines_of_any_mask(height: int, width: int, share: float, seed: int) -> None:
    check_outlines((np.random.default_rng(seed).random((height, width)) < share).astype(np.uint8))


def test_outlines_by_hand() -> None:
    ring, dot = sorted(trace_outlines(pixels(["1110", "1010", "1110", "0000", "0001"]), 10, 20))
    assert ring == (((10, 20), (10, 23), (13, 23), (13, 20)), [((11, 21), (12, 21), (12, 22), (11, 22))])
    assert dot == (((13, 24), (13, 25), (14, 25), (14, 24)), [])
