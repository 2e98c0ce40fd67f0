"""Looks up known vulnerabilities in the packages of the images. Exits with 1 if there are any.

    python -m deploy.release.audit [--advisories all.zip]

Without advisories, pip-audit queries the package index's public service. No answer, or none for a package, is
an error: a package that was not checked is not a safe one.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from deploy.release.advisories import Vulnerability, find, read_advisories
from deploy.release.locks import IMAGES, lock_file, read_lock
from segdec.errors import SegdecError
from segdec.runtime.cli import clean_exit

LOCKS = [lock_file(image) for image in (*IMAGES, "build")]

OFFLINE = (
    "Without a network take PyPI/all.zip of OSV (https://google.github.io/osv.dev/data) from a machine "
    "that has one: make audit ADVISORIES=all.zip"
)


def ask_service(locks: list[Path]) -> tuple[list[Vulnerability], list[str]]:
    """Queries pip-audit's service; returns vulnerabilities and the packages that it does not know.

    Raises:
        SegdecError: It gave no answer.
    """
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip"]
    command += ["--progress-spinner", "off", "--format", "json"]
    command += [word for lock in locks for word in ("-r", str(lock))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return read_answer(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SegdecError(f"Nothing was checked: pip-audit got no answer ({last:.120}). {OFFLINE}") from None


def read_answer(text: str) -> tuple[list[Vulnerability], list[str]]:
    """Reads the vulnerabilities and the skipped packages in the output of pip-audit.

    Raises:
        ValueError: It printed no JSON.
    """
    packages = json.loads(text)["dependencies"]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    known = [(one, vulnerability) for one in packages for vulnerability in one.get("vulns", [])]
    return [Vulnerability(one["name"], one["version"], found["id"]) for one, found in known], skipped


def audit(copy: Path | None, locks: list[Path]) -> list[Vulnerability]:
    """Prints the known vulnerabilities of the locked packages, and the source.

    Raises:
        SegdecError: Not all of them could be checked.
    """
    packages = {package for lock in locks for package in read_lock(lock)}
    skipped: list[str] = []
    if copy:
        advisories = read_advisories(copy)
        newest = max(advisory["modified"] for advisory in advisories)
        source = f"{len(advisories)} advisories, the newest of {newest[:10]}"
        vulnerabilities = find(packages, advisories)
    else:
        source = "pip-audit's service"
        vulnerabilities, skipped = ask_service(locks)
    for one in vulnerabilities:
        print(f"{one.name} {one.version}: {one.advisory}")
    if skipped:
        counts = f"{len(skipped)} of {len(packages)} packages were not checked"
        raise SegdecError(f"{counts}: {source} does not know {', '.join(skipped[:3])} … {OFFLINE}")
    print(f"{len(packages)} packages, {len(vulnerabilities)} known vulnerabilities, by {source}")
    return vulnerabilities


def main() -> None:
    """Looks for vulnerabilities and prints them; leaves with 1 if there are any."""
    parser = argparse.ArgumentParser(description="Looks for known vulnerabilities in what the images ship.")
    parser.add_argument("--advisories", type=Path, metavar="COPY", help="OSV's all.zip for PyPI, or a folder")
    with clean_exit():
        sys.exit(1 if audit(parser.parse_args().advisories, LOCKS) else 0)


if __name__ == "__main__":
    main()
