from pathlib import Path

import pytest

from segdec.artifact import ExpectedOutcomes, ExpectedParts, OperatingPoint, PartShare
from training.reporting.operating_points import OperatingPointTable, format_share

MANY = PartShare(count=85, parts=100, low=0.7647, high=0.9135)
HALF = PartShare(count=1, parts=200, low=0.000127, high=0.0275)
NONE = PartShare(count=0, parts=100, low=0.0, high=0.0362)


BASIS = "100 good and 200 defective photographs of validation"


def describe(*points, run="run", **options):
    return OperatingPointTable.of(points, BASIS, Path(run), **options)


def point(goal, threshold, rejected, missed, note=None):
    return OperatingPoint(goal=goal, threshold=threshold, rejected=rejected, missed=missed, note=note)


CHOSEN = point("chosen", 0.0909, MANY, HALF)
CHEAPEST = point("lowest cost", 0.091, MANY, HALF)
STRICT = point("at most 1 % rejected", 0.83, NONE, MANY, "100 good parts are too few.")


@pytest.mark.parametrize(
    ("share", "text"),
    [(MANY, "85 (76 to 91)"), (HALF, "0.5 (0.013 to 2.8)"), (NONE, "0 (0 to 3.6)"), (None, "–")],
)
def test_shares_are_parts_of_a_hundred(share, text):
    assert format_share(share) == text


def test_lines_state_the_threshold_and_give_commands():
    lines = [*describe(CHOSEN, CHEAPEST, STRICT, run="runs/my parts").to_lines()]
    statement = " ".join(lines[0].split())
    assert statement.startswith(
        "threshold At this threshold 85 of 100 good parts are rejected (95 % interval 76 to 91) and 0.5 of "
        "100 defective parts are missed (0.013 to 2.8). Based on 100 good and 200 defective photographs of "
        "validation; a part counts by its worst photograph."
    )
    assert "Consider 'at most 1 % rejected', which misses 85 of 100 defective ones." in statement
    assert statement.endswith("100 good parts are too few.")
    assert " ".join(lines[3].split()) == "lowest cost (in use) 0.091 85 (76 to 91) 0.5 (0.013 to 2.8)"
    assert " ".join(lines[4].split()) == "at most 1 % rejected 0.83 0 (0 to 3.6) 85 (76 to 91)"
    assert lines[5] == "    python -m training calibrate 'runs/my parts' --threshold.score 0.83"


def test_other_points_are_recommended_only_for_the_lowest_cost():
    strict = STRICT.model_copy(update={"goal": "chosen"})
    texts = describe(strict, CHEAPEST, STRICT)
    assert texts.notes == (STRICT.note,)
    assert [each.command is None for each in texts.offered] == [False, True]


def test_the_commands_of_a_run_with_review_omit_it():
    texts = describe(CHOSEN, STRICT, review=True)
    assert texts.offered[0].command.endswith("--threshold.score 0.83 --no-threshold.review")


def test_good_parts_alone_have_no_misses():
    chosen, strict = (each.model_copy(update={"missed": None}) for each in (CHOSEN, STRICT))
    texts = describe(chosen, strict)
    assert texts.statement.startswith(
        "At this threshold 85 of 100 good parts are rejected (95 % interval 76 to 91). "
    )
    assert texts.offered[0].missed == "–"


def test_earlier_runs_have_no_points():
    assert [*describe().to_lines()] == []


def expected(review):
    rejected, missed = ExpectedParts(value=21.2, low=15.4, high=30.4), ExpectedParts(value=0.5, low=0, high=2)
    reviewed = ExpectedParts(value=review, low=0, high=120)
    return ExpectedOutcomes(defect_rate=0.025, rejected=rejected, review=reviewed, missed=missed)


def test_the_expected_outcomes_have_a_line():
    table = describe(CHOSEN.model_copy(update={"expected": expected(80)}), CHEAPEST, review=True)
    assert table.statement.startswith("At these thresholds 85 of 100")
    assert [" ".join(line.split()) for line in table.to_lines()][1] == (
        "expected Of 1,000 parts, 2.5 % of them defective, 21 are rejected (95 % interval 15 to "
        "30), 80 are for review (0 to 120) and 0.5 are missed (0 to 2)."
    )


def test_a_point_without_review_does_not_equal_one_with_review():
    chosen = CHOSEN.model_copy(update={"expected": expected(80)})
    single = CHEAPEST.model_copy(update={"expected": expected(0)})
    assert describe(chosen, single).offered[0].command is not None
    assert describe(single.model_copy(update={"goal": "chosen"}), single).offered[0].command is None
