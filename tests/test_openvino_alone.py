"""An artifact with a variant for OpenVINO is served where TensorFlow is not installed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from segdec.images import write_png

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_prediction_without_tensorflow(tiny_network, tiny_config, tmp_path):
    from segdec.export.model_export import ModelCard, export_model
    from segdec.predictor import Predictor

    model, image = tmp_path / "model", tmp_path / "part.png"
    card = ModelCard("tiny", "1")
    export_model(tiny_network, model, tiny_config, card, engines=["tensorflow", "openvino"])
    pixels = np.random.default_rng(0).integers(0, 256, (64, 48, 1), dtype=np.uint8)
    write_png(image, pixels)
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", python.parents[1])
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    run(*pip, "-e", f"{ROOT}[openvino]", "-c", ROOT / "constraints.txt")
    assert run(python, "-c", "import tensorflow", check=False).returncode == 1
    printed = run(python, "-m", "segdec", "predict", image, "--model", model).stdout
    assert f"{Predictor.load(model).predict([pixels])[0].score:.3f}" in printed
    flags = (image, "--model", model, "--engine", "tensorflow")
    refused = run(python, "-m", "segdec", "predict", *flags, check=False)
    assert refused.returncode == 2
    assert "extra 'tensorflow'" in refused.stderr


def run(*command, check=True):
    return subprocess.run(list(map(str, command)), cwd=ROOT, check=check, capture_output=True, text=True)
