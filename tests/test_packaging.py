"""What pip installs: the package `segdec` alone, on NumPy, OpenCV, pydantic and tqdm."""

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


def test_plain_install_needs_four_packages(metadata):
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.split(r"[<>=~! ]", line)[0] for line in required} == {
        "numpy",
        "opencv-python-headless",
        "pydantic",
        "tqdm",
    }
    assert set(metadata.get_all("Provides-Extra")) == {
        "images",
        "tensorflow",
        "openvino",
        "quantize",
        "gpu",
        "train",
        "mlflow",
        "client",
        "batch",
        "ray",
        "serve",
        "dev",
    }


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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=~! ]", line)[0].lower() for line in required} - {"segdec"}
    assert names <= pinned
