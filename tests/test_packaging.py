"""What pip installs: the package `segdec` alone, with its command and its types, on four packages."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import api
import datasets
import segdec
import training

ROOT = Path(__file__).parents[1]
PACKAGES = ("segdec", "datasets", "training", "api", "tests", "benchmarks")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    checkout = out / "checkout"  # a copy: setuptools leaves its build folder beside the sources
    hidden = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, checkout / package, ignore=hidden)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        str(checkout),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel):
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_wheel_holds_segdec_alone(wheel):
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"segdec"}
    packaged = {name for name in names if name.endswith(".py")}
    assert packaged == {path.relative_to(ROOT).as_posix() for path in (ROOT / "segdec").rglob("*.py")}
    assert "segdec/py.typed" in names


def test_wheel_has_a_command(wheel, tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(tmp_path), wheel.filename], check=True)
    segdec_command = tmp_path / "bin" / "segdec"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for words, name in (([segdec_command], "segdec"), ([sys.executable, "-m", "segdec"], "python -m segdec")):
        shown = subprocess.run(
            [*words, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert shown.stdout.startswith(f"usage: {name} [-h]")


def test_plain_install_needs_four_packages(metadata):
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.split(r"[<>=~! ]", line)[0] for line in required} == {
        "numpy",
        "opencv-python-headless",
        "pydantic",
        "tqdm",
    }
    extras = {"images", "tensorflow", "openvino", "gpu", "client", "batch", "ray", "sign", "watch"}
    assert set(metadata.get_all("Provides-Extra")) == extras


def test_other_packages_run_from_the_checkout():
    for package in (api, datasets, segdec, training):
        assert Path(package.__file__).is_relative_to(ROOT)


def test_version_is_the_declared_one():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert segdec.__version__ == declared


def test_constraints_pin_every_requirement_and_name_no_index():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pins)
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in pins}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = declared["project"], declared["dependency-groups"]
    lists = (project["dependencies"], *project["optional-dependencies"].values(), *groups.values())
    required = [line for line in chain(*lists) if isinstance(line, str)]  # else a group that is included
    names = {canonicalize_name(Requirement(line).name) for line in required} - {"segdec"}
    assert names <= pinned


def test_what_a_message_says_to_install_is_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    calls = r"((?:MissingExtraError|clean_exit|explain_missing_group)\(.*\))"
    said = [
        words
        for package in PACKAGES[:-2]
        for path in (ROOT / package).rglob("*.py")
        for words in re.findall(calls, path.read_text(encoding="utf-8"))
    ]
    groups = {name for words in said for name in re.findall(r'group(?:: str |=|\()=? ?"(\w+)"', words)}
    extras = {name for words in said for name in re.findall(r'(?:extra=|, )"(\w+)"', words)}
    assert groups == {"train", "serve", "record", "opcua", "mlflow", "quantize"}
    assert groups <= set(declared["dependency-groups"])
    assert extras >= {"images", "tensorflow", "openvino", "client", "batch", "ray", "sign", "watch"}
    assert extras <= set(declared["project"]["optional-dependencies"])


def test_no_script_changes_where_python_looks():
    folders = (*PACKAGES, "deploy", "examples", "docs")
    scripts = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(scripts) > 400
    changes = re.compile(r"\bsys\.path\b *(\.|\+?=|\[)")
    assert [path for path in scripts if changes.search(path.read_text(encoding="utf-8"))] == []
