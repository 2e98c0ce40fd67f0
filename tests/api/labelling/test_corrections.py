import numpy as np
import pytest

from api.labelling.clicks import Click
from api.labelling.corrections import correct


def test_values_at_clicks_get_the_sign_of_the_clicks_and_distant_ones_stay():
    values = np.full((60, 80), -0.5, np.float32)
    clicks = [Click(20, 30, True), Click(40, 30, False), Click(26, 30, True)]
    correct(values, clicks, [8.0, 8.0, 4.0])
    assert [np.sign(values[click.y, click.x]) for click in clicks] == [1, -1, 1]
    assert values[5, 75] == np.float32(-0.5)


def test_one_click_adds_a_gaussian():
    values = np.zeros((41, 41), np.float32)
    correct(values, [Click(20, 20, True)], [5.0])
    assert values[20, 20] == pytest.approx(1 / 1.02)  # the regularisation of 0.02
    assert values[20, 25] == pytest.approx(np.exp(-(5**2) / (2 * 5.5**2)) / 1.02)
    np.testing.assert_array_equal(values, values.T)
