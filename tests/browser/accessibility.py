"""What axe-core finds on a page against WCAG 2.2, levels A and AA."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
"""Of the rules."""


def check_accessibility(page: Page) -> None:
    """Asserts that the page, as it is now, violates no rule."""
    found = Axe().run(page, options={"runOnly": TAGS, "resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()
