from pathlib import Path

import pytest

from benchmarks.untrained_models import TINY, export_untrained


@pytest.fixture(scope="session")
def quick_artifact(tmp_path_factory) -> Path:
    """A tiny OpenVINO artifact, for fast starts."""
    folder = tmp_path_factory.mktemp("quick") / "model"
    export_untrained(TINY, folder, name="tiny", engines=["openvino"])
    return folder
