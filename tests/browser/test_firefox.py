"""The pages in Firefox: they load, the menu opens, a photograph is inspected, and a defect is labelled."""

import shutil

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from api.http.page_list import RECORD_PAGES
from segdec.images import encode_png
from tests.browser.conftest import SIZES, part_image, serving
from tests.browser.test_label import HEIGHT, LARGE, WIDTH, Labels, drag, save, shows

PATHS = (
    *(page.path.removeprefix("/") for page in RECORD_PAGES),
    "docs",
    "parts/1",
    "datasets?id=1",
    "nothing",
)
"""Of all pages but Label, which has a test of its own."""


@pytest.fixture(scope="module")
def browser():
    """Firefox as Debian ships it, driven by WebDriver BiDi."""
    program = shutil.which("firefox-esr")
    if program is None:
        pytest.skip("Firefox is not installed. Install Debian's package firefox-esr.")
    with sync_playwright() as playwright:
        browser = playwright.firefox.launch(channel="moz-firefox", executable_path=program)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    """Of a service with an inspected part."""
    folder = tmp_path_factory.mktemp("service")
    with (
        serving(folder, record_good_share=1, local_role="engineer") as service,
        httpx.Client(base_url=service.address) as http,
    ):
        http.post("v1/inspect", content=encode_png(part_image()), headers={"Content-Type": "image/png"})
        labels = Labels(service, http)
        labels.add(2)
        yield labels


def test_every_page_loads_without_an_error(visit, labels):
    user = visit(labels.address, viewport=SIZES["large"])
    for path in PATHS:
        user.open(path).wait_for_load_state("networkidle")
        assert user.errors == [], path
    assert [answer for answer in user.rejections if not answer.endswith("/nothing")] == []


def test_the_menu_of_a_phone_opens_and_closes(visit, labels):
    page = visit(labels.address, viewport=SIZES["phone"]).open("parts")
    menu, pages = page.locator("#menu"), page.locator("nav")
    expect(pages).to_be_hidden()
    menu.click()
    expect(pages.locator("[aria-current=page]")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(pages).to_be_hidden()
    menu.click()
    pages.get_by_role("link", name="Trends").click()
    expect(page.locator("h1")).to_have_text("Trends")


def test_a_dropped_photograph_is_inspected(visit, labels):
    user = visit(labels.address)
    user.open()
    user.drop(("part.png", encode_png(part_image())))
    expect(user.page.locator("#word")).to_have_text("Defect: scratch")


def test_a_drawn_defect_is_saved_with_its_mask(visit, labels):
    page = visit(labels.address, viewport=LARGE).open(f"label?data_set={labels.id}")
    shows(page, "0.png")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    save(page)
    shows(page, "1.png")
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected[8:14, 10:20] = 1
    np.testing.assert_array_equal(labels.mask(0), expected)
