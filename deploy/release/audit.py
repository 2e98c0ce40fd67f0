"""Looks up known vulnerabilities in the packages of the images offline. Exits with 1 if there are any.

    python -m deploy.release.audit all.zip

It reads a copy of OSV's advisories by the rules of https://ossf.github.io/osv-schema/#evaluation for the
ecosystem PyPI; pip-audit can only query web services.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from deploy.release.locks import IMAGES, Package, lock_file, read_lock
from segdec.errors import SegdecError
from segdec.runtime.cli import clean_exit

Advisory = dict[str, Any]
BEFORE_ALL = Version("0.dev0")


def read_advisories(copy: Path) -> list[Advisory]:
    """Reads the advisories for Python packages that were not withdrawn, from a folder or a zip file.

    Raises:
        SegdecError: There are none, or a file is not JSON.
    """
    try:
        folder = copy if copy.is_dir() else zipfile.Path(copy)
        files = [file for file in folder.iterdir() if file.name.endswith(".json")]
        records = [json.loads(file.read_bytes()) for file in files]
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        message = f"{copy} cannot be read as advisories ({error}). Expected OSV's all.zip."
        raise SegdecError(message) from error
    valid = [one for one in records if "withdrawn" not in one and any(_affected(one))]
    if not valid:
        raise SegdecError(f"{copy} holds no advisory for Python packages. Expected OSV's all.zip for PyPI.")
    return valid


def find(packages: Iterable[Package], advisories: Iterable[Advisory]) -> list[str]:
    """Returns a line for each known vulnerability of a package, in order."""
    versions: dict[str, set[str]] = {}
    for package in packages:
        versions.setdefault(package.name, set()).add(package.version)
    found = {
        f"{name} {version}: {advisory['id']}"
        for advisory in advisories
        for name, affected in _affected(advisory)
        for version in versions.get(name, ())
        if _contains(affected, Version(version))
    }
    return sorted(found)


def _affected(advisory: Advisory) -> Iterator[tuple[str, Advisory]]:
    for affected in advisory.get("affected", []):
        package = affected.get("package", {})
        if package.get("ecosystem") == "PyPI":
            yield canonicalize_name(package["name"]), affected


def _contains(affected: Advisory, version: Version) -> bool:
    listed = version in (_version(text) for text in affected.get("versions", []))
    ranges = [one["events"] for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM"]
    return listed or any(_within(events, version) for events in ranges)


def _within(events: list[dict[str, str]], version: Version) -> bool:
    """Whether the last event up to `version` opened the range."""
    happened = [(_version(text), kind) for event in events for kind, text in event.items()]
    inside = False
    for at, kind in sorted((at or BEFORE_ALL, kind) for at, kind in happened if at or kind == "introduced"):
        if kind == "introduced" and version >= at:
            inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def _version(text: str) -> Version | None:
    """None for OSV's `0`, before all, and for what PEP 440 does not know: rather a finding too many."""
    try:
        return None if text == "0" else Version(text)
    except InvalidVersion:
        return None


def main() -> None:
    """Prints the known vulnerabilities and the age of the copy; exits with 1 if there are any."""
    parser = argparse.ArgumentParser(description="Looks for known vulnerabilities in what the images ship.")
    parser.add_argument("advisories", type=Path, metavar="COPY", help="OSV's all.zip for PyPI, or a folder")
    with clean_exit():
        advisories = read_advisories(parser.parse_args().advisories)
        packages = {package for image in (*IMAGES, "build") for package in read_lock(lock_file(image))}
        found = find(packages, advisories)
        newest = max(advisory["modified"] for advisory in advisories)[:10]
        source = f"{len(advisories)} advisories, the newest of {newest}"
        print(*found, f"{len(packages)} packages, {len(found)} known vulnerabilities, by {source}", sep="\n")
        sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
