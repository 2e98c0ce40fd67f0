import numpy as np
import pytest

from benchmarks.labelling_order import (
    MARKER,
    EncodedSet,
    average_at,
    count_needed,
    draw_first,
    main,
    make_random_order,
    order_as_service,
    order_by_certainty,
    simulate,
)
from datasets.layouts.toy import write_toy


@pytest.fixture
def source():
    """Photographs of one number; defective ones are above 0, and the nearer to 0, the harder."""
    random = np.random.default_rng(0)
    train, test = (random.normal(size=(count, 1)) * 3 for count in (60, 40))
    described = [np.array([value]) for value in random.normal(size=60)]
    return EncodedSet("numbers", train, test, described, train[:, 0] > 0, test[:, 0] > 0)


def test_figures_by_hand():
    course = {8: 0.5, 16: 0.96, 32: 0.9, 60: 1.0}
    assert count_needed(course) == 16
    assert count_needed({8: 1.0, 60: 0.5}) == 8
    assert (average_at(course, 32), average_at(course, 31), average_at({40: 0.7}, 32)) == (0.9, 0.96, 0.7)


def test_the_first_labels_have_a_defect_and_a_good_one():
    labels = np.zeros(50, bool)
    labels[7] = True
    drawn = draw_first(labels, seed=1)
    assert drawn[-1] == 7 or 7 in drawn[:6]
    assert len(drawn) == len(set(drawn)) >= 6
    assert draw_first(labels, seed=1) == drawn


def test_orders_of_unlabelled_photographs(source):
    odds = source.train[:, 0]
    unlabelled = list(range(10, 60))
    for choose_next in (order_as_service, order_by_certainty, make_random_order(0)):
        assert sorted(choose_next(source, list(range(10)), unlabelled, odds)) == unlabelled
    assert order_by_certainty(source, [], [3, 1, 2], np.array([0.0, -2.0, 0.5, 1.0])) == [2, 3, 1]


def test_a_simulation_labels_all_photographs_at_the_same_steps(source):
    courses = [simulate(source, each, seed=0) for each in (order_as_service, make_random_order(0))]
    assert [list(course) for course in courses] == 2 * [[8, 12, 16, 24, 32, 48, 60]]
    assert courses[0][60] == courses[1][60] > 0.99
    assert count_needed(courses[0]) < 60


@pytest.mark.slow
def test_the_table_is_written_between_the_markers(tmp_path, tiny_encoder, tiny_encoder_weights, capsys):
    write_toy(tmp_path / "toy", 60)
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{MARKER}\n\n{MARKER}\n\nafter\n")
    encoder = ["--encoder", tiny_encoder, "--encoder-weights", str(tiny_encoder_weights)]
    main([str(tmp_path), "--sets", "toy", "--seeds", "0", *encoder, "--write", str(page)])
    text = page.read_text()
    assert text.startswith("before") and text.endswith("after\n")
    assert "| toy | " in text
    assert "| mean |  | " in capsys.readouterr().out
