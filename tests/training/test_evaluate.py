"""The rating of a run depends on the annotations of its training photographs."""

import shutil

import pytest

from training.evaluate import evaluate_run
from training.experiment_file import load_experiment, save_experiment


@pytest.mark.parametrize(("word", "advised"), [("box", False), ("label", True)])
def test_only_photographs_without_a_place_of_the_defect_need_a_mask(finished_run, tmp_path, word, advised):
    run = shutil.copytree(finished_run, tmp_path / "run")
    experiment = load_experiment(run / "config.toml")
    lines = (run / "splits.txt").read_text().splitlines()
    names = [line.split(maxsplit=1)[1] for line in lines if line.startswith("train")]
    (run / "supervision.txt").write_text("".join(f"{word}  {name}\n" for name in names))
    data = experiment.data.model_copy(update={"supervision": run / "supervision.txt"})
    (run / "config.toml").write_text(save_experiment(experiment.model_copy(update={"data": data})))
    advice = " ".join(evaluate_run(run, "test").rating.advice)
    assert ("have no mask or box: draw one" in advice) == advised
