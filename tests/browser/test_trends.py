"""The trends page in a real browser, with the real service and a stub network."""

import json
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import expect

from segdec.images import encode_png
from tests.browser.conftest import part_image, serving
from tests.browser.test_empty_pages import open_as

HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that has inspected three good and two defective parts; two are reviewed as good."""
    with serving(tmp_path_factory.mktemp("service"), record_good_share=1) as service:
        with httpx.Client(base_url=service.address, headers={"Content-Type": "image/png"}) as http:
            for number, brightness in enumerate((50, 51, 52, 210, 211)):
                station = HTML if number == 4 else "cam1"
                query = urlencode({"station": station, "metadata": json.dumps({"lot": f"L{number}"})})
                http.post(
                    f"v1/inspect?{query}", content=encode_png(part_image(brightness))
                ).raise_for_status()
            for number in (1, 4):
                http.put(
                    f"v1/records/{number}/review",
                    json={"label": "good", "reviewer": "Eva"},
                    headers={"If-Match": '"0"', "Content-Type": "application/json"},
                ).raise_for_status()
        yield service


def test_rates_errors_and_counts_are_shown(visit, service):
    page = visit(service.address).open("trends")
    expect(page.locator("#rate-summary")).to_have_text(
        "40.0 % defective: 2 of 5. Too few finished periods for control limits."
    )
    expect(page.locator("#missed-summary")).to_contain_text("Of 3 parts called good, at most ")
    alarms = "Of 2 parts called defective, about 100.0 % are good (50.0 % to 100.0 %)."
    expect(page.locator("#alarms-summary")).to_have_text(alarms)
    expect(page.locator("#more-reviews")).to_contain_text("more reviews of parts called good")
    expect(page.locator("#classes tbody tr")).to_have_count(1)
    page.get_by_text("Numbers").click()
    expect(page.locator("#periods tbody tr")).to_have_count(30)
    expect(page.locator("#periods tbody tr").last).to_contain_text("5240.0 %")
    expect(page.locator("#by-station tbody th")).to_have_text(["cam1", HTML])
    for plot in ("rate", "errors", "scores"):
        expect(page.locator(f"#{plot} canvas")).to_be_visible()


@pytest.mark.parametrize("role", ["quality", "engineer"])
def test_only_who_may_change_the_settings_has_a_link_to_them(visit, service, role):
    page = open_as(visit, service.address, "trends", role).page
    note = page.locator("#more-reviews")
    expect(note).to_contain_text("more reviews of parts called good")
    expect(note.locator("a")).to_be_visible(visible=role == "engineer")
    who_can = note.get_by_text("Somebody with the role engineer can do this: Change how many are sampled")
    expect(who_can).to_be_visible(visible=role == "quality")


def test_a_lot_is_shown_and_the_page_can_be_reloaded(visit, service):
    page = visit(service.address).open("trends")
    page.locator("[name=key]").fill("lot")
    page.locator("[name=value]").fill("L3")
    page.keyboard.press("Enter")
    for _ in range(2):
        expect(page.locator("#rate-summary")).to_have_text(
            "100.0 % defective: 1 of 1. Too few finished periods for control limits."
        )
        expect(page.locator("#no-errors")).to_contain_text("Remove the version and the metadata")
        page.reload()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#rate-summary")).to_have_text(
        "40.0 % defective: 2 of 5. Too few finished periods for control limits."
    )
    page.locator("[name=by]").select_option("month")
    expect(page).to_have_url(f"{service.address}trends?by=month")
    page.locator("[name=last]").fill("2020-01-01")
    expect(page.locator("#rate-summary")).to_have_text("Nothing was inspected.")
    page.locator("[name=first]").fill("2021-01-01")
    expect(page.get_by_role("alert")).to_contain_text("first is 2021-01-01, after last")


def test_reports_are_saved(visit, service):
    page = visit(service.address).open("trends?key=lot&value=L3")
    page.locator("#report-kind").select_option("lot")
    for name, start in (("PDF", b"%PDF-"), ("Excel", b"PK")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name).click()
        assert saved.value.path().read_bytes().startswith(start)
    assert saved.value.suggested_filename == "segdec-lot-L3.xlsx"
