import shutil
from pathlib import Path

import pytest


@pytest.fixture
def artifact_copy(tiny_artifact: Path, tmp_path: Path) -> Path:
    """The tiny artifact, for a test to damage."""
    return Path(shutil.copytree(tiny_artifact, tmp_path / "copy"))
