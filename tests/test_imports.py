"""Imports run one way: api → segdec ← training → datasets, and datasets → segdec for the image decoder."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("segdec", "datasets", "training", "api")
ALLOWED = {
    "segdec": {"segdec"},
    "datasets": {"datasets", "segdec"},
    "training": {"training", "datasets", "segdec"},
    "api": {"api", "segdec"},
}
WITH_TENSORFLOW = {
    "datasets/sharding/file_systems.py",  # imports it when shards are read or written
    "segdec/network/convolution.py",
    "segdec/network/decoder.py",
    "segdec/engines/tensorflow.py",
    "segdec/export/export.py",
    "segdec/network/fourier_convolution.py",
    "segdec/network/folding.py",
    "segdec/network/layers.py",
    "segdec/network/mask_prior.py",
    "segdec/network/network.py",
    "segdec/export/saved_model.py",
    "segdec/cli_runtime.py",  # imports it when told to
}


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


def imported(path):
    """Absolute names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_one_way(package):
    assert sources(package)
    for path in sources(package):
        tops = {name.split(".")[0] for name in imported(path)} & set(PACKAGES)
        assert tops <= ALLOWED[package], f"{path} imports {tops - ALLOWED[package]}"


def test_data_sets_use_no_network_code():
    names = {name for path in sources("datasets") for name in imported(path) if name.startswith("segdec.")}
    modules = {".".join(name.split(".")[:2]) for name in names}
    assert modules <= {
        "segdec.errors",
        "segdec.files",
        "segdec.images",
        "segdec.overlay",
        "segdec.run_lengths",
        "segdec.suggestions",
        "segdec.cli_runtime",
    }


def test_tensorflow_stays_where_it_belongs():
    users = {
        path.relative_to(ROOT).as_posix()
        for package in ("segdec", "datasets", "api")
        for path in sources(package)
        if {name.split(".")[0] for name in imported(path)} & {"tensorflow", "keras"}
    }
    assert users == WITH_TENSORFLOW


def test_importing_the_library_loads_no_tensorflow():
    modules = "segdec, segdec.predictor, segdec.images, segdec.overlay, segdec.artifact, datasets.loading"
    code = f"import sys, {modules}; print({{'tensorflow', 'keras', 'PIL', 'matplotlib'}} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_service_starts_no_process():
    """TensorFlow does not survive a fork, and a copy of the service would hold its models once more."""
    names = {name.split(".")[0] for path in sources("api") for name in imported(path)}
    assert not names & {"subprocess", "multiprocessing"}
    assert not any(
        ".fork(" in path.read_text() or "ProcessPool" in path.read_text() for path in sources("api")
    )
