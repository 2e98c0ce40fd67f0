"""Masks of SAM on photographs whose sides have other lengths than the input of the encoder."""

from threading import Thread

import numpy as np
import pytest

from api.errors import RequestError
from api.labelling import sam_segmenter
from api.labelling.clicks import Click
from api.labelling.sam_model import SamModel
from api.labelling.sam_segmenter import SamSegmenter
from tests.api.labelling.sam_graphs import BEST_RADIUS as RADIUS
from tests.api.labelling.sam_graphs import RADII, SIDE, draw_clicks, iou, write_sam


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return SamModel(write_sam(tmp_path_factory.mktemp("files") / "sam"), 1)


def segment(model, size, *clicks):
    segmenter = SamSegmenter(model, np.full(size, 255, np.uint8))
    mask = segmenter.segment([Click(*click) for click in clicks])
    assert (mask.dtype, mask.shape, set(np.unique(mask)) <= {0, 255}) == (np.uint8, size, True)
    return mask > 0


@pytest.mark.parametrize(("size", "x", "y"), [((48, 84), 30, 20), ((150, 27), 20, 100), ((1, 300), 150, 0)])
def test_the_likeliest_mask_is_around_the_click_at_the_size_of_the_photograph(model, size, x, y):
    found = segment(model, size, (x, y, True))
    expected = draw_clicks(size, [(x, y, True)], RADIUS)
    assert iou(found, expected) > 0.95
    for click in ([(y, x, True)], [(x // 2, y // 2, True)]):  # exchanged, or at another scale
        assert iou(found, draw_clicks(size, click, RADIUS)) < 0.7
    for radius in set(RADII) - {RADIUS}:
        assert iou(found, draw_clicks(size, [(x, y, True)], radius)) < 0.7


def test_the_mask_is_not_moved_by_a_part_of_a_pixel(model):
    rows, columns = np.nonzero(segment(model, (32, 128), (64, 16, True)))
    assert np.mean(rows) == pytest.approx(16, abs=0.2)
    assert np.mean(columns) == pytest.approx(64, abs=0.5)


def test_clicks_beside_the_defect_remove_and_further_clicks_on_it_add(model):
    size = 40, 100
    on, beside, further = (30, 20, True), (44, 20, False), (80, 30, True)
    found = segment(model, size, on, beside)
    assert found[20, 20]
    assert not found[20, 44]
    for clicks in ([on, beside], [on, further], [on, beside, further]):
        assert iou(segment(model, size, *clicks), draw_clicks(size, clicks, RADIUS)) > 0.85


def test_without_a_click_on_a_defect_there_is_none(model):
    assert not segment(model, (48, 96), (30, 20, False)).any()


def test_a_click_outside_is_refused(model):
    segmenter = SamSegmenter(model, np.zeros((40, 96, 3), np.uint8))
    for use in (segmenter.take_step, segmenter.segment):
        with pytest.raises(RequestError, match="Click 1 is at x = 96"):
            use([Click(96, 1, True)])
    assert not segmenter.take_step([Click(95, 1, True)])


def test_the_mask_is_the_same_in_bands(model, monkeypatch):
    whole = segment(model, (80, 40), (20, 50, True))
    monkeypatch.setattr(sam_segmenter, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(segment(model, (80, 40), (20, 50, True)), whole)


def test_the_encoder_runs_once_for_a_photograph_of_its_size(model, encoded):
    segmenter = SamSegmenter(model, np.zeros((SIDE, SIDE), np.uint8))
    assert encoded == [(SIDE, SIDE)]
    clicks = [Click(x, 20, True) for x in (10, 20, 50)]
    for number in (1, 2, 3, 1):
        assert not segmenter.take_step(clicks[:number])
        segmenter.segment(clicks[:number])
    assert encoded == [(SIDE, SIDE)]


def test_a_small_defect_of_a_large_photograph_is_found_at_full_resolution(model, encoded):
    size, click = (400, 600), (300, 200, True)
    found = segment(model, size, click)
    assert encoded == [(SIDE, SIDE)]
    rows, columns = np.mgrid[:400, :600]
    assert iou(found, np.hypot(columns - 300, rows - 200) < RADIUS) > 0.95
    assert segment(model, size, (2, 1, True))[0, 0]  # the side of the photograph does not cut it
    assert encoded == 2 * [(SIDE, SIDE)]


def test_a_defect_that_its_window_cuts_gets_one_that_is_twice_as_wide(model, encoded):
    clicks = (300, 200, True), (340, 200, True)
    found = segment(model, (400, 600), *clicks)
    assert encoded == [(SIDE, SIDE), (2 * SIDE, 2 * SIDE)]
    rows, columns = np.mgrid[:400, :600]
    discs = [np.hypot(columns - x, rows - y) < 2 * RADIUS for x, y, _ in clicks]
    assert iou(found, np.any(discs, axis=0)) > 0.95


def test_clicks_at_both_ends_of_a_photograph_need_all_of_it(model, encoded):
    size, clicks = (100, 300), [(20, 50, True), (280, 60, True)]
    assert iou(segment(model, size, *clicks), draw_clicks(size, clicks, RADIUS)) > 0.95
    assert encoded == [size]


def test_a_step_runs_the_encoder_once_and_features_of_windows_are_stored(model, encoded, monkeypatch):
    monkeypatch.setattr(sam_segmenter, "MAX_EMBEDDINGS", 2)
    segmenter = SamSegmenter(model, np.full((400, 600), 255, np.uint8))
    first, near, far = Click(300, 200, True), Click(304, 200, False), Click(50, 50, True)
    assert encoded == []
    assert [segmenter.take_step([first]) for _ in range(2)] == [True, False]
    assert not segmenter.take_step([first, near])
    assert encoded == [(SIDE, SIDE)]
    assert segmenter.segment([first, near])[200, 290] == 255
    assert [segmenter.take_step([first, far]) for _ in range(2)] == [True, False]  # the whole photograph
    assert [segmenter.take_step([far]) for _ in range(2)] == [True, False]
    assert len(encoded) == 3
    assert segmenter.nbytes == 400 * 600 + 2 * 4 * 3 * (16 * 16 + 8 * 8 + 4 * 4)
    assert segmenter.take_step([first])  # its features were the oldest
    assert len(encoded) == 4


def test_two_people_with_the_same_photograph_do_not_run_the_encoder_twice(model, encoded, monkeypatch):
    segmenter, click = SamSegmenter(model, np.full((400, 600), 255, np.uint8)), Click(300, 200, True)
    other, encode = Thread(target=segmenter.take_step, args=([click],)), SamModel.encode

    def encode_slowly(model, image):
        if not other.ident:
            other.start()
            other.join(0.5)
        return encode(model, image)

    monkeypatch.setattr(SamModel, "encode", encode_slowly)
    assert segmenter.take_step([click])
    other.join()
    assert len(encoded) == 1


def test_the_memory_of_colours_and_features_is_counted(model):
    segmenter = SamSegmenter(model, np.zeros((40, 96, 3), np.uint8))
    assert segmenter.nbytes == 40 * 96 * 3 + 4 * 3 * (16 * 16 + 8 * 8 + 4 * 4)
