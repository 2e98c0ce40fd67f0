import unicodedata

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.imaging.overlay import INSPECTED, PREDICTED, draw_caption, draw_overlay, draw_scores

GREY = np.full((60, 90, 1), 100, np.uint8)


def square(side: int = 20) -> NDArray[np.uint8]:
    mask = np.zeros((60, 90), np.uint8)
    mask[10 : 10 + side, 30 : 30 + side] = 255
    return mask


def test_prediction_is_filled_and_outlined() -> None:
    drawn = draw_overlay(GREY, square())
    assert (drawn.shape, drawn.dtype) == ((60, 90, 3), np.uint8)
    assert tuple(drawn[10, 30]) == PREDICTED
    np.testing.assert_array_equal(drawn[20, 40], np.rint(0.65 * 100 + 0.35 * np.array(PREDICTED)))
    assert (drawn[:, :28] == 100).all()


def test_inspected_area_is_outlined_below_the_prediction() -> None:
    drawn = draw_overlay(GREY, square(10), area=square())
    assert tuple(drawn[29, 49]) == INSPECTED
    assert tuple(drawn[10, 30]) == PREDICTED
    assert (drawn[25, 45] == 100).all()


def test_without_masks_the_photograph_stays() -> None:
    colour = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    before = colour.copy()
    np.testing.assert_array_equal(draw_overlay(colour, None), colour)
    draw_overlay(colour, square())
    np.testing.assert_array_equal(colour, before)


def test_caption_enlarges_a_small_picture_and_adds_a_bar() -> None:
    drawn = draw_overlay(GREY, square(), caption="part 1")
    assert drawn.shape[1] == 360  # 90 · 4, the first whole factor from 320 on
    assert drawn.shape[0] > 240
    assert tuple(drawn[40, 120]) == PREDICTED
    assert drawn[240:].max() > 200  # letters


def test_long_caption_is_wrapped() -> None:
    one = draw_overlay(GREY, None, caption="scratch")
    for caption in ("scratch on the left side of the part " * 3, "x" * 150):
        assert draw_overlay(GREY, None, caption=caption).shape[0] > one.shape[0]


@pytest.mark.parametrize("text", ["ä", "ß", "ő", "Ж", "Ω", "划", "痕", "キ", "힘", "—"])
def test_captions_draw_what_the_data_set_is_called(text: str) -> None:
    drawn = draw_caption(text, 400)
    assert not np.array_equal(drawn, draw_caption("?", 400))
    np.testing.assert_array_equal(draw_caption(unicodedata.normalize("NFD", text), 400), drawn)


@pytest.mark.parametrize("text", ["\udcff", "\x00", "\x1b", "\u202e"])  # OpenCV crashes on the first one
def test_characters_that_cannot_be_drawn_are_replaced(text: str) -> None:
    np.testing.assert_array_equal(draw_caption(f"a{text}b", 400), draw_caption("a?b", 400))


@pytest.mark.parametrize("text", ["划" * 100, "iiii " * 20 + "划痕" * 20, "W" * 90])
def test_wrapped_lines_fit_the_picture(text: str) -> None:
    drawn = draw_caption(text, 300)
    assert (drawn[:, 290:] == drawn[0, 0]).all() and drawn[:, 250:290].max() > 200


def test_mask_of_another_size_is_rejected() -> None:
    with pytest.raises(ImageError, match=r"\(60, 91\).*\(60, 90\)") as caught:
        draw_overlay(GREY, None, truth=np.zeros((60, 91), np.uint8))
    assert caught.value.code == "mask_size"


def test_scores_tint_the_photograph() -> None:
    scores = np.zeros((60, 90), np.float32)
    scores[:, 30:60], scores[:, 60:] = 0.5, 1.0
    drawn = draw_scores(GREY, scores, np.zeros((60, 90), np.uint8))
    assert tuple(drawn[0, 0]) == (100, 100, 100)
    np.testing.assert_array_equal(drawn[0, 40], np.rint(0.625 * 100 + 0.375 * np.array(PREDICTED)))
    np.testing.assert_array_equal(drawn[0, 80], np.rint(0.25 * 100 + 0.75 * np.array(PREDICTED)))
    assert tuple(draw_scores(GREY, scores, square())[10, 30]) == PREDICTED
