import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from segdec.artifact import (
    Manifest,
    SelfTest,
    TrainingPhotographs,
    open_artifact,
    read_manifest,
    write_artifact,
)
from segdec.artifact.variants import Variant
from segdec.config import InputConfig, NetworkConfig
from segdec.errors import ArtifactError
from tests.forged_artifact import write_manifest

MANIFEST = Manifest(
    network=NetworkConfig(preset="compact"),
    input=InputConfig(),
    classes=("good", "defect"),
    name="part",
    version="1",
    segdec_version="0.1.0",
    metrics={"ap": 0.5},
    self_test=SelfTest(height=8, width=8, label="good", score=0.25),
    variants={"tensorflow": Variant()},
)
FILES = {
    "self_test/photograph.png": b"photograph",
    "self_test/mask_scores.png": b"scores",
    "tensorflow/saved_model.pb": b"graph",
    "tensorflow/variables/variables.index": b"weights",
}


def build(folder: Path) -> Manifest:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return MANIFEST


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_artifact(tmp_path / "model", build)
    return tmp_path / "model"


def rewrite(folder: Path, **changes: Any) -> None:
    """Changes the manifest and its checksum."""
    values = json.loads((folder / "manifest.json").read_text())
    write_manifest(folder, json.dumps({**values, **changes}).encode())


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def refusal(folder: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        read_manifest(folder)
    return str(caught.value)


# === Writing ===


def test_manifest_comes_back_with_the_checksum_of_every_file(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest.files == {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    assert manifest.model_copy(update={"files": {}}) == MANIFEST


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs the coreutils")
def test_checksum_file_is_understood_by_sha256sum(folder: Path) -> None:
    subprocess.run(["sha256sum", "-c", "manifest.sha256"], cwd=folder, capture_output=True, check=True)


def test_overwriting_replaces_the_artifact(folder: Path) -> None:
    second = {"version": "2"}
    write_artifact(folder, lambda staged: build(staged).model_copy(update=second), overwrite=True)
    assert read_manifest(folder).version == "2"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_other_folders_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ArtifactError, match="is not an artifact"):
        write_artifact(tmp_path, build, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot be written"):
        write_artifact(tmp_path / "file" / "model", build)


# === Reading ===


@pytest.mark.parametrize("name", ["manifest.json", "manifest.sha256", *FILES])
def test_missing_file_is_named(name: str, folder: Path) -> None:
    (folder / name).unlink()
    assert f"has no {Path(name).name}" in refusal(folder)


@pytest.mark.parametrize("name", ["manifest.json", "manifest.sha256"])
def test_flipped_byte_in_the_manifest_or_its_checksum(name: str, folder: Path) -> None:
    flip_byte(folder / name)
    assert "does not match" in refusal(folder)


@pytest.mark.parametrize("name", FILES)
def test_flipped_byte_in_another_file_is_named(name: str, folder: Path) -> None:
    flip_byte(folder / name)
    assert f"{folder / name} has changed since the export" in refusal(folder)


@pytest.mark.parametrize(("version", "age"), [(9, "an older"), (12, "a newer")])
def test_other_format_is_rejected_before_its_unknown_fields(version: int, age: str, folder: Path) -> None:
    rewrite(folder, format_version=version, segdec_version="9.0", novelty=True)
    text = f"format_version {version}. Expected 10 or 11: {age} segdec (9.0) wrote it. Export the model again"
    assert text in refusal(folder)


EARLIER_LIMITS = {
    "false_alarm_rate": 0.001,
    "photographs": 20,
    "measures": {"brightness": {"lowest": [0, 1], "centre": [0, 1], "references": "AAA=", "limit": 1.0}},
}
"""Of format 10, which had no limits above which photographs are refused."""


def test_limits_of_format_10_are_dropped_and_the_rest_is_read(folder: Path) -> None:
    ranges = {"heights": [8, 8], "widths": [8, 8], "aspects": [1, 1]}
    earlier = {"training_photographs": {**ranges, "limits": EARLIER_LIMITS}, "segdec_version": "0.0.9"}
    rewrite(folder, format_version=10, **earlier)
    manifest = read_manifest(folder)
    assert manifest.training_photographs == TrainingPhotographs(**ranges)
    [note] = manifest.notes
    assert "inspects any photograph, because segdec 0.0.9" in note and note.endswith("Export it again.")
    rewrite(folder, format_version=10, training_photographs=None)
    assert read_manifest(folder).notes == ()
    rewrite(folder, format_version=11, training_photographs=ranges)
    assert read_manifest(folder).notes == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"variants": {}}, "is not a valid manifest. variants: "),
        ({"variants": {"abacus": {}}}, "the unknown engine 'abacus'. Expected one of tensorflow, "),
        ({"metric": {}}, "metric: unknown key. Did you mean 'metrics'?"),
        ({"speed": {"height": 8, "width": 8, "processor": "", "threads": 1, "cpu_ms": {}}}, "speed.cpu_ms"),
    ],
)
def test_invalid_field_is_named(changes: dict[str, Any], words: str, folder: Path) -> None:
    rewrite(folder, **changes)
    assert words in refusal(folder)


# === Artifacts from unknown senders ===


