"""What is wrong with a page in German: English texts, and texts that are cut off."""

import re
from functools import cache

from playwright.sync_api import Page

from api.messages.catalogues import read_catalogues
from tests.browser.conftest import SIZES, Visit

WORD = re.compile(r"[^\W\d_]{2}")
COLLECT = """() => {
    const found = [];
    const shown = NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT;
    const walker = document.createTreeWalker(document.documentElement, shown);
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
        if (node.nodeType === Node.ELEMENT_NODE) {
            for (const name of ["title", "placeholder", "aria-label", "alt"]) {
                if (node.translate) found.push(node.getAttribute(name) ?? "");
            }
        } else if (node.parentElement.translate && !node.parentElement.closest("script, noscript")) {
            found.push(node.data.trim());
        }
    }
    return found;
}"""
"""All texts of a page and the attributes that are texts, except where `translate="no"`."""
CLIPPED = """() => {
    const parts = document.querySelectorAll("article, section, button, label, h1, h2, th, summary, a, dt");
    const isClipped = (part) => {
        const { display, overflowX } = getComputedStyle(part);
        const canBe = part.checkVisibility() && display !== "inline" && overflowX !== "auto";
        return canBe && part.scrollWidth > part.clientWidth + 1;
    };
    return [...parts].filter(isClipped).map((part) => part.outerHTML.slice(0, 200));
}"""
"""Parts of the page whose content is wider than they are."""


@cache
def _english() -> re.Pattern[str]:
    """Returns a pattern of all texts that the German catalogue translates."""
    texts = read_catalogues()["de"].texts
    keys = [text for text, translated in texts.items() if text != translated]
    numbered = (re.sub(r"\\\{(count|total)\\\}", r"[\\d.,]+", re.escape(text)) for text in keys)
    patterns = [re.sub(r"\\\{\w+\\\}", "(.+)", text) for text in numbered]
    return re.compile("|".join(patterns), re.DOTALL)


def check_german(user: Visit, name: str) -> None:
    """Asserts that a page has no English text, and clips none in windows of three sizes."""
    assert english_texts(user.page) == []
    for size, window in SIZES.items():
        user.check_sizes(f"german-{name}", {size: window}, full_page=True)
        assert user.page.evaluate(CLIPPED) == [], size


def english_texts(page: Page) -> list[str]:
    """Returns the English texts of a page in German."""
    assert page.locator("html").get_attribute("lang") == "de"
    texts = [text for text in page.evaluate(COLLECT) if WORD.search(text)]
    assert len(texts) > 15
    return [text for text in texts if _english().fullmatch(text)]
