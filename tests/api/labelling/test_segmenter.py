import cv2
import numpy as np
import pytest

from api.labelling import segmenter as segmenter_module
from api.labelling.clicks import Click
from api.labelling.segmenter import ClickSegmenter


def iou(mask, truth):
    return np.count_nonzero((mask > 0) & truth) / np.count_nonzero((mask > 0) | truth)


def surface(height, width, seed=0):
    """Noisy texture around 120."""
    noise = np.random.default_rng(seed).normal(0, 6, (height, width)).astype(np.float32)
    return 120 + cv2.GaussianBlur(noise, (0, 0), 1.0) * 2


def with_defect(image, draw, brightness=50.0):
    """The photograph with a darker defect, and its mask."""
    truth = np.zeros(image.shape[:2], np.uint8)
    draw(truth)
    soft = cv2.GaussianBlur(truth.astype(np.float32), (0, 0), 0.7)
    photograph = image * (1 - soft) + brightness * soft
    return np.clip(photograph, 0, 255).astype(np.uint8), truth > 0


@pytest.fixture(scope="module")
def blob():
    return with_defect(
        surface(200, 240), lambda mask: cv2.ellipse(mask, (90, 110), (24, 14), 30, 0, 360, 1, -1)
    )


@pytest.fixture(scope="module")
def scratch():
    points = np.array([[20, 150], [90, 120], [150, 125], [220, 60]], np.int32)
    return with_defect(surface(200, 240), lambda mask: cv2.polylines(mask, [points], False, 1, 4))


def test_one_click_segments_a_blob_and_a_thin_scratch(blob, scratch):
    assert iou(ClickSegmenter(blob[0]).segment([Click(90, 110, True)]), blob[1]) > 0.8
    assert iou(ClickSegmenter(scratch[0]).segment([Click(90, 120, True)]), scratch[1]) > 0.6


def test_grey_with_a_channel_axis_and_colour_give_a_mask_of_the_same_form(blob):
    grey = ClickSegmenter(blob[0]).segment([Click(90, 110, True)])
    assert grey.dtype == np.uint8
    assert set(np.unique(grey)) == {0, 255}
    np.testing.assert_array_equal(ClickSegmenter(blob[0][..., None]).segment([Click(90, 110, True)]), grey)
    colour = np.stack([blob[0], 255 - blob[0], blob[0]], axis=-1)
    assert iou(ClickSegmenter(colour).segment([Click(90, 110, True)]), blob[1]) > 0.8


def test_a_click_that_is_no_defect_removes_what_was_wrong():
    """Two blobs that touch: the second one is not part of the defect."""

    def draw(mask):
        cv2.circle(mask, (80, 100), 15, 1, -1)
        cv2.circle(mask, (108, 100), 15, 1, -1)

    photograph, both = with_defect(surface(200, 240), draw)
    truth = both.copy()
    truth[:, 94:] = False
    segmenter = ClickSegmenter(photograph)
    before = iou(segmenter.segment([Click(80, 100, True)]), truth)
    after = segmenter.segment([Click(80, 100, True), Click(110, 100, False)])
    assert after[100, 110] == 0
    assert after[100, 80] == 255
    assert iou(after, truth) > max(before, 0.7)


def test_other_defects_need_a_click():
    def draw(mask):
        cv2.circle(mask, (50, 100), 12, 1, -1)
        cv2.circle(mask, (180, 60), 12, 1, -1)

    photograph, truth = with_defect(surface(200, 240), draw)
    click, other = Click(50, 100, True), Click(180, 60, True)
    assert ClickSegmenter(photograph).segment([click])[60, 180] == 0
    assert iou(ClickSegmenter(photograph).segment([click, other]), truth) > 0.75


def test_every_click_has_its_class_in_the_mask(blob):
    generator = np.random.default_rng(3)
    clicks = [
        Click(int(x), int(y), bool(is_defect))
        for x, y, is_defect in zip(
            generator.integers(0, 240, 15),
            generator.integers(0, 200, 15),
            generator.integers(0, 2, 15),
            strict=True,
        )
    ]
    mask = ClickSegmenter(blob[0]).segment(clicks)
    assert [mask[click.y, click.x] > 0 for click in clicks] == [click.is_defect for click in clicks]