HOSTILE = {
    "list": b"[]",
    "empty": b"{}",
    "text": b"no json",
    "deep": b"[" * 100_000,
    "infinite": b'{"format_version": 1e999}',
    "long": b'{"format_version": ' + b"9" * 5000 + b"}",
    "null": b'{"format_version": null}',
    "bytes": b"\xff\xfe",
    "large": b"{" + b" " * 2**22 + b"}",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_manifest_is_rejected(content: bytes, folder: Path) -> None:
    write_manifest(folder, content)
    assert re.search("is not a manifest|is larger than", refusal(folder))


@pytest.mark.parametrize(
    "name", ["../a", "/etc/hostname", "a/../../b", "./a", "a//b", "", "a\\b", "C:b", "a\0b", "a/", ".a"]
)
def test_file_name_outside_the_folder_is_rejected(name: str, folder: Path) -> None:
    rewrite(folder, files={name: "0" * 64})
    assert "Expected only files inside its folder" in refusal(folder)


@pytest.mark.parametrize("name", ["manifest.json", "tensorflow/saved_model.pb", "tensorflow"])
def test_links_are_not_followed_out_of_the_folder(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert f"{folder / name} is a link. Expected the files themselves" in refusal(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipe_in_place_of_a_file_is_rejected_without_waiting(folder: Path) -> None:
    (folder / "tensorflow/saved_model.pb").unlink()
    os.mkfifo(folder / "tensorflow/saved_model.pb")
    assert "is not a plain file" in refusal(folder)


def test_file_without_end_is_rejected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segdec.artifact.reading.MAX_FILE_BYTES", 5)
    assert "is larger than 5 bytes" in refusal(folder)


@pytest.mark.parametrize("name", ["tensorflow/saved_model.pbtxt", "tensorflow/assets/a"])
def test_unlisted_file_is_rejected(name: str, folder: Path) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"")
    assert f"{folder / name} is not one of the artifact's files" in refusal(folder)


def test_engine_loads_the_checked_copy(folder: Path) -> None:
    artifact = open_artifact(folder)
    with artifact.private_copy("tensorflow") as files:
        assert files.parent.stat().st_mode & 0o077 == 0
        (folder / "tensorflow/saved_model.pb").write_bytes(b"another one")
        assert (files / "saved_model.pb").read_bytes() == b"graph"
        names = {path.name for path in files.rglob("*")}
    assert names == {"saved_model.pb", "variables", "variables.index"}
    assert not files.exists()
    with pytest.raises(ArtifactError, match="has changed"), artifact.private_copy("tensorflow"):
        pytest.fail("nothing may be loaded")


def test_engine_error_names_the_artifact(folder: Path) -> None:
    with (
        pytest.raises(ArtifactError, match=re.escape(f"{folder}/tensorflow is odd")),
        open_artifact(folder).private_copy("tensorflow") as files,
    ):
        raise ArtifactError(f"{files} is odd")


def test_control_characters_in_a_version_are_escaped(folder: Path) -> None:
    rewrite(folder, format_version=12, segdec_version="9.0\x1b[2J" + "x" * 1000)
    assert r"a newer segdec (9.0\x1b[2Jxxx" in refusal(folder)
    assert len(refusal(folder)) < 400


def test_operating_points_are_optional_and_checked(folder):
    assert read_manifest(folder).operating_points is None
    share = {"count": 1, "parts": 40, "low": 0.01, "high": 0.2}
    point = {"goal": "chosen", "threshold": 0.5, "rejected": share, "missed": None, "note": None}
    rewrite(folder, operating_points={"measured_on": "val", "points": [point]})
    points = open_artifact(folder).manifest.operating_points
    assert points is not None and points.points[0].rejected is not None
    assert points.points[0].rejected.value == 0.025
    for wrong in (
        {"threshold": 2},
        {"goal": "best"},
        {"rejected": {**share, "parts": 0}},
        {"rejected": {**share, "count": 41}},
        {"missed": {**share, "high": 7}},
    ):
        rewrite(folder, operating_points={"measured_on": "val", "points": [{**point, **wrong}]})
        with pytest.raises(ArtifactError, match="not a valid manifest"):
            open_artifact(folder)


def test_the_curve_of_operating_points_is_optional_and_checked(folder):
    point = {"goal": "chosen", "threshold": 0.5, "rejected": None, "missed": None}
    curve = {"scores": [0.2, 0.5], "rejected": [3, 1], "missed": [0, 2], "good": 3, "defective": 2}
    own = {"measured_on": "val", "points": [point]}
    rewrite(folder, operating_points=own)
    assert open_artifact(folder).manifest.operating_points.curve is None
    rewrite(folder, operating_points={**own, "curve": curve})
    assert open_artifact(folder).manifest.operating_points.curve.scores == (0.2, 0.5)
    for wrong, problem in (
        ({"scores": [0.5, 0.2]}, "scores in the wrong order"),
        ({"rejected": [1, 3]}, "rejected in the wrong order"),
        ({"missed": [2, 0]}, "missed in the wrong order"),
        ({"missed": [0]}, "lists of the lengths"),
        ({"good": 2}, "more rejected or missed parts than there are"),
        ({"defective": 1}, "more rejected or missed parts than there are"),
        ({"scores": [], "rejected": [], "missed": []}, "at least 1"),
        ({"scores": [0.5] * 201, "rejected": [1] * 201, "missed": [1] * 201}, "at most 200"),
    ):
        rewrite(folder, operating_points={**own, "curve": {**curve, **wrong}})
        with pytest.raises(ArtifactError, match=problem):
            open_artifact(folder)


def test_rating_and_warnings_are_optional_and_checked(folder):
    assert (read_manifest(folder).rating, read_manifest(folder).warnings) == (None, ())
    rewrite(folder, rating={"level": "weak", "reason": "Few."}, warnings=["Few good parts."])
    manifest = open_artifact(folder).manifest
    assert manifest.rating is not None and manifest.rating.level == "weak"
    assert manifest.warnings == ("Few good parts.",)
    rewrite(folder, rating={"level": "best", "reason": ""})
    with pytest.raises(ArtifactError, match="not a valid manifest"):
        open_artifact(folder)
