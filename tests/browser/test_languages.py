"""The pages in German: no English text, and nothing clipped on screens of three sizes."""

import json
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import expect

from segdec.images import encode_png
from tests.browser.conftest import SIZES, part_image, serving
from tests.browser.german_page import check_german, english_texts
from tests.browser.test_log_in import add_people, log_in

PATHS = {
    "": "#model:not(:empty)",
    "line": "#defects img",
    "review": "main[data-picture=shown]",
    "parts": "tbody tr",
    "parts/1": "#changes li",
    "trends": "#errors canvas",
    "settings": ".row",
    "changes": "#changes li",
}
"""Paths of the pages, each with an element that appears when it is complete."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A service with parts of both kinds, one that was not inspected, and reviews."""
    with serving(tmp_path_factory.mktemp("service"), record_good_share=1) as service:
        with httpx.Client(base_url=service.address, headers={"Content-Type": "image/png"}) as http:
            for number in range(24):
                part = {
                    "station": "cam1",
                    "part_id": f"A17-{number}",
                    "metadata": json.dumps({"lot": "4711"}),
                }
                image = part_image(100 + number if number % 3 else 200 + number)
                http.post(f"v1/inspect?{urlencode(part)}", content=encode_png(image)).raise_for_status()
            http.post("v1/inspect?station=cam1", content=encode_png(part_image())[:100])
            for revision, label in enumerate(("good", "unsure")):
                sent = {"label": label, "reviewer": "Eva", "reason": "Staub"}
                headers = {"If-Match": f'"{revision}"', "Content-Type": "application/json"}
                http.put("v1/records/1/review", json=sent, headers=headers).raise_for_status()
        yield service.address


def open_german(visit, address, path):
    user = visit(address, viewport=SIZES["large"], locale="de-DE")
    user.page.context.add_init_script("localStorage.setItem('segdec.reviewer', 'Eva')")
    page = user.open(path)
    expect(page.locator(PATHS[path]).first).to_be_visible()
    return user


@pytest.mark.parametrize("path", PATHS)
def test_pages_have_no_english_text_and_nothing_is_clipped(visit, address, path):
    user = open_german(visit, address, path)
    check_german(user, path.replace("/", "-") or "inspect")


def test_an_inspected_photograph_is_described_in_german(visit, address):
    user = open_german(visit, address, "")
    user.drop(("part.png", encode_png(part_image())), ("broken.png", b"no picture"))
    page = user.page
    expect(page.locator("#uninspected-count")).to_have_text("1 nicht geprüft")
    expect(page.locator("#word")).to_have_text("Fehler: scratch")
    expect(page.locator("#reason")).to_contain_text("Der Score 0,")
    assert english_texts(page) == []
    user.screenshot("german-inspected", full_page=True)


def test_log_in_and_settings_are_in_german(visit, tmp_path):
    with serving(tmp_path) as service:
        add_people(service)
        page = visit(service.address, locale="de-DE").open("settings")
        expect(page.locator("#log-in-title")).to_have_text("Anmelden")
        assert english_texts(page) == []
        log_in(page, "anna")
        expect(page.locator("#user-rows tr").first).to_be_visible()
        page.locator("#account button").click()
        expect(page.locator("#account-role")).to_have_text("anna, Rolle: Administrator")
        assert english_texts(page) == []
        page.locator("#account-close").click()
        page.goto(f"{service.address}changes")
        expect(page.locator("#changes li").first).to_contain_text("anna hat sich angemeldet.")


def test_the_language_is_chosen_and_stays(visit, address):
    page = visit(address).open("parts")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("button", name="Suchen")).to_be_visible()
    page.goto(f"{address}trends")
    expect(page.locator("h1")).to_have_text("Trends")
    expect(page.get_by_role("button", name="Anzeigen")).to_be_visible()
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_role("button", name="Show", exact=True)).to_be_visible()


ERROR_OF = """async (path) => {
    const { request } = await import(new URL("static/shared/service.js", document.baseURI));
    return request(path, { credentials: {} }).catch((error) => error.message);
}"""


def test_errors_are_in_the_language_of_the_page_not_of_the_browser(visit, address):
    page = open_german(visit, address, "parts").page
    assert page.evaluate(ERROR_OF, "v1/records/999") == "Die Aufzeichnung hat dieses Teil nicht."
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    assert page.evaluate(ERROR_OF, "v1/records/999").startswith("There is no record 999.")


def test_a_page_without_its_language_file_is_in_english(visit, address):
    user = visit(address, locale="de-DE")
    user.page.route("**/languages/de.json", lambda route: route.abort())
    expect(user.open("parts").get_by_role("button", name="Search")).to_be_visible()


def test_a_report_is_in_the_language_of_the_page(visit, address):
    page = open_german(visit, address, "trends").page
    with page.expect_request("**/v1/reports/**") as asked, page.expect_download():
        page.get_by_role("button", name="PDF").click()
    assert "language=de" in asked.value.url
