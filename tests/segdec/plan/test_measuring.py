"""Sizes of rendered defects, against their true sizes and against scikit-image."""

import cv2
import numpy as np
import pytest
from skimage.measure import regionprops

from benchmarks.measuring import ANGLES_DEG, measure, render_defects
from segdec.plan.center_line import center_line_length, thin
from segdec.plan.mask_parts import connected_parts
from segdec.plan.measuring import measure_part

DEFECTS = list(render_defects(seed=1))


def size_errors(name, kinds):
    for defect in DEFECTS:
        if defect.kind in kinds:
            true = getattr(defect, name)
            yield abs(getattr(measure(defect), name) - true) / max(1.0, 0.02 * true)


@pytest.mark.parametrize("kind", ["pore", "straight"])
@pytest.mark.parametrize("name", ["length", "width"])
def test_size_is_exact_to_one_pixel_or_two_percent(name, kind):
    assert max(size_errors(name, {kind})) <= 1.02


def test_a_ring_is_measured_along_its_line():
    assert max(size_errors("length", {"ring"})) < 3  # 6 %
    assert max(size_errors("width", {"ring"})) <= 1


def test_a_line_that_touches_itself_does_not_become_shorter():
    corners = np.array([(10, 10), (100, 10), (100, 25), (10, 25), (10, 40), (100, 40)])
    mask = np.zeros((60, 120), np.uint8)
    cv2.polylines(mask, [corners], False, 1, 3)
    [open_line] = connected_parts(mask > 0)
    cv2.line(mask, (10, 10), (10, 25), 1, 3)
    [closed] = connected_parts(mask > 0)
    assert open_line.sizes.length == pytest.approx(300, rel=0.03)
    assert closed.sizes.length >= open_line.sizes.length


def test_a_bent_scratch_is_measured_along_its_centre_line():
    bent = {defect.kind for defect in DEFECTS if defect.kind.startswith("bent")}
    errors = np.array(list(size_errors("length", bent)))
    assert len(errors) > 800
    assert np.mean(errors <= 1) > 0.97
    assert errors.max() < 4
    assert max(size_errors("width", bent)) <= 1


def test_feret_diameters_and_area_equal_those_of_scikit_image():
    for defect in DEFECTS[:: len(ANGLES_DEG)]:
        if defect.kind not in ("pore", "straight"):
            continue
        [expected] = regionprops(defect.mask.astype(np.uint8))
        measured = measure(defect)
        assert measured.length == pytest.approx(expected.feret_diameter_max, abs=1)
        assert measured.area == expected.area


def test_skeleton_keeps_what_is_connected():
    for defect in (defect for defect in DEFECTS[::29] if defect.kind.startswith("bent")):
        [part] = connected_parts(defect.mask)
        skeleton = thin(part.pixels)
        assert len(list(connected_parts(skeleton))) == 1
        assert not (skeleton & ~part.pixels).any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (3, 3), (40, 1)])
def test_rectangles_of_few_pixels(shape):
    sizes = measure_part(np.ones(shape, np.bool_))
    assert sizes.area == np.prod(shape)
    assert sizes.length == pytest.approx(max(shape), abs=1)
    assert sizes.width == pytest.approx(min(shape), abs=0.5)


def test_any_connected_part_has_sizes():
    random = np.random.default_rng(0)
    for density in (0.3, 0.5, 0.7):
        for part in connected_parts(random.random((60, 60)) < density):
            sizes = measure_part(part.pixels)
            assert 0 < sizes.width <= sizes.length
            assert sizes.area == np.count_nonzero(part.pixels)


def test_the_length_of_a_branched_part_is_its_longest_path():
    part = np.zeros((60, 60), np.bool_)
    part[28:31, 2:58] = True
    part[12:30, 28:31] = True
    assert center_line_length(part) == pytest.approx(56, abs=1.5)
