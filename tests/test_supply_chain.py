"""What goes with a release: licences, bills of materials, audit and notes."""

import json
import re
import sys
import zipfile

import pytest

from deploy.release import audit, licences, notes, sbom
from deploy.release.licences import LGPL, NVIDIA, LicensedPackage
from deploy.release.locks import IMAGES, Package, lock_file, read_lock
from segdec import __version__
from segdec.errors import SegdecError

LOCK = """\
fastapi_offline==1.7.7 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
tensorflow[and-cuda]==2.21.0 \\
    --hash=sha256:cc
"""


def rows():
    return licences.read_page(licences.PAGE.read_text(encoding="utf-8"))


def test_lock_is_read_with_versions(tmp_path):
    file = tmp_path / "lock.txt"
    file.write_text(LOCK)
    assert read_lock(file) == [("fastapi-offline", "1.7.7"), ("tensorflow", "2.21.0")]


# === Licences ===


@pytest.mark.parametrize("image", IMAGES)
def test_licences_are_those_of_the_locked_packages(image):
    listed = {(row.name, row.version) for row in rows() if image in row.images}
    assert listed == {(one.name, one.version) for one in read_lock(lock_file(image))}, "run make licences"


def test_page_is_what_the_command_writes_and_explains_unusual_licences():
    page = licences.PAGE.read_text(encoding="utf-8")
    by_hand, head, _ = page.partition(licences.HEAD)
    declared = {row.name: row.licence for row in rows()}
    assert head
    assert page.endswith(licences.table(declared)), "run make licences"
    for row in rows():
        licences.check_shipped(row)
    asking = {licence for licence in declared.values() if re.search(r"GPL|Proprietary", licence)}
    assert asking == {LGPL, NVIDIA}
    assert all(f"`{licence}`" in by_hand for licence in asking)
    assert {*licences.READ, *licences.REPLACEABLE} <= set(declared)


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "MIT OR AGPL-3.0-only", "LGPL-2.1-or-later AND MIT", LGPL, NVIDIA, ""]
)
def test_licence_that_may_not_be_shipped_is_refused(licence):
    with pytest.raises(SegdecError, match=r"thing 1.0 in serve, train"):
        licences.check_shipped(LicensedPackage("thing", "1.0", licence, ("serve", "train")))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "a", "license_expression": "mit or apache-2.0"}, "MIT OR Apache-2.0"),
        ({"name": "a", "license": "Apache License 2.0"}, "Apache-2.0"),
        ({"name": "Jinja2"}, "BSD-3-Clause"),
        ({"name": "Jinja2", "license_expression": "GPL-3.0-only"}, "GPL-3.0-only"),
    ],
)
def test_declared_licence_becomes_an_spdx_expression(metadata, expected):
    assert licences.licence_of(metadata) == expected


@pytest.mark.parametrize(
    "metadata", [{}, {"license": "BSD"}, {"license": "Copyright (c) 2015, all rights reserved"}]
)
def test_package_without_an_exact_licence_is_an_error(metadata):
    with pytest.raises(SegdecError, match="some-thing declares the licence"):
        licences.licence_of({"name": "Some_Thing", **metadata})


# === Bills of materials ===


@pytest.mark.slow  # it starts cyclonedx-py for each image
def test_bill_names_the_locked_packages_with_licences_and_hashes():
    from cyclonedx.schema import SchemaVersion  # takes a second, so not while tests are collected
    from cyclonedx.validation.json import JsonStrictValidator

    text = sbom.bill("serve")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    root, parts = bill["metadata"]["component"], bill["components"]
    assert (root["name"], root["version"]) == ("segdec-serve", __version__)
    assert bill["dependencies"][-1] == {"ref": "serve", "dependsOn": [part["bom-ref"] for part in parts]}
    locked = read_lock(lock_file("serve"))
    assert {part["purl"] for part in parts} == {f"pkg:pypi/{name}@{version}" for name, version in locked}
    expected = {row.name: row.licence for row in rows()}
    assert all(part["licenses"] == [{"expression": expected[part["name"]]}] for part in parts)
    files = [file for part in parts for file in part["externalReferences"][0]["hashes"]]
    assert len(files) == lock_file("serve").read_text().count("--hash=sha256:")


def test_package_that_the_page_of_licences_lacks_is_an_error(tmp_path, monkeypatch):
    lock = tmp_path / "lock.txt"
    lock.write_text("unlisted==1.0\n")
    monkeypatch.setattr(sbom, "lock_file", lambda _: lock)
    with pytest.raises(SegdecError, match="lacks unlisted as locked for serve"):
        sbom.bill("serve")


