from pathlib import Path

import pytest

from training.experiment_file import load_experiment

ROOT = Path(__file__).parents[2]
EXPERIMENTS = sorted((ROOT / "training" / "experiments").glob("*.toml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiments_are_valid_and_say_how_to_run_them(path):
    config = load_experiment(path)
    comment = "".join(line for line in path.read_text().splitlines(True) if line.startswith("#"))
    assert f"python -m training run training/experiments/{path.name}" in comment
    if path.stem.endswith("_comind2021"):
        target = config.target
        assert (target.window_px, target.window_border, config.sampling) == (17, "reflect", "frequency")
        grows_alike = (target.dilation_shape, target.dilation_at) == ("square", "photograph")
        assert grows_alike or target.dilation_px == 1
    assert config.data.splits is None or (ROOT / config.data.splits).is_file()
