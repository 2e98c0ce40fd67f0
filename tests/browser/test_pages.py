"""All pages on large and small screens, with the real service."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, ViewportSize, expect

from segdec.images import encode_png
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SIZES, part_image, serving

PATHS = {
    "": "main",
    "line": "#defects img",
    "parts": "tbody tr",
    "parts/1": "#word",
    "trends": "#errors canvas",
    "plan": "#new-zone",
    "review": "main[data-picture=shown]",
}
"""Paths of the pages, each with an element that appears when it is complete."""
MORE_SIZES: dict[str, ViewportSize] = {
    **SIZES,
    "tablet": {"width": 768, "height": 1024},
    "small-phone": {"width": 360, "height": 640},
    "turned-phone": {"width": 844, "height": 390},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a service that has inspected good and defective parts."""
    with serving(tmp_path_factory.mktemp("service"), record_good_share=1) as service:
        with httpx.Client(base_url=service.address, headers={"Content-Type": "image/png"}) as http:
            for brightness in (100, 101, 200, 201):
                http.post("v1/inspect", content=encode_png(part_image(brightness))).raise_for_status()
        yield service.address


@pytest.mark.parametrize("path", PATHS)
def test_pages_open_without_a_rejected_request_and_do_not_scroll_sideways(visit, address, path):
    user = visit(address)
    user.page.context.add_init_script("localStorage.setItem('segdec.reviewer', 'Ada')")
    page = user.open(path)
    expect(page.locator(PATHS[path]).first).to_be_visible()
    for size, window in MORE_SIZES.items():
        user.check_sizes(path.replace("/", "-") or "inspect", {size: window})
        for verdict in page.locator("#verdicts button").all():
            expect(verdict).to_be_in_viewport(ratio=1)
    assert user.rejections == []


def is_expanded(page: Page) -> bool:
    """Returns what the accessibility tree says about the menu."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    (menu,) = (
        node for node in tree["nodes"] if node.get("name", {}).get("value") == "Pages" and is_button(node)
    )
    return next(one["value"]["value"] for one in menu["properties"] if one["name"] == "expanded")


def is_button(node: dict[str, Any]) -> bool:
    return node["role"]["value"] == "button"


def test_phones_have_a_menu_for_keyboard_and_touch(visit, address):
    page = visit(address, viewport=SIZES["phone"], has_touch=True).open("parts")
    menu, pages = page.locator("#menu"), page.locator("nav")
    expect(menu).to_be_in_viewport(ratio=1)
    expect(pages).to_be_hidden()
    assert not is_expanded(page)
    menu.press("Enter")
    expect(pages.locator("[aria-current=page]")).to_be_in_viewport(ratio=1)
    expect(pages.locator("[aria-current=page]")).to_have_text("Parts")
    assert is_expanded(page)
    page.keyboard.press("Tab")
    expect(pages.get_by_role("link", name="Inspect")).to_be_focused()
    page.keyboard.press("Escape")
    expect(pages).to_be_hidden()
    expect(menu).to_be_focused()
    menu.tap()
    expect(pages).to_be_visible()
    check_accessibility(page)
    page.touchscreen.tap(380, 800)
    expect(pages).to_be_hidden()
    menu.tap()
    pages.get_by_role("link", name="Trends").tap()
    expect(page.locator("h1")).to_have_text("Trends")


@pytest.mark.parametrize("path", PATHS)
def test_wide_windows_show_the_link_of_the_present_page(visit, address, path):
    page = visit(address, viewport=SIZES["large"]).open(path)
    expect(page.locator("#menu")).to_be_hidden()
    expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=1)
    box = page.locator("nav").bounding_box()
    assert 1880 < box["x"] + box["width"] < 1920  # at the right, on each page


def test_an_unknown_address_has_a_page_with_a_link(visit, address):
    page = visit(address, viewport=SIZES["phone"], locale="de").open("parts/1/nothing")
    expect(page.get_by_role("heading", name="Unter dieser Adresse gibt es keine Seite")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("link", name="Bilder prüfen").click()
    expect(page).to_have_url(address)
