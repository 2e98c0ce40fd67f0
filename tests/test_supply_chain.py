"""What goes with a release: licences, bills of materials, audit and notes."""

import json
import re
import zipfile

import pytest

from deploy.release import advisories, audit, licences, notes, sbom
from deploy.release.licences import LGPL, NVIDIA, LicensedPackage
from deploy.release.locks import IMAGES, LOCKS, Package, lock_file, read_lock
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


def test_page_says_of_each_licence_that_asks_for_more_than_a_notice():
    by_hand = licences.PAGE.read_text(encoding="utf-8").partition(licences.HEAD)[0]
    asking = {row.licence for row in rows() if re.search(r"GPL|Proprietary", row.licence)}
    assert asking == {LGPL, NVIDIA}
    assert all(f"`{licence}`" in by_hand for licence in asking)


def test_what_is_said_of_single_packages_is_said_of_locked_ones():
    assert {*licences.READ, *licences.REPLACEABLE} <= {row.name for row in rows()}


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "MIT OR AGPL-3.0-only", "LGPL-2.1-or-later AND MIT", LGPL, NVIDIA, ""]
)
def test_licence_that_may_not_be_shipped_is_refused(licence):
    with pytest.raises(SegdecError, match=r"thing 1.0 in serve, train"):
        licences.check_shipped(LicensedPackage("thing", "1.0", licence, ("serve", "train")))


def test_images_for_gpus_may_ship_what_is_nvidias():
    licences.check_shipped(LicensedPackage("nvidia-thing", "1.0", NVIDIA, ("serve-gpu", "train")))


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


# === Audit ===


def advisory(name="GHSA-1", package="Fast_API", ecosystem="PyPI", versions=(), events=(), **more):
    affected = {"package": {"name": package, "ecosystem": ecosystem}, "versions": list(versions)}
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}]
    return {
        "id": name,
        "modified": "2026-01-02T03:04:05Z",
        "affected": [{**affected, "ranges": ranges}],
        **more,
    }


def found(version, *known):
    return [one.advisory for one in advisories.find([Package("fast-api", version, ())], known)]


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


def test_same_package_locked_twice_is_looked_up_twice():
    twice = [Package("fast-api", version, ()) for version in ("2.0", "1.0")]
    (one,) = advisories.find(twice, [advisory(versions=["1.0"])])
    assert one.version == "1.0"


def written(folder, *known):
    for one in known:
        (folder / f"{one['id']}.json").write_text(json.dumps(one))
    return folder


def test_audit_of_a_copy_names_what_is_known_and_its_age(tmp_path, capsys):
    lock = tmp_path / "lock.txt"
    lock.write_text(LOCK)
    copy = tmp_path / "all.zip"
    known = advisory(package="tensorflow", events=[{"introduced": "2.20"}])
    with zipfile.ZipFile(copy, "w") as archive:
        archive.writestr("GHSA-1.json", json.dumps(known))
        archive.writestr(
            "GHSA-2.json", json.dumps({**known, "id": "GHSA-2", "withdrawn": "2026-01-01T00:00:00Z"})
        )
    assert audit.audit(copy, [lock])
    assert capsys.readouterr().out.splitlines() == [
        "tensorflow 2.21.0: GHSA-1",
        "2 packages, 1 known vulnerabilities, by 1 advisories, the newest of 2026-01-02",
    ]


def test_audit_that_finds_nothing_says_of_how_much(tmp_path, capsys):
    assert audit.audit(written(tmp_path, advisory(versions=["1.0"])), audit.LOCKS) == []
    assert re.match(r"\d\d+ packages, 0 known vulnerabilities, by 1 advisories", capsys.readouterr().out)


@pytest.mark.parametrize(
    "known", [[], [advisory(ecosystem="npm")], [advisory(withdrawn="2026-01-01T00:00:00Z")]]
)
def test_copy_without_advisories_is_an_error(tmp_path, known):
    with pytest.raises(SegdecError, match="holds no advisory for Python packages"):
        advisories.read_advisories(written(tmp_path, *known))


def test_copy_that_is_no_zip_is_an_error(tmp_path):
    (tmp_path / "all.zip").write_text("<html>")
    for copy in (tmp_path / "all.zip", tmp_path / "missing.zip"):
        with pytest.raises(SegdecError, match="cannot be read as advisories"):
            advisories.read_advisories(copy)


def test_service_that_leaves_packages_out_is_no_clean_audit(tmp_path, monkeypatch, capsys):
    answer = {
        "dependencies": [
            {"name": "tensorflow", "version": "2.21.0", "vulns": [{"id": "PYSEC-1"}]},
            {"name": "fastapi-offline", "skip_reason": "not found"},
        ]
    }
    monkeypatch.setattr(audit, "ask_service", lambda _: audit.read_answer(json.dumps(answer)))
    lock = tmp_path / "lock.txt"
    lock.write_text(LOCK)
    with pytest.raises(SegdecError, match=r"1 of 2 packages were not checked: .* fastapi-offline"):
        audit.audit(None, [lock])
    assert capsys.readouterr().out == "tensorflow 2.21.0: PYSEC-1\n"


def test_service_that_cannot_be_reached_is_one_line(tmp_path, monkeypatch):
    for name in ("PIP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens: nothing leaves the machine
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SegdecError, match=r"Nothing was checked.*make audit ADVISORIES=all\.zip") as caught:
        audit.ask_service([LOCKS / "build.txt"])
    assert "\n" not in str(caught.value)


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


def test_notes_are_the_section_of_the_version():
    assert notes.release_notes(CHANGELOG, "0.2.0") == "### Added\n\n- A thing in\n  two lines."


@pytest.mark.parametrize("version", ["0.1.0", "0.3.0"])
def test_version_without_notes_is_an_error(version):
    with pytest.raises(SegdecError, match=rf"nothing about '{version}'; it has 0.2.0, 0.1.0"):
        notes.release_notes(CHANGELOG, version)


def test_this_version_or_what_comes_next_has_notes():
    changelog = notes.CHANGELOG.read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)[1]
    assert newest in ("Unreleased", __version__)
    assert notes.release_notes(changelog, newest).startswith("### ")
