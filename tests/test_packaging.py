"""What pip installs: the package `segdec` alone, with its command and its types, on four packages."""

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
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={out}", str(checkout)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


@pytest.mark.slow
def test_wheel_holds_segdec_with_its_command_and_needs_four_packages(wheel):
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"segdec"}
    packaged = {name for name in names if name.endswith(".py")}
    assert packaged == {path.relative_to(ROOT).as_posix() for path in (ROOT / "segdec").rglob("*.py")}
    assert "segdec/py.typed" in names
    information = f"segdec-{segdec.__version__}.dist-info"
    command = wheel.read(f"{information}/entry_points.txt").decode()
    assert command == "[console_scripts]\nsegdec = segdec.__main__:main\n"
    metadata = message_from_bytes(wheel.read(f"{information}/METADATA"))
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    plain = {"numpy", "opencv-python-headless", "pydantic", "tqdm"}
    assert {Requirement(line).name for line in required} == plain
    extras = {"images", "tensorflow", "openvino", "gpu", "encoder", "client", "batch", "ray", "sign", "watch"}
    assert set(metadata.get_all("Provides-Extra")) == extras


def test_other_packages_run_from_the_checkout():
    for package in (api, datasets, segdec, training):
        assert Path(package.__file__).is_relative_to(ROOT)


def test_constraints_pin_every_requirement_and_name_no_index():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pins)
    pinned = {canonicalize_name(line.split("==")[0]) for line in pins}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = declared["project"], declared["dependency-groups"]
    lists = (project["dependencies"], *project["optional-dependencies"].values(), *groups.values())
    required = [line for line in chain(*lists) if isinstance(line, str)]  # else a group that is included
    names = {canonicalize_name(Requirement(line).name) for line in required} - {"segdec"}
    assert names <= pinned


def test_what_a_message_says_to_install_is_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    calls = r"((?:MissingExtraError|clean_exit|explain_missing_group)\(.*\))"
    sources = [path for package in PACKAGES[:-2] for path in (ROOT / package).rglob("*.py")]
    said = "\n".join("\n".join(re.findall(calls, path.read_text(encoding="utf-8"))) for path in sources)
    groups = set(re.findall(r'group(?:: str |=|\()=? ?"(\w+)"', said))
    extras = set(re.findall(r'(?:extra=|, )"(\w+)"', said))
    assert groups == {"train", "serve", "record", "opcua", "mlflow", "quantize", "sam"}
    assert groups <= set(declared["dependency-groups"])
    assert extras >= {"images", "tensorflow", "openvino", "client", "batch", "ray", "sign", "watch"}
    assert extras <= set(declared["project"]["optional-dependencies"])


def test_no_script_changes_where_python_looks():
    folders = (*PACKAGES, "deploy", "examples", "docs")
    scripts = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(scripts) > 400
    changes = re.compile(r"\bsys\.path\b *(\.|\+?=|\[)")
    assert [path for path in scripts if changes.search(path.read_text(encoding="utf-8"))] == []
