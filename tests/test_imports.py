"""Imports run one way: api → segdec ← training → datasets, and datasets → segdec for the image decoder.

`python tests/test_imports.py` prints the units of each package (folders, loose modules) with their imports.
"""

import ast
import functools
import re
import subprocess
import sys
from graphlib import TopologicalSorter
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
    "datasets/file_systems.py",  # imports it when shards are read or written
    "segdec/network/convolution.py",
    "segdec/network/decoder.py",
    "segdec/network/efficientnet_lite.py",
    "segdec/network/vision_transformer.py",
    "segdec/network/encoder.py",
    "segdec/engines/tensorflow.py",
    "segdec/engines/tensorflow_graph.py",
    "segdec/export/model_export.py",
    "segdec/export/reduced_graph.py",
    "segdec/network/fourier_convolution.py",
    "segdec/network/folding.py",
    "segdec/network/layers.py",
    "segdec/network/mask_prior.py",
    "segdec/network/network.py",
    "segdec/network/pooled_classes.py",
    "segdec/network/pooled_score.py",
    "segdec/network/served_layers.py",
    "segdec/network/score_combination.py",
    "segdec/network/surface_memory.py",
    "segdec/export/saved_model.py",
    "segdec/runtime/cli.py",  # imports it on request
    "segdec/runtime/gpu.py",  # asks it why it uses no GPU
}


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


@functools.cache
def imported(path):
    """Absolute names of the modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return names


def top_level(path):
    return {name.split(".")[0] for name in imported(path)}


def test_packages_import_one_way():
    for package in PACKAGES:
        for path in sources(package):
            others = top_level(path) & set(PACKAGES) - ALLOWED[package]
            assert not others, f"{path} imports {others}"


def units(path):
    """The parts of the packages that a file imports, two names each."""
    return {".".join(name.split(".")[:2]) for name in imported(path)}


def test_data_sets_use_no_network_code():
    """But for `push`, which sends them to a service."""
    modules = {name for path in sources("datasets") for name in units(path) if name.startswith("segdec.")}
    push = {"segdec.annotation_content", "segdec.client", "segdec.command_line", "segdec.data_set_schemas"}
    assert modules <= {"segdec.errors", "segdec.images", "segdec.imaging", "segdec.runtime", *push}
    users = {path.name for path in sources("datasets") if any(map(tuple(push).__contains__, units(path)))}
    assert users == {"__main__.py", "commands.py", "pushing.py"}


def test_the_library_imports_neither_its_client_nor_its_command_line():
    above = ("segdec.client", "segdec.command_line", "segdec.__main__")
    for path in sources("segdec"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not name.startswith(above):
            assert not [one for one in imported(path) if one.startswith(above)], path


def test_tensorflow_stays_where_it_belongs():
    paths = [path for package in ("segdec", "datasets", "api") for path in sources(package)]
    users = [path for path in paths if top_level(path) & {"tensorflow", "keras"}]
    assert {path.relative_to(ROOT).as_posix() for path in users} == WITH_TENSORFLOW


def test_these_modules_load_no_tensorflow():
    modules = (
        "segdec, segdec.predictor, segdec.images, segdec.imaging.overlay, segdec.artifact, datasets.loading, "
        "datasets.__main__, training.__main__, training.distribution.cluster, training.distribution.launch, "
        "training.reporting.tables, training.retrain.splitting"
    )
    code = f"import sys, {modules}; print({{'tensorflow', 'keras', 'PIL', 'matplotlib'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "set()"


def test_service_starts_no_process_but_one_program():
    """TensorFlow does not survive a fork, and a copy of the service would load its models again.

    `python -m datasets` reads archives, as a new program: nothing of it is imported.
    """
    program = ROOT / "api/data_sets/import_program.py"
    for path in sources("api"):
        starts = "create_subprocess" in path.read_text(encoding="utf-8")
        assert starts == (path == program), path
        assert not top_level(path) & {"subprocess", "multiprocessing"}, path
        assert not re.search(r"\.fork\(|ProcessPool", path.read_text(encoding="utf-8")), path


# === Units ===


@functools.cache
def module_imports():
    """Every module of the product: the modules that it imports, wherever in its text."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sources(package)
    }
    return {name: (imported(path) & set(modules)) - {name} for name, path in modules.items()}


def unit_imports(package):
    """Every unit of a package, a folder or a module next to it: the units that it imports."""

    def unit(module):
        name, *below = module.split(".")[1:]
        return f"{name}/" if below or (ROOT / package / name).is_dir() else name

    units = {}
    for module, targets in module_imports().items():
        if module.startswith(f"{package}."):
            inside = {unit(target) for target in targets if target.startswith(f"{package}.")}
            units.setdefault(unit(module), set()).update(inside - {unit(module)})
    return units


@pytest.mark.parametrize("package", [None, *PACKAGES])
def test_neither_modules_nor_units_import_themselves_through_others(package):
    graph = unit_imports(package) if package else module_imports()
    TopologicalSorter(graph).prepare()  # CycleError names the cycle


if __name__ == "__main__":
    for package in PACKAGES:
        units = unit_imports(package)
        print(f"\n{package}/: {len(units)} units, {sum(map(len, units.values()))} arrows")
        for name, targets in sorted(units.items(), key=lambda item: -len(item[1])):
            print(f"  {name} → {' '.join(sorted(targets))}" if targets else f"  {name}")
