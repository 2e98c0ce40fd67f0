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
        make_result("=1+1", 0, 0.2, group="-7"),
        make_result("a/2", 1, 1 / 3, group="a", pixels=None),
        make_result(
            "b/1", 1, 0.9, pixels=PixelCounts(5, 2, 6), overlaps=(Overlap(9, 5, 0, 0, 70, 7), Overlap(2, 0))
        ),
    ]


@pytest.fixture
def run(make_run, results, tmp_path):
    return make_run(tmp_path / "run", results, seed=7)


def test_an_evaluation_comes_back_from_its_folder(run, results):
    loaded = load_evaluation(run)
    assert loaded.results == tuple(results)
    assert (loaded.seed, loaded.split, loaded.classes) == (7, "test", ("good", "defect"))
    assert loaded.mask_scores.aupro() == 1


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


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        (
            "predictions.csv",
            lambda text: text.replace(b"0.1", b"0.2"),
            "different evaluations, or were edited",
        ),
        ("pixel_scores.npz", lambda data: data[: len(data) // 2], "cannot be read"),
        ("metrics.json", lambda _: b'{"split": "test"}', "'run' is missing"),
        ("metrics.json", lambda _: b"\xff", "cannot be read"),
        (
            "metrics.json",
            lambda text: text.replace(b'"defect"\n', b'"hole"\n'),
            "'a/2' has the class 'defect'",
        ),
    ],
)
def test_damaged_files_are_named(run, name, damage, said):
    (run / name).write_bytes(damage((run / name).read_bytes()))
    with pytest.raises(RunError, match=f"evaluation of .*{said}.*Evaluate it with"):
        load_evaluation(run)


def test_overlaps_of_an_earlier_version_are_refused(run):
    with np.load(run / "pixel_scores.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez(run / "pixel_scores.npz", **{**arrays, "overlaps": arrays["overlaps"][:, :5]})
    with pytest.raises(RunError, match=r"overlaps have the shape \(2, 5\); expected 7 columns\. Evaluate it"):
        load_evaluation(run)


def test_a_file_of_objects_is_not_unpickled(run):
    np.savez(run / "pixel_scores.npz", overlaps=np.array([{}], object))
    with pytest.raises(RunError, match="cannot be read"):
        load_evaluation(run)
