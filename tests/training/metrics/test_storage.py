import hashlib
import json
import math

import numpy as np
import pytest

from segdec.errors import RunError
from training.metrics.photograph_results import read_predictions
from training.metrics.pixel_counts import PixelCounts
from training.metrics.regions import Overlap
from training.metrics.storage import load_evaluation


@pytest.fixture
def results(make_result):
    return [
        make_result("a/1", 0, 0.1, group="a"),
        make_result("a/2", 1, 1 / 3, group="a", pixels=None),
        make_result("b/1", 1, 0.9, pixels=PixelCounts(5, 2, 6), overlaps=(Overlap(9, 5), Overlap(2, 0))),
    ]


@pytest.fixture
def run(make_run, results, tmp_path):
    return make_run(tmp_path / "run", results, seed=7)


def test_an_evaluation_comes_back_from_its_folder(run, results):
    loaded = load_evaluation(run)
    assert loaded.results == tuple(results)
    assert (loaded.seed, loaded.split, loaded.classes) == (7, "test", ("good", "defect"))
    assert (loaded.mask_scores.aupro(), loaded.mask_scores.regions) == (1, 1)
    assert {path.name for path in run.iterdir()} == {
        "config.toml",
        "metrics.json",
        "predictions.csv",
        "pixel_scores.npz",
    }


def test_metrics_file_holds_single_figures_beside_nested_ones(run):
    figures = json.loads((run / "metrics.json").read_text())
    assert figures["run"] == {"seed": 7, "classes": ["good", "defect"], "defect_rate": None}
    assert (figures["false_negatives"], figures["pixel_average_precision"]) == (1, 1)
    assert figures["classes"][0]["name"] == "defect"
    assert [size["regions"] for size in figures["region_sizes"]] == [2, 0, 0, 0]


def test_calibration_and_review_come_back(make_run, make_result, tmp_path):
    limits = {"threshold": 0.7, "review": 1 / 3}
    results = [
        make_result("a", 0, 0.4, log_odds=-1.25, **limits),
        make_result("b", 1, 1.0, log_odds=41.5, **limits),  # beyond what the score can tell
    ]
    loaded = load_evaluation(make_run(tmp_path / "run", results, defect_rate=0.125))
    assert loaded.results == tuple(results)
    assert [result.outcome for result in loaded.results] == ["review", "correct"]
    assert loaded.defect_rate == 0.125


def test_evaluation_of_an_earlier_version_is_read(run, results):
    """Its table has no log-odds and no review threshold, its metrics no share of defective photographs."""
    table, scores, metrics = (run / name for name in ("predictions.csv", "pixel_scores.npz", "metrics.json"))
    lines = [line.split(",") for line in table.read_text().splitlines()]
    assert lines[0][-2:] == ["log_odds", "review_threshold"]
    table.write_text("".join(",".join(line[:-2]) + "\n" for line in lines))
    with np.load(scores) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["predictions_sha256"] = np.array(hashlib.sha256(table.read_bytes()).hexdigest())
    np.savez_compressed(scores, **arrays)
    figures = json.loads(metrics.read_text())
    del figures["run"]["defect_rate"]
    metrics.write_text(json.dumps(figures))
    former = load_evaluation(run)
    assert former.defect_rate is None
    assert former.results == tuple(results)  # their log-odds are those of the score
    assert former.results[0].log_odds == pytest.approx(math.log(0.1 / 0.9))


def test_review_without_a_review_threshold_is_no_class(run):
    table = run / "predictions.csv"
    with pytest.raises(ValueError, match="has the class 'review', which the model does not have"):
        table.write_text(table.read_text().replace(",good,good,", ",good,review,"))
        read_predictions(table, ("good", "defect"))


@pytest.mark.parametrize("name", ["metrics.json", "predictions.csv", "pixel_scores.npz"])
def test_a_run_without_evaluation_says_how_to_make_one(run, name):
    (run / name).unlink()
    with pytest.raises(RunError, match=rf"has not been evaluated: it has no {name}.*training evaluate"):
        load_evaluation(run)


def test_another_folder_is_no_run(tmp_path):
    with pytest.raises(RunError, match=r"not a run folder: it has no config.toml"):
        load_evaluation(tmp_path)


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        (
            "predictions.csv",
            lambda text: text.replace(b"0.1", b"0.2"),
            "different evaluations, or were edited",
        ),
        ("predictions.csv", lambda _: b"", "different evaluations"),
        ("pixel_scores.npz", lambda data: data[: len(data) // 2], "cannot be read"),
        ("pixel_scores.npz", lambda _: b"", "cannot be read"),
        ("metrics.json", lambda _: b'{"split": "test"}', "'run' is missing"),
        ("metrics.json", lambda _: b"\xff", "cannot be read"),
        (
            "metrics.json",
            lambda text: text.replace(b'"defect"\n', b'"hole"\n'),
            "'a/2' has the class 'defect'",
        ),
        ("metrics.json", lambda _: b"[]", "cannot be read"),
    ],
)
def test_damaged_files_are_named(run, name, damage, said):
    (run / name).write_bytes(damage((run / name).read_bytes()))
    with pytest.raises(RunError, match=f"evaluation of .*{said}.*Evaluate it with"):
        load_evaluation(run)


def test_a_file_of_objects_is_not_unpickled(run):
    np.savez(run / "pixel_scores.npz", overlaps=np.array([{}], object))
    with pytest.raises(RunError, match="cannot be read"):
        load_evaluation(run)
