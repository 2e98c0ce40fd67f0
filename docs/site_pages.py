"""Adds pages of the repository to the documentation site, and adapts their links."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "index.md": "README.md",
    "deployment.md": "deploy/README.md",
    "design.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
}
"""Page on the site → file in the repository."""
LINK = re.compile(
    r"\[(?P<label>[^\]\n]*)\]\((?!https?:|#|mailto:)(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
)
PLACES = {source: name for name, source in PAGES.items()}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages."""
    for name, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=translate(text, source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adapts the links of the pages in docs."""
    return markdown if page.file.src_uri in PAGES else translate(markdown, f"docs/{page.file.src_uri}")


def translate(text: str, source: str) -> str:
    """Returns the text of `source` with its links to files of the repository changed to links of the site.

    If the label of a link is the file's name, it becomes the page's title. A link to a file that is not on
    the site becomes plain text.
    """

    def link(found: re.Match[str]) -> str:
        label, target, anchor = found["label"], found["target"], found["anchor"] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if label.endswith(".md"):
            label = (ROOT / file).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        if file in PLACES:
            return f"[{label}]({PLACES[file]}{anchor})"
        if file.startswith("docs/"):
            return f"[{label}]({file.removeprefix('docs/')}{anchor})"
        return label

    return LINK.sub(link, text)
