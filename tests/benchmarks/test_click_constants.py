import pytest

from api.labelling import segmenter
from benchmarks import click_constants
from benchmarks.click_constants import Constant, choose_values, main, read_constants, set_constants
from datasets.layouts.toy import write_toy

COUNTS = {
    "a": {(1.0,): 9.0, (2.0,): 4.0, (3.0,): 6.0},
    "b": {(1.0,): 2.0, (2.0,): 8.0, (3.0,): 5.0},
    "c": {(1.0,): 5.0, (2.0,): 5.0, (3.0,): 1.0},
}


def test_the_set_that_is_left_out_has_no_influence():
    assert choose_values(COUNTS, "a") == (3.0,)  # 3.5, 6.5 and 3: the mean of b and c
    assert choose_values(COUNTS, "b") == (3.0,)  # 7, 4.5 and 3.5
    assert choose_values(COUNTS, "c") == (1.0,)  # 5.5, 6 and 5.5: the first of the two


def test_constants_are_those_of_the_segmentation_and_come_back():
    served = read_constants()
    with pytest.raises(KeyError), set_constants((0.9, *served[1:])):
        assert segmenter.THRESHOLD == 0.9
        raise KeyError
    assert read_constants() == served


@pytest.fixture
def data(tmp_path):
    for number in range(2):
        write_toy(tmp_path / f"toy{number}", 40, seed=number)
    return tmp_path


@pytest.mark.slow
def test_the_table_has_the_clicks_with_chosen_and_with_served_constants(data, monkeypatch, capsys):
    # With a threshold of 9 no pixel is likely to be a defect, so that more clicks are needed.
    constant = Constant(segmenter, "THRESHOLD", (9.0, segmenter.THRESHOLD))
    monkeypatch.setattr(click_constants, "CONSTANTS", (constant,))
    main([str(data), "--sets", "toy0", "toy1", "--photographs", "2"])
    table = capsys.readouterr().out
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines() if row[:1] == "|"]
    assert rows[0][1] == "`segmenter.THRESHOLD`"
    assert [row[0] for row in rows[2:]] == ["toy0", "toy1", "mean"]
    for name, chosen, clicks, served, best in rows[2:4]:
        assert (name, chosen, clicks) == (name, f"{segmenter.THRESHOLD:g}", served)
        assert best <= served


def test_one_set_alone_is_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--sets", "toy0"])
    assert "Expected two sets or more" in capsys.readouterr().err
