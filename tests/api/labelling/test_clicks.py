import pytest

from api.errors import RequestError
from api.labelling.clicks import MAX_CLICKS, Click, check_clicks


def test_the_last_of_several_clicks_on_a_pixel_counts():
    clicks = [Click(1, 2, True), Click(3, 2, True), Click(1, 2, False)]
    assert check_clicks(clicks, 4, 4) == (Click(3, 2, True), Click(1, 2, False))
    assert check_clicks([], 4, 4) == ()


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (30, 0), (0, 20)])
def test_a_click_outside_the_photograph_is_rejected(place):
    with pytest.raises(RequestError, match=r"Click 2 is at .* x from 0 to 29, y from 0 to 19") as caught:
        check_clicks([Click(29, 19, True), Click(*place, True)], 20, 30)
    assert (caught.value.status, caught.value.code) == (400, "bad_click")


def test_too_many_clicks_are_rejected():
    clicks = [Click(number, 0, True) for number in range(MAX_CLICKS + 1)]
    check_clicks(clicks[:-1], 1, 1000)
    with pytest.raises(RequestError, match=f"{MAX_CLICKS + 1} clicks arrived"):
        check_clicks(clicks, 1, 1000)
