"""The pages for people: their addresses, names and roles."""

from typing import NamedTuple

from api.roles import UserRole


class PageEntry(NamedTuple):
    """A page of this service."""

    path: str
    name: str
    folder: str
    """Folder in `static` with its files, among them `index.html`: what it adds to `template.html`."""

    role: UserRole | None = None
    """Role of a user that the page needs; None: any."""


INSPECTION = PageEntry("/", "Inspect", "inspect")
REVIEW = PageEntry("/review", "Review", "review", "reviewer")
LINE = PageEntry("/line", "Line", "line")
PARTS = PageEntry("/parts", "Parts", "parts")
DATA_SETS = PageEntry("/datasets", "Data sets", "datasets", "reviewer")
TRENDS = PageEntry("/trends", "Trends", "trends", "quality")
TRAIN = PageEntry("/train", "Train", "train", "reviewer")
MODELS = PageEntry("/models", "Models", "models")
SETTINGS = PageEntry("/settings", "Settings", "settings")
CHANGES = PageEntry("/changes", "Changes", "changes", "quality")
LABEL = PageEntry("/label", "Label", "label", "reviewer")
PART = PageEntry("/parts/{record_id}", "Part", "part")
API = PageEntry("/docs", "API", "docs")
RECORD_PAGES = (INSPECTION, LINE, REVIEW, PARTS, TRENDS, DATA_SETS, TRAIN, MODELS, SETTINGS, CHANGES)
"""The pages with a link to each, if a record is kept."""
