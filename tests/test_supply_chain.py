"""What goes with a release: licences, bills of materials, audit and notes."""

import json
import re

import pytest

from deploy.release import licences, notes, sbom
from deploy.release.licences import NVIDIA, Row
from deploy.release.locks import IMAGES, lock_file, read_lock
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


def test_lock_is_read_with_versions_and_hashes(tmp_path):
    file = tmp_path / "lock.txt"
    file.write_text(LOCK)
    assert [(one.name, one.version, one.sha256) for one in read_lock(file)] == [
        ("fastapi-offline", "1.7.7", ("aa", "bb")),
        ("tensorflow", "2.21.0", ("cc",)),
    ]


# === Licences ===


@pytest.mark.parametrize("image", IMAGES)
def test_licences_are_those_of_the_locked_packages(image):
    listed = {(row.name, row.version) for row in rows() if image in row.images}
    assert listed == {(one.name, one.version) for one in read_lock(lock_file(image))}, "run make licences"


def test_page_is_what_the_command_writes():
    declared = {row.name: row.licence for row in rows()}
    page = licences.PAGE.read_text(encoding="utf-8")
    assert page.partition(licences.HEAD)[2]
    assert page.endswith(licences.table(declared)), "run make licences"


def test_every_licence_may_be_shipped():
    assert rows()
    for row in rows():
        licences.check_shipped(row)


def test_what_is_said_of_single_packages_is_said_of_locked_ones():
    assert set(licences.READ) <= {row.name for row in rows()}


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "MIT OR AGPL-3.0-only", "LGPL-2.1-or-later AND MIT", NVIDIA, ""]
)
def test_licence_that_may_not_be_shipped_is_refused(licence):
    with pytest.raises(SegdecError, match=r"thing 1.0 in serve, train"):
        licences.check_shipped(Row("thing", "1.0", licence, ("serve", "train")))


def test_images_for_gpus_may_ship_what_is_nvidias():
    licences.check_shipped(Row("nvidia-thing", "1.0", NVIDIA, ("serve-gpu", "train")))


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


@pytest.mark.parametrize("image", IMAGES)
def test_bill_names_the_locked_packages_with_licences_and_hashes(image):
    bill = json.loads(sbom.bill(image))  # valid, or it would have been refused
    root = bill["metadata"]["component"]
    assert (root["name"], root["version"]) == (f"segdec-{image}", __version__)
    listed = {
        (part["name"], part["version"], part["licenses"][0]["expression"], part["purl"])
        for part in bill["components"]
    }
    assert listed == {
        (row.name, row.version, row.licence, f"pkg:pypi/{row.name}@{row.version}")
        for row in rows()
        if image in row.images
    }
    for part, package in zip(bill["components"], read_lock(lock_file(image)), strict=True):
        (files,) = part["externalReferences"]
        assert sorted(one["content"] for one in files["hashes"]) == sorted(package.sha256)


def test_package_that_the_page_of_licences_lacks_is_an_error(tmp_path, monkeypatch):
    page = tmp_path / "licences.md"
    lines = licences.PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
    page.write_text("".join(line for line in lines if not line.startswith("| tqdm ")))
    monkeypatch.setattr(sbom, "PAGE", page)
    with pytest.raises(SegdecError, match="lacks tqdm as locked for serve"):
        sbom.bill("serve")


def test_bill_that_breaks_the_schema_is_refused(tmp_path, monkeypatch):
    lock = tmp_path / "serve.txt"
    lock.write_text("tqdm==4.70.1 --hash=sha256:no-hash\n")
    monkeypatch.setattr(sbom, "lock_file", lambda _: lock)
    with pytest.raises(SegdecError, match="no valid CycloneDX"):
        sbom.bill("serve")


# === Notes ===

CHANGELOG = """\
# Changelog

## [0.2.0] - 2026-02-01

### Added

- A thing that
  goes on.

## 0.1.0 - 2026-01-01

## Unreleased-ideas
"""


def test_notes_are_the_section_of_the_version():
    assert notes.release_notes(CHANGELOG, "0.2.0") == "### Added\n\n- A thing that\n  goes on."


@pytest.mark.parametrize("version", ["0.1.0", "0.3.0"])
def test_version_without_notes_is_an_error(version):
    with pytest.raises(SegdecError, match=rf"nothing about '{version}'; it has 0.2.0, 0.1.0"):
        notes.release_notes(CHANGELOG, version)


def test_this_version_or_what_comes_next_has_notes():
    changelog = notes.CHANGELOG.read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)[1]
    assert newest in ("Unreleased", __version__)
    assert notes.release_notes(changelog, newest).startswith("### ")
