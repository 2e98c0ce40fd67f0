import csv
import json

import pytest

from segdec.errors import RunError
from training.__main__ import main
from training.metrics.aggregation import aggregate_runs, write_aggregate
from training.metrics.pixel_counts import PixelCounts


def test_folds_are_pooled_each_at_its_own_threshold(make_fold):
    first = make_fold("first", "a", (0.1, 0.4, 0.2, 0.9), 0.3)
    second = make_fold("second", "b", (0.3, 0.8, 0.6, 0.5), 0.7)
    aggregate = aggregate_runs([first, second])
    assert (aggregate.folds, aggregate.seeds, len(aggregate.pooled)) == (2, 1, 1)
    pooled = aggregate.pooled[0].metrics
    assert (pooled.images, pooled.defective, pooled.threshold) == (8, 4, None)
    assert (pooled.false_positives, pooled.false_negatives) == (0, 1)  # 0.5 is below 0.7
    # Ranks of the defective: .9 .8 (.6) .5 .4 of all eight: precision 1, 1, 3/4, 4/5.
    assert pooled.average_precision == pytest.approx((1 + 1 + 3 / 4 + 4 / 5) / 4)
    assert pooled.fp_at_full_recall == 1
    assert pooled.pixels == PixelCounts(tp=24, fp=4, fn=8)
    assert aggregate.figures["average_precision"].mean == pooled.average_precision
    assert aggregate.figures["average_precision"].std is None


def test_pool_is_weighted_to_the_mean_share_of_its_runs(make_fold):
    """Good ones at 0.1, defective ones at 0.9: 0.1 off each, whatever the weights; before, at 0.5 all."""
    runs = [make_fold(name, name, (0.1, 0.9), defect_rate=rate) for name, rate in (("a", 0.1), ("b", 0.3))]
    aggregate = aggregate_runs(runs)
    assert aggregate.pooled[0].defect_rate == pytest.approx(0.2)
    assert [run.metrics.brier for run in aggregate.runs] == [pytest.approx(0.01)] * 2
    lopsided = [
        make_fold(f"{name}'", name, (0.3, 0.9), defect_rate=rate) for name, rate in (("a", 0.1), ("b", 0.3))
    ]
    pooled = aggregate_runs(lopsided).pooled[0]
    assert pooled.metrics.calibration_error == pytest.approx(0.8 * 0.3 + 0.2 * 0.1)
    unknown = aggregate_runs([runs[0], make_fold("c", "c", (0.3, 0.9))]).pooled[0]
    assert unknown.defect_rate is None
    assert unknown.metrics.calibration_error == pytest.approx((0.1 + 0.1 + 0.3 + 0.1) / 4)


def test_folds_of_several_seeds_are_pooled_seed_by_seed(make_fold):
    runs = [
        make_fold("a1", "a", (0.1, 0.9, 0.1, 0.9), seed=1),
        make_fold("a2", "a", (0.1, 0.9, 0.1, 0.2), seed=2),
        make_fold("b2", "b", (0.1, 0.9, 0.1, 0.3), seed=2),  # in another order
        make_fold("b1", "b", (0.1, 0.9, 0.1, 0.9), seed=1),
    ]
    aggregate = aggregate_runs(runs)
    assert (aggregate.folds, aggregate.seeds) == (2, 2)
    assert [each.metrics.false_negatives for each in aggregate.pooled] == [0, 2]
    assert aggregate.figures["false_negatives"].mean == 1
    assert [(run.fold, run.place) for run in aggregate.runs] == [(0, 0), (0, 1), (1, 1), (1, 0)]


def refuse(runs, message):
    with pytest.raises(RunError, match=message):
        aggregate_runs(runs)


def test_mixtures_are_refused(make_fold, make_result, make_run, tmp_path):
    first = make_fold("first", "a", (0.1, 0.4, 0.2, 0.9))
    refuse([first], "1 run given, expected at least two")
    refuse([first, tmp_path / "first" / ".." / "first"], "named twice")
    refuse([first, make_fold("val", "b", (0.1, 0.9), split="val")], "evaluated on the split val, .* on test")
    other = make_fold("other", "b", (0.1, 0.9), classes=("good", "defect", "stain"))
    refuse([first, other], "on the classes good, defect, stain, .* on good, defect")
    refuse([first, make_fold("part", "a", (0.1, 0.9))], "share 2 of 2 and 4 photographs. Expected all")
    uneven = [first, make_fold("again", "a", (0.1, 0.4, 0.2, 0.9)), make_fold("lone", "b", (0.1, 0.9))]
    refuse(uneven, "one of 2 runs on its photographs, .* of 1 on others")
    relabelled = make_run(tmp_path / "relabelled", [make_result(f"a/{place}", 1, 0.5) for place in range(4)])
    refuse([first, relabelled], "'a/0' is defect in .*relabelled' and good in")


def test_files_hold_the_pool_and_each_run(make_fold, tmp_path):
    aggregate = aggregate_runs(
        [make_fold("first", "a", (0.1, 0.4, 0.2, 0.9)), make_fold("second", "b", (0.3, 0.8))]
    )
    write_aggregate(tmp_path / "new" / "out", aggregate)
    written = json.loads((tmp_path / "new" / "out" / "joined.json").read_text())
    assert (written["folds"], written["seeds"], written["pooled"][0]["images"]) == (2, 1, 6)
    assert written["intervals"]["auroc"].keys() == {"low", "high", "resamples", "method"}
    with (tmp_path / "new" / "out" / "joined.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["run"] for line in lines] == [str(tmp_path / "first"), str(tmp_path / "second")]
    assert [float(line["average_precision"]) for line in lines] == [1, 1]


def test_command_line(make_fold, tmp_path, capsys):
    runs = [
        str(make_fold("first", "a", (0.1, 0.4, 0.2, 0.9))),
        str(make_fold("second", "b", (0.3, 0.8, 0.6, 0.5))),
    ]
    main(["join", *runs, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert (
        "2 runs: 2 sets of photographs with 1 run each, split 'test'; 8 photographs, 4 defective" in printed
    )
    assert "0.9167 ± 0.1179" in printed  # mean and deviation of 1 and 5/6
    assert (tmp_path / "out" / "joined.json").exists()
    with pytest.raises(SystemExit) as left:
        main(["join", runs[0], str(tmp_path / "nowhere")])
    assert left.value.code == 2
    assert "not a run folder" in capsys.readouterr().err
