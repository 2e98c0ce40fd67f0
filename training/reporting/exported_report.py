"""The report of a run for its exported model, if it is one self-contained file."""

import sys
from html.parser import HTMLParser
from pathlib import Path

from segdec.artifact import MAX_REPORT_BYTES, REPORT

EMBEDDED = ("#", "data:")
"""Beginnings of links that need no other file."""
LINKS = {"src", "srcset", "href", "xlink:href", "data", "poster", "action", "background"}


class _LinkFinder(HTMLParser):
    """Collects the links of a page that need another file."""

    def __init__(self) -> None:
        super().__init__()
        self.external: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        links = [value or "" for name, value in attrs if name in LINKS]
        self.external += [link for link in links if link and not link.startswith(EMBEDDED)]


def read_report(run: Path) -> bytes | None:
    """Returns the report of the run in this folder; None, with a note on stderr, if it cannot be exported.

    Without an evaluation there is no report and no note.
    """
    path = run / REPORT
    if not path.exists():
        return None
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        print(f"note: The model is exported without its report: {path}: {error}", file=sys.stderr)
        return None


def _read(path: Path) -> bytes:
    """Reads a page; raises a ValueError if it is too large, not UTF-8 or needs other files."""
    size = path.stat().st_size
    if size > MAX_REPORT_BYTES:
        raise ValueError(f"it has {size / 1e6:.1f} MB, expected at most {MAX_REPORT_BYTES / 1e6:.0f} MB")
    content = path.read_bytes()
    finder = _LinkFinder()
    finder.feed(content.decode())
    if finder.external:
        raise ValueError(f"it needs other files, the first is {finder.external[0]!r:.100}")
    return content
