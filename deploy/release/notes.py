"""Prints the release notes of a version, its section of CHANGELOG.md.

python -m deploy.release.notes [VERSION]
"""

import argparse
import re
from pathlib import Path

from segdec import __version__
from segdec.errors import SegdecError
from segdec.runtime.cli import clean_exit

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def release_notes(changelog: str, version: str) -> str:
    """Returns what stands below the heading of `version`.

    Raises:
        SegdecError: There is no such heading, or nothing below it.
    """
    parts = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    sections = {part.split()[0].strip("[]"): part.partition("\n")[2].strip() for part in parts}
    if not sections.get(version):
        raise SegdecError(
            f"The changelog says nothing about '{version}'; it has {', '.join(sections) or 'no versions'}. "
            f"To release it, give 'Unreleased' the heading '{version} - YYYY-MM-DD'."
        )
    return sections[version]


def main() -> None:
    """Prints the notes of a version."""
    parser = argparse.ArgumentParser(description="Prints the release notes of a version.")
    parser.add_argument("version", nargs="?", default=__version__, metavar="VERSION")
    with clean_exit():
        print(release_notes(CHANGELOG.read_text(encoding="utf-8"), parser.parse_args().version))


if __name__ == "__main__":
    main()
