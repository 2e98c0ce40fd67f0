import pytest

from segdec.runtime.csv_cells import neutralise_cells, neutralise_text, restore_text

FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    "'=1",
    "''-1",
    "-",
    "=HYPERLINK(1)",
)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text_and_comes_back(text):
    assert neutralise_text(text) == f"'{text}"
    assert restore_text(neutralise_text(text)) == text


@pytest.mark.parametrize("text", ["", "part 7", "a=b", "a-1", "'quoted'", "'", "ä"])
def test_other_text_is_unchanged(text):
    assert neutralise_text(text) == restore_text(text) == text


def test_numbers_stay_numbers():
    assert neutralise_cells(["-1", -0.5, 3, None]) == ["'-1", -0.5, 3, None]