# === Audit ===


def advisory(name="GHSA-1", package="Fast_API", ecosystem="PyPI", versions=(), events=(), **more):
    affected = {"package": {"name": package, "ecosystem": ecosystem}, "versions": list(versions)}
    affected["ranges"] = [{"type": "ECOSYSTEM", "events": list(events)}]
    return {"id": name, "modified": "2026-01-02T03:04:05Z", "affected": [affected], **more}


def found(version, *known):
    return [line.rpartition(" ")[2] for line in audit.find([Package("fast-api", version)], known)]


@pytest.mark.parametrize(
    ("events", "inside", "outside"),
    [
        ([{"introduced": "0"}], ["0.0.1", "9.0"], []),
        ([{"introduced": "1.2"}, {"fixed": "1.10"}], ["1.2", "1.9", "1.10rc1"], ["1.1", "1.10", "2.0"]),
        ([{"introduced": "1.2"}, {"last_affected": "1.10"}], ["1.2", "1.10"], ["1.1", "1.10.1"]),
        (
            [{"fixed": "3.1"}, {"introduced": "3"}, {"introduced": "0"}, {"fixed": "2"}],
            ["1", "3.0"],
            ["2", "3.1"],
        ),
        ([{"introduced": "0"}, {"last_affected": "no-version"}], ["1.0"], []),
    ],
)
def test_ranges_of_an_advisory(events, inside, outside):
    for version in inside:
        assert found(version, advisory(events=events)) == ["GHSA-1"], version
    for version in outside:
        assert found(version, advisory(events=events)) == [], version


def test_listed_versions_are_compared_as_versions():
    listed = advisory(versions=["1.0-r1234", "1.0.0"])
    assert found("1.0", listed) == ["GHSA-1"]
    assert found("1.1", listed) == []


def test_audit_of_a_copy_names_what_is_known_and_its_age(tmp_path, monkeypatch, capsys):
    lock = tmp_path / "lock.txt"
    lock.write_text(LOCK)
    copy = tmp_path / "all.zip"
    known = advisory(package="tensorflow", events=[{"introduced": "2.20"}])
    with zipfile.ZipFile(copy, "w") as archive:
        archive.writestr("GHSA-1.json", json.dumps(known))
        withdrawn = {**known, "id": "GHSA-2", "withdrawn": "2026-01-01T00:00:00Z"}
        archive.writestr("GHSA-2.json", json.dumps(withdrawn))
    monkeypatch.setattr(audit, "lock_file", lambda _: lock)
    monkeypatch.setattr(sys, "argv", ["audit", str(copy)])
    with pytest.raises(SystemExit) as ended:
        audit.main()
    assert ended.value.code == 1
    assert capsys.readouterr().out.splitlines() == [
        "tensorflow 2.21.0: GHSA-1",
        "2 packages, 1 known vulnerabilities, by 1 advisories, the newest of 2026-01-02",
    ]


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ([], "holds no advisory for Python packages"),
        ([advisory(ecosystem="npm")], "holds no advisory for Python packages"),
        (None, "cannot be read as advisories"),
    ],
)
def test_copy_without_advisories_is_an_error(tmp_path, known, reason):
    copy = tmp_path / "copy"
    if known is None:
        copy.write_text("<html>")
    else:
        copy.mkdir()
        for one in known:
            (copy / f"{one['id']}.json").write_text(json.dumps(one))
    with pytest.raises(SegdecError, match=reason):
        audit.read_advisories(copy)


# === Notes ===

CHANGELOG = """\
# Changelog

## [0.2.0] - 2026-02-01

### Added

- A thing in
  two lines.

## 0.1.0 - 2026-01-01

## Unreleased-ideas
"""


def test_notes_are_the_section_of_the_version_or_an_error():
    assert notes.release_notes(CHANGELOG, "0.2.0") == "### Added\n\n- A thing in\n  two lines."
    for version in ("0.1.0", "0.3.0"):
        with pytest.raises(SegdecError, match=rf"nothing about '{version}'; it has 0.2.0, 0.1.0"):
            notes.release_notes(CHANGELOG, version)


def test_this_version_or_what_comes_next_has_notes():
    changelog = notes.CHANGELOG.read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)[1]
    assert newest in ("Unreleased", __version__)
    assert notes.release_notes(changelog, newest).startswith("### ")
