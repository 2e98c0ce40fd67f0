"""Known vulnerabilities from a copy of OSV's advisories: JSON files in a folder or a zip file.

The rules are those of https://ossf.github.io/osv-schema/#evaluation for the ecosystem PyPI.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from deploy.release.locks import Package
from segdec.errors import SegdecError

Advisory = dict[str, Any]
BEFORE_ALL = Version("0.dev0")


@dataclass(frozen=True, order=True)
class Vulnerability:
    """A locked package with a known vulnerability."""

    name: str
    version: str
    advisory: str


def read_advisories(copy: Path) -> list[Advisory]:
    """Reads the advisories for Python packages that were not withdrawn.

    Raises:
        SegdecError: There are none, or a file is not JSON.
    """
    try:
        records = [json.loads(text) for text in _texts(copy)]
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        message = f"{copy} cannot be read as advisories ({error}). Expected OSV's all.zip."
        raise SegdecError(message) from error
    kept = [one for one in records if "withdrawn" not in one and any(_affected(one))]
    if not kept:
        raise SegdecError(f"{copy} holds no advisory for Python packages. Expected OSV's all.zip for PyPI.")
    return kept


def find(packages: Iterable[Package], advisories: Iterable[Advisory]) -> list[Vulnerability]:
    """Finds what is known of the packages, in order."""
    by_name: dict[str, list[Advisory]] = {}
    for advisory in advisories:
        for name, affected in _affected(advisory):
            by_name.setdefault(name, []).append({"id": advisory["id"], **affected})
    found = {
        Vulnerability(package.name, package.version, affected["id"])
        for package in packages
        for affected in by_name.get(package.name, [])
        if _hits(affected, Version(package.version))
    }
    return sorted(found)


def _texts(copy: Path) -> Iterator[bytes]:
    if copy.is_dir():
        yield from (path.read_bytes() for path in sorted(copy.rglob("*.json")))
        return
    with zipfile.ZipFile(copy) as archive:
        yield from (archive.read(name) for name in archive.namelist() if name.endswith(".json"))


def _affected(advisory: Advisory) -> Iterator[tuple[str, Advisory]]:
    for affected in advisory.get("affected", []):
        package = affected.get("package", {})
        if package.get("ecosystem") == "PyPI":
            yield canonicalize_name(package["name"]), affected


def _hits(affected: Advisory, version: Version) -> bool:
    listed = version in (_version(text) for text in affected.get("versions", []))
    ranges = [one["events"] for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM"]
    return listed or any(_within(events, version) for events in ranges)


def _within(events: list[dict[str, str]], version: Version) -> bool:
    """Whether the last thing that happened up to `version` opened the range."""
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
