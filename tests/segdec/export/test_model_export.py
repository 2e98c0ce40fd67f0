from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.config import ModelConfig
from segdec.engines import Logits
from segdec.errors import ArtifactError, ConfigError


def export(network: Any, folder: Path, config: ModelConfig, **facts: Any) -> None:
    from segdec.export.model_export import ModelCard, export_model

    export_model(network, folder, config, ModelCard("tiny", "1", **facts))


@pytest.mark.usefixtures("written_engines")
def test_artifact_that_answers_differently_is_not_written(wide_network, wide_config, tmp_path, monkeypatch):
    class Other:
        batch_pixels = 2**24

        def infer(self, asked: NDArray[np.uint8]) -> Logits:
            batch, height, width, _ = asked.shape
            mask = np.ones((batch, height // 8, width // 8, 1), np.float32)
            return Logits(mask, np.ones((batch, 2), np.float32))

    monkeypatch.setattr("segdec.engines.tensorflow.TensorFlowEngine.load", lambda *_: Other())
    with pytest.raises(ArtifactError, match="output 'mask' differs"):
        export(wide_network, tmp_path / "model", wide_config)
    assert list(tmp_path.iterdir()) == []


def test_configuration_of_another_network_is_rejected(tiny_network, tiny_config, tmp_path):
    other = tiny_config.network.model_copy(update={"input_channels": 3, "mask_stride": 2})
    with pytest.raises(ConfigError, match=r"has 1 input .* 8 and 1 masks.* says 3, 2, 2, 1"):
        export(tiny_network, tmp_path / "model", tiny_config.model_copy(update={"network": other}))


def test_full_precision_restores_the_setting() -> None:
    from tensorflow.config import experimental

    from segdec.export.model_export import full_precision

    before = experimental.tensor_float_32_execution_enabled()
    for setting in (not before, before):
        experimental.enable_tensor_float_32_execution(setting)
        with full_precision():
            assert not experimental.tensor_float_32_execution_enabled()
        assert experimental.tensor_float_32_execution_enabled() is setting
