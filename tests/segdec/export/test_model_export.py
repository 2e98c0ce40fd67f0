from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.artifact import read_manifest
from segdec.config import ModelConfig
from segdec.engines import Logits
from segdec.errors import ArtifactError, ConfigError


def export(network: Any, folder: Path, config: ModelConfig, **facts: Any) -> None:
    from segdec.export.model_export import ModelCard, export_model

    export_model(network, folder, config, ModelCard("tiny", "1", **facts))


def test_manifest_describes_the_export(tiny_artifact: Path, tiny_config: ModelConfig) -> None:
    manifest = read_manifest(tiny_artifact)
    assert manifest.network == tiny_config.network
    assert manifest.classes == tiny_config.classes
    assert manifest.thresholds == tiny_config.thresholds
    assert "tensorflow/saved_model.pb" in manifest.files


def test_artifact_that_answers_differently_is_not_written(
    tiny_network: Any, tiny_config: ModelConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import segdec.engines.tensorflow

    class Other:
        batch_pixels = 2**24

        def infer(self, asked: NDArray[np.uint8]) -> Logits:
            batch, height, width, _ = asked.shape
            return Logits(
                np.ones((batch, height // 8, width // 8, 1), np.float32), np.ones((batch, 2), np.float32)
            )

    monkeypatch.setattr(segdec.engines.tensorflow.TensorFlowEngine, "load", lambda *_: Other())
    with pytest.raises(ArtifactError, match="mask logits differ"):
        export(tiny_network, tmp_path / "model", tiny_config)
    assert list(tmp_path.iterdir()) == []


def test_configuration_of_another_network_is_rejected(
    tiny_network: Any, tiny_config: ModelConfig, tmp_path: Path
) -> None:
    colour = tiny_config.network.model_copy(update={"input_channels": 3})
    with pytest.raises(ConfigError, match=r"has 1 input .* 8 and 1 masks.* says 3, 2, 8, 1"):
        export(tiny_network, tmp_path / "model", tiny_config.model_copy(update={"network": colour}))
    finer = tiny_config.network.model_copy(update={"mask_stride": 2})
    with pytest.raises(ConfigError, match="says 1, 2, 2, 1"):
        export(tiny_network, tmp_path / "model", tiny_config.model_copy(update={"network": finer}))


@pytest.mark.parametrize("setting", [True, False])
def test_full_precision_restores_the_setting(
    tensorflow_devices: list[str],  # noqa: ARG001
    setting: bool,
) -> None:
    import tensorflow as tf

    from segdec.export.model_export import full_precision

    options = tf.config.experimental
    before = options.tensor_float_32_execution_enabled()
    options.enable_tensor_float_32_execution(setting)
    with full_precision():
        assert not options.tensor_float_32_execution_enabled()
    assert options.tensor_float_32_execution_enabled() is setting
    options.enable_tensor_float_32_execution(before)
