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
    """Lowest role of the users who have a link to it; None: any."""

    parent: str | None = None
    """Path of the page with the link that is marked as present; None: its own."""


INSPECTION = PageEntry("/", "Inspect", "inspect")
LINE = PageEntry("/line", "Line", "line")
REVIEW = PageEntry("/review", "Review", "review", "reviewer")
PARTS = PageEntry("/parts", "Parts", "parts")
PART = PageEntry("/parts/{record_id}", "Part", "part", parent=PARTS.path)
TRENDS = PageEntry("/trends", "Trends", "trends", "quality")
PLAN = PageEntry("/plan", "Plan", "plan", "quality")
DATA_SETS = PageEntry("/datasets", "Data sets", "datasets", "reviewer")
LABEL = PageEntry("/label", "Label", "label", "reviewer", parent=DATA_SETS.path)
TRAIN = PageEntry("/train", "Train", "train", "quality")
MODELS = PageEntry("/models", "Models", "models", "quality")
SETTINGS = PageEntry("/settings", "Settings", "settings", "engineer")
CHANGES = PageEntry("/changes", "Changes", "changes", "quality")
NOT_FOUND = PageEntry("", "Page not found", "not_found")
API = PageEntry("/docs", "API", "docs", "engineer")
GROUPS = {
    "Inspection": (INSPECTION, LINE),
    "Quality": (REVIEW, PARTS, TRENDS, PLAN),
    "Training": (DATA_SETS, TRAIN, MODELS),
    "Administration": (SETTINGS, CHANGES, API),
}
"""The pages with a link on each, by what people do there."""
RECORD_PAGES = tuple(page for group in GROUPS.values() for page in group if page != API)
"""The pages with a link on each, if a record is kept."""
