import pytest
from scipy.stats import binom

from segdec.errors import RunError
from training.__main__ import main
from training.metrics.comparison import compare_runs
from training.metrics.pixel_counts import PixelCounts

COUNT = 40


@pytest.fixture
def make(make_result, make_run, tmp_path):
    """A run on photographs of as many items, half of them defective; `wrong` are labelled wrong."""

    def make(name, wrong=(), count=COUNT, tp=80, **options):
        results = [
            make_result(
                f"{place:02d}",
                place % 2,
                0.9 - 0.001 * place if (place % 2 == 1) != (place in wrong) else 0.1 + 0.001 * place,
                pixels=PixelCounts(tp=tp, fn=100 - tp) if place % 2 else PixelCounts(),
            )
            for place in range(count)
        ]
        return make_run(tmp_path / name, results, **options)

    return make


def test_difference_of_one_image_is_not_significant(make):
    comparison = compare_runs(make("first", {3}), make("second", {5, 6}))
    assert (comparison.first_right, comparison.second_right) == (("05", "06"), ("03",))
    assert comparison.p_value == 1.0  # 2 to 1
    assert comparison.conclusion() == ("The difference is within chance.",)


def test_significantly_better_run(make):
    first, second = make("first", set(range(1, 20, 2)), tp=40), make("second")
    comparison = compare_runs(first, second)
    # Ten to nothing: both tails of ten throws of a coin.
    assert comparison.p_value == pytest.approx(2 * binom.cdf(0, 10, 0.5))
    rate = comparison.differences["false_negative_rate"]
    assert (rate.first, rate.second) == (0.5, 0)
    assert rate.interval.low < -0.5 < rate.interval.high < 0
    f1 = comparison.differences["pixel_f1"]
    assert f1.value == pytest.approx(160 / 180 - 80 / 140)
    assert f1.interval.low == pytest.approx(f1.value)  # as much on each photograph
    assert comparison.conclusion() == (
        f"'{second}' has the higher average precision, by more than chance.",
        f"'{second}' has the higher pixel F1, by more than chance.",
        f"'{second}' misses fewer defects, by more than chance.",
        f"'{second}' labels more photographs correctly, by more than chance.",
    )
    assert compare_runs(second, first).conclusion() == comparison.conclusion()


def test_review_counts_as_not_right(make_result, make_run, tmp_path, capsys):
    """The second run leaves ten of the forty for review, nine of them right in the first."""
    held = [make_result(f"{place:02d}", place % 2, 0.5, threshold=0.8, review=0.3) for place in range(10)]
    rest = [
        make_result(f"{n:02d}", n % 2, 0.1 + 0.8 * (n % 2), threshold=0.8, review=0.3) for n in range(10, 40)
    ]
    plain = [make_result(f"{n:02d}", n % 2, 0.1 + 0.8 * (n % 2 if n else 1)) for n in range(40)]
    first, second = make_run(tmp_path / "plain", plain), make_run(tmp_path / "held", held + rest)
    comparison = compare_runs(first, second)
    assert comparison.reviews == (0, 10)
    assert (len(comparison.first_right), comparison.second_right, comparison.both_wrong) == (9, (), 1)
    assert comparison.p_value == pytest.approx(2 * binom.cdf(0, 9, 0.5))
    rate = comparison.differences["false_negative_rate"]
    assert (rate.first, rate.second) == (0, 0)  # five defective ones are for review, none is called good
    assert (
        f"'{first}' labels more photographs correctly, by more than chance. "
        "Photographs for review count as not correct." in comparison.conclusion()
    )
    main(["compare", str(first), str(second)])
    printed = capsys.readouterr().out
    assert "Correct in neither: 1.\nCorrect only in A: 9.\n  01\n" in printed
    assert "For review: 0 in A, 10 in B. They count as not correct, but neither as missed nor" in printed


def test_fewer_false_alarms_do_not_compensate_missed_defects(make):
    """As many labels are right, of other photographs."""
    alarms, misses = make("alarms", set(range(0, 20, 2))), make("misses", set(range(1, 20, 2)))
    comparison = compare_runs(alarms, misses)
    assert comparison.p_value == 1.0 and comparison.verdict == "worse"
    assert f"'{alarms}' misses fewer defects, by more than chance." in comparison.conclusion()


def test_few_items_give_no_interval(make):
    comparison = compare_runs(make("first", {1}, count=4), make("second", count=4))
    assert comparison.differences["auroc"].interval is None
    assert comparison.conclusion() == ("There are too few items to measure a significant difference.",)


def test_runs_on_other_data_are_rejected(make, make_result, make_run, tmp_path):
    first = make("first")
    other = make_run(tmp_path / "other_data", [make_result("elsewhere", 0, 0.1)])
    with pytest.raises(RunError, match=r"different photographs.*training join"):
        compare_runs(first, other)
    masked = make_run(tmp_path / "masked", [make_result("01", 1, 0.9, pixels=PixelCounts(tp=7))])
    with pytest.raises(RunError, match="'01' has different labels or masks"):
        compare_runs(first, masked)
    with pytest.raises(RunError, match=r"has the classes good, defect, .* good, defect, stain"):
        compare_runs(first, make("other", classes=("good", "defect", "stain")))
