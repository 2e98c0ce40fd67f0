import numpy as np
import pytest

from segdec.errors import ConfigError, ImageError
from segdec.plan.board import Board, measure_plane
from segdec.plan.mask_parts import MaskPart, connected_parts
from segdec.plan.perspective import Perspective, Plane
from tests.segdec.plan.boards import (
    COLUMNS,
    HEIGHT,
    OBLIQUE,
    ROWS,
    SQUARE_MM,
    WIDTH,
    charuco,
    checkerboard,
    places_mm,
    scratch,
)

BOARD = Board(COLUMNS, ROWS, SQUARE_MM)


def distances(perspective):
    """Distances of places all over the photograph, mm."""
    grid = places_mm(perspective)[50:-50:100, 50:-50:100].reshape(-1, 2)
    return np.linalg.norm(grid[:, None] - grid[None], axis=2)


@pytest.mark.parametrize("radial", [-0.05, 0.0, 0.1])
def test_a_checkerboard_shows_perspective_and_lens(radial):
    true = OBLIQUE.model_copy(update={"radial": radial})
    measured = measure_plane(*BOARD.find_corners(checkerboard(true)), WIDTH, HEIGHT)
    assert measured.error_mm < 0.02
    assert measured.perspective.radial == pytest.approx(radial, abs=0.005)
    assert distances(measured.perspective) == pytest.approx(distances(true), rel=0.005, abs=0.05)


def test_a_charuco_board_may_be_partly_hidden():
    photograph = charuco(OBLIQUE, "DICT_4X4_50", 7.0)
    photograph[:200, :250] = 128
    board = Board(COLUMNS, ROWS, SQUARE_MM, "DICT_4X4_50", 7.0)
    places, on_board = board.find_corners(np.repeat(photograph, 3, axis=2))
    assert 12 <= len(places) < (COLUMNS - 1) * (ROWS - 1)
    measured = measure_plane(places, on_board, WIDTH, HEIGHT)
    assert distances(measured.perspective) == pytest.approx(distances(OBLIQUE), rel=0.02, abs=0.1)


def test_sizes_in_the_plane_are_exact_to_two_percent_or_one_pixel():
    plane = Plane(
        measure_plane(*BOARD.find_corners(checkerboard(OBLIQUE)), WIDTH, HEIGHT).perspective, WIDTH, HEIGHT
    )
    random, scale = np.random.default_rng(0), plane.mm_per_px
    pixel = scale * plane.photograph_px
    places = places_mm(OBLIQUE)[60:-60, 60:-60].reshape(-1, 2)
    for _ in range(25):
        start, end = random.choice(places, 2)
        mask = scratch(OBLIQUE, start, end, 1.5)
        [part] = connected_parts(mask)
        sizes = plane.flatten(part).sizes
        length = float(np.linalg.norm(end - start)) + 1.5
        assert sizes.length * scale == pytest.approx(length, rel=0.02, abs=pixel)
        assert sizes.width * scale == pytest.approx(1.5, abs=pixel)
        assert sizes.area * scale**2 == pytest.approx((length - 1.5) * 1.5 + np.pi * 0.75**2, rel=0.06)


def test_a_plane_parallel_to_the_photograph_changes_nothing():
    half = np.hypot(WIDTH, HEIGHT) / 2
    plane = Plane(Perspective(matrix=(half * 0.1, 0, 40, 0, half * 0.1, 30, 0, 0, 1)), WIDTH, HEIGHT)
    assert plane.mm_per_px == pytest.approx(0.1 / np.sqrt(2))
    mask = np.zeros((HEIGHT, WIDTH), np.bool_)
    mask[100:110, 200:260] = mask[105:150, 250:256] = True
    mask[103:106, 210:220] = False  # a hole
    [part] = connected_parts(mask)
    flat, scale = plane.flatten(part).sizes, plane.mm_per_px
    assert flat.length * scale == pytest.approx(part.sizes.length * 0.1, rel=0.02)
    assert flat.width * scale == pytest.approx(part.sizes.width * 0.1, abs=0.1)
    assert flat.area * scale**2 == pytest.approx(part.sizes.area * 0.01, rel=0.03)


def test_no_pixel_and_no_thin_line_is_lost():
    plane = Plane(OBLIQUE, WIDTH, HEIGHT)
    for row in range(0, HEIGHT, 37):
        for window in (np.s_[row : row + 1, 300:500], np.s_[100:101, row : row + 1]):
            part = MaskPart(window, np.ones([side.stop - side.start for side in window], np.bool_))
            flat = plane.flatten(part)
            assert len(connected_parts(flat.pixels)) == 1
            assert flat.sizes.length >= 0.9 * part.sizes.length


def test_places_of_the_plane_are_mapped_back():
    points = np.random.default_rng(0).uniform((0, 0), (WIDTH, HEIGHT), (200, 2))
    for radial in (-0.3, 0.0, 0.4):
        perspective = OBLIQUE.model_copy(update={"radial": radial})
        mapped = perspective.to_mm(points, WIDTH, HEIGHT)
        assert perspective.to_px(mapped, WIDTH, HEIGHT) == pytest.approx(points, abs=0.01)


def test_the_lens_must_not_fold_the_corners():
    with pytest.raises(ConfigError):
        Plane(OBLIQUE.model_copy(update={"radial": -0.38}), WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ((1, 0, 0, 0, 1, 0, 2, 0, 1), "folds the photograph"),
        ((0, 0, 0, 0, 0, 0, 0, 0, 1), "folds the photograph"),
        ((50, 0, 0, 0, 50, 0, 0, 1.6, 1), "differs by a factor of"),
    ],
)
def test_perspectives_that_are_rejected(matrix, message):
    with pytest.raises(ConfigError, match=message):
        Plane(Perspective(matrix=matrix), WIDTH, HEIGHT)


def test_boards_that_are_not_found():
    grey = np.full((HEIGHT, WIDTH, 1), 128, np.uint8)
    with pytest.raises(ImageError, match="The board of 9 × 7 squares was not found") as raised:
        BOARD.find_corners(grey)
    assert raised.value.code == "board_not_found"
    with pytest.raises(ImageError, match="was not found"):
        Board(COLUMNS, ROWS, SQUARE_MM, "DICT_4X4_50", 7.0).find_corners(grey)
    with pytest.raises(ConfigError, match="Unknown dictionary 'nothing'"):
        Board(COLUMNS, ROWS, SQUARE_MM, "nothing", 7.0).find_corners(grey)
    with pytest.raises(ConfigError, match=r"Markers of 12 mm in squares of 10 mm\. Expected smaller"):
        Board(COLUMNS, ROWS, SQUARE_MM, "DICT_4X4_50", 12.0).find_corners(grey)