def test_the_mask_depends_on_the_clicks_alone(blob):
    clicks = [Click(90, 110, True), Click(60, 90, False), Click(105, 120, True)]
    segmenter = ClickSegmenter(blob[0])
    first = segmenter.segment(clicks[:1])
    third = segmenter.segment(clicks)
    np.testing.assert_array_equal(segmenter.segment(clicks[:1]), first)  # two clicks withdrawn
    np.testing.assert_array_equal(ClickSegmenter(blob[0]).segment(clicks), third)


def test_without_a_click_on_a_defect_the_mask_is_empty(blob):
    segmenter = ClickSegmenter(blob[0])
    assert not segmenter.segment([]).any()
    assert not segmenter.segment([Click(90, 110, False), Click(3, 3, False)]).any()
    assert iou(segmenter.segment([Click(3, 3, False), Click(90, 110, True)]), blob[1]) > 0.7


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (1, 1, 3), (40, 40)])
def test_photographs_without_structure(shape):
    segmenter = ClickSegmenter(np.full(shape, 90, np.uint8))
    mask = segmenter.segment([Click(0, 0, True)])
    assert mask.shape == shape[:2]
    assert mask[0, 0] == 255
    assert segmenter.segment([Click(0, 0, True), Click(0, 0, False)])[0, 0] == 0


def test_large_photographs_are_segmented_in_a_window():
    """A small defect at full resolution, and one that is larger than the first window."""

    def draw(mask):
        cv2.circle(mask, (1500, 1100), 9, 1, -1)
        cv2.ellipse(mask, (600, 600), (420, 300), 0, 0, 360, 1, -1)

    photograph, truth = with_defect(surface(1300, 1700), draw)
    segmenter = ClickSegmenter(photograph)
    small = segmenter.segment([Click(1500, 1100, True)])
    assert iou(small, truth & (np.arange(1700) > 1200)) > 0.75
    large = segmenter.segment([Click(600, 600, True)])
    assert iou(large, truth & (np.arange(1700) < 1200)) > 0.8


def test_few_masks_of_earlier_clicks_stay_and_the_others_are_computed_again(blob, monkeypatch):
    clicks = [Click(90, 110, True), Click(70, 100, True), Click(10, 10, False), Click(100, 115, True)]
    expected = ClickSegmenter(blob[0]).segment(clicks)
    monkeypatch.setattr(segmenter_module, "MAX_STATES", 3)
    segmenter = ClickSegmenter(blob[0])
    for count in (4, 1, 4, 2, 4):
        found = segmenter.segment(clicks[:count])
    np.testing.assert_array_equal(found, expected)
    one_more = [*clicks, Click(91, 111, True)]
    assert segmenter.take_step(one_more) and not segmenter.take_step(one_more)


def test_the_size_in_memory_is_limited_however_many_clicks_arrive(blob, monkeypatch):
    segmenter = ClickSegmenter(blob[0])
    monkeypatch.setattr(segmenter_module, "MAX_STATE_BYTES", 5000)
    segmenter.segment([Click(90, 110, True)])
    before = segmenter.nbytes
    for x in range(60, 120, 3):
        segmenter.segment([Click(90, 110, True), Click(x, 112, True)])
    assert segmenter.nbytes < before + 20_000


@pytest.mark.parametrize("width", [1664, 1700])  # the whole photograph is a multiple of the reduction, or not
def test_a_wide_mask_is_interpolated_where_it_is(width, monkeypatch):
    """Only the surroundings of the defects are enlarged: the mask is that of enlarging the whole window."""

    def draw(mask):
        cv2.ellipse(mask, (600, 600), (420, 300), 0, 0, 360, 1, -1)

    photograph, _ = with_defect(surface(1280, width), draw)
    clicks = [Click(600, 600, True), Click(150, 600, True)]
    found = ClickSegmenter(photograph).segment(clicks)
    assert found.any()
    monkeypatch.setattr(segmenter_module, "_crop_to_surroundings", lambda *parts: parts)
    np.testing.assert_array_equal(ClickSegmenter(photograph).segment(clicks), found)
