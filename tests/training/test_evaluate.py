import pytest

from training.evaluate import describe_network
from training.experiment_file import load_experiment

SIZE = ["--input.height", "96", "--input.width", "64"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "compact, input size of the image"),
        (["--input.policy", "resize", *SIZE], "compact, input resize 64 × 96 px"),
        (
            ["--input.policy", "tile", *SIZE, "--input.overlap-px", "16", "--network.mask-stride", "2"],
            "compact, input tile 64 × 96 px, mask stride 2 px",
        ),
    ],
)
def test_report_names_the_input(flags, words, tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text('[network]\npreset = "compact"\n[stages.joint]\nsteps = 1\n')
    assert describe_network(load_experiment(path, flags)) == words
