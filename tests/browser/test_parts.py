"""The search page and the page of a part in a real browser, with the real service and a stub network."""

import io
import json
import re
import zipfile
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlencode, urlsplit
from zoneinfo import ZoneInfo

import httpx
import pytest
from playwright.sync_api import expect

from segdec.images import encode_png
from tests.browser.conftest import KEY, SCREENSHOTS, part_image, serving
from tests.browser.test_log_in import add_people, log_in

SCRIPT = "<img src=x onerror=alert(1)>"
EXPORTS_FULL = {"status": 503, "code": "exports_full", "detail": "Wait for another export."}
CHOOSE_FILE = """() => {
    window.written = new Promise((resolve) => {
        window.showSaveFilePicker = async ({ suggestedName }) => {
            const pieces = [];
            const write = (piece) => pieces.push(piece);
            const close = async () => resolve([suggestedName, await new Blob(pieces).text()]);
            return { createWritable: async () => new WritableStream({ write, close }) };
        };
    });
    return null;
}"""
"""Chooses a file in the memory, instead of the dialog of the browser."""


def inspect(http, image, part, station="cam1", **metadata):
    query = urlencode({"part_id": part, "station": station, "metadata": json.dumps(metadata)})
    headers = {"Content-Type": "image/png"}
    return http.post(f"v1/inspect?{query}", content=encode_png(image), headers=headers).json()["record_id"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that has inspected toy parts of two lots; part 4711 three times, with a review."""
    with serving(tmp_path_factory.mktemp("service"), record_good_share=1) as service:
        with httpx.Client(base_url=service.address) as http:
            for number in range(6):
                image = service.predictor.add_toy_part(number)
                inspect(http, image, "4711" if number < 3 else f"47{number}", lot=f"L{number % 2}")
            inspect(http, part_image(90), "good", "cam2")
            inspect(http, part_image(210), SCRIPT, SCRIPT, **{SCRIPT: SCRIPT})
            service.predictor.threshold = 0.3
            inspect(http, service.predictor.add_toy_part(9, peak=100), "faint")
            service.predictor.threshold = 0.5
            sent = {"label": "good", "reviewer": "Eva", "reason": f"dust {SCRIPT}"}
            http.put("v1/records/2/review", json=sent, headers={"If-Match": '"0"'}).raise_for_status()
        yield service


def parts(page):
    return page.locator("tbody tr td:first-child").all_inner_texts()


def search(page, **values):
    for name, value in values.items():
        page.locator(f"[name={name}]").fill(value)
    page.keyboard.press("Enter")


def test_stations_are_suggested_while_one_types_if_there_are_too_many(visit, service):
    asked = []

    def answer(route):
        text = parse_qs(urlsplit(route.request.url).query).get("station", [""])[0]
        asked.append(text)
        stations = ["hall7-cam42"] if text else [f"cam{number}" for number in range(1000)]
        route.fulfill(json={"stations": stations, "labels": [], "reviewers": [], "metadata": []})

    user = visit(service.address)
    user.page.route("**/v1/records/names*", answer)
    page = user.open("parts")
    expect(page.locator("#stations option")).to_have_count(1000)
    page.locator("[name=station]").fill("cam42")
    expect(page.locator("#stations option")).to_have_count(1)
    assert page.locator("#stations option").get_attribute("value") == "hall7-cam42"
    assert asked == ["", "cam42"]


def test_a_scanned_part_is_found_and_opened(visit, service):
    page = visit(service.address).open("parts")
    expect(page.locator("#summary")).to_have_text("9 inspections")
    page.keyboard.type("4711\n")  # a scanner types into the field that has the focus
    expect(page.locator("#summary")).to_have_text("3 inspections")
    page.keyboard.type("473\n")  # and the next part replaces it
    expect(page.locator("#summary")).to_have_text("1 inspection")
    page.get_by_role("link", name="473").click()
    expect(page.locator("#part")).to_have_text("473")


def test_a_search_combines_facts_and_can_be_reloaded(visit, service):
    page = visit(service.address).open("parts")
    search(page, key="lot", value="L1", station="cam1")
    expect(page.locator("#summary")).to_have_text("3 inspections")
    assert parts(page) == ["475", "473", "4711"]
    page.reload()
    expect(page.locator("#summary")).to_have_text("3 inspections")
    page.goto(f"{service.address}parts?metadata=lot:L1&station=cam1")
    expect(page.locator("#summary")).to_have_text("3 inspections")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#summary")).to_have_text("9 inspections")
    page.locator("[name=verdict]").select_option("good")
    expect(page.locator("#summary")).to_have_text("4 inspections")
    search(page, since="2999-01-01T00:00")
    expect(page.locator("#summary")).to_have_text("No inspection matches this search.")
    expect(page.locator("#none")).not_to_contain_text("whole number")
    search(page, part_id="471")
    expect(page.locator("#none")).to_contain_text("A part is found by its whole number only.")


def test_results_are_shown_as_photographs_and_saved(visit, service):
    user = visit(service.address)
    page = user.open("parts?part_id=4711")
    page.get_by_label("Photographs", exact=True).check()
    expect(page.locator("#pictures img")).to_have_count(3)
    expect(page.locator("#table")).to_be_hidden()
    user.check_sizes("parts-pictures")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    name = saved.value.suggested_filename
    assert re.fullmatch(r"segdec-inspections-until-\d{4}-\d\d-\d\d-\d{4}-4711\.csv", name)
    assert len(saved.value.path().read_text().splitlines()) == 4
    with page.expect_download() as saved:
        page.get_by_role("button", name="COCO").click()
    with zipfile.ZipFile(io.BytesIO(saved.value.path().read_bytes())) as file:
        assert file.namelist() == ["images/3.png", "images/2.png", "images/1.png", "annotations.json"]


def test_a_download_that_fails_is_explained(visit, service):
    user = visit(service.address)
    user.page.route("**/export?**", lambda route: route.fulfill(status=503, json=EXPORTS_FULL))
    page = user.open("parts")
    expect(page.locator("#summary")).to_have_text("9 inspections")
    page.get_by_role("button", name="CSV").click()
    expect(page.get_by_role("alert")).to_have_text("Wait for another export.")
    user.page.unroute("**/export?**")
    with page.expect_download():
        page.get_by_role("button", name="CSV").click()
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_download_after_the_session_has_ended_asks_for_a_log_in(visit, tmp_path):
    with serving(tmp_path, record_good_share=1) as service:
        with httpx.Client(base_url=service.address) as http:
            inspect(http, part_image(), "4711")
        add_people(service)
        page = visit(service.address).open("parts")
        log_in(page, "anna")
        expect(page.locator("#summary")).to_have_text("1 inspection")
        page.context.clear_cookies()
        page.get_by_role("button", name="CSV").click()
        expect(page.locator("#user-name")).to_be_visible()
        with page.expect_download() as saved:
            log_in(page, "anna")
        assert len(saved.value.path().read_text().splitlines()) == 2


def test_a_download_with_a_key_has_the_name_of_the_service(visit, tmp_path, keys):
    with serving(tmp_path, review_keys=keys) as service:
        page = visit(service.address).open("parts")
        page.locator("#key").fill(KEY)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Forget key")).to_be_visible()
        page.evaluate("document.getElementById('tools').hidden = false")  # without a result
        page.evaluate("document.querySelector('#exports button').disabled = false")
        page.evaluate(CHOOSE_FILE)
        page.get_by_role("button", name="CSV").click()
        to_chosen_file = page.evaluate("window.written")
        page.evaluate("window.showSaveFilePicker = undefined")
        with page.expect_download() as saved:
            page.get_by_role("button", name="CSV").click()
        to_downloads = saved.value.suggested_filename, saved.value.path().read_text()
        for name, text in (to_chosen_file, to_downloads):
            assert name.startswith("segdec-inspections-until-") and name.endswith(".csv")
            assert text.startswith('"record_id",')


def request_fewer(route):
    route.continue_(url=route.request.url.replace("limit=50", "limit=5"))


def test_more_results_are_loaded(visit, service):
    user = visit(service.address)
    user.page.route(re.compile("limit=50"), request_fewer)
    page = user.open("parts")
    expect(page.locator("#summary")).to_have_text("The newest 5 inspections")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("#summary")).to_have_text("9 inspections")
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    assert len(set(parts(page))) == 7


def test_the_page_of_a_part_explains_verdict_review_and_changes(visit, service):
    page = visit(service.address).open("parts/2")
    expect(page.locator("#word")).to_have_text("scratch")
    expect(page.locator("#score")).to_contain_text(re.compile(r"^Score [\d.]+; defective from 0\.5"))
    expect(page.locator("#review")).to_contain_text("Good, by Eva, ")
    expect(page.locator("#changes li")).to_have_count(1)
    expect(page.locator("#changes")).to_contain_text(f"Eva reviewed it as Good. Reason: dust {SCRIPT}")
    expect(page.locator("#inspections li")).to_have_count(3)
    expect(page.locator("#facts")).to_contain_text("lotL1")
    page.locator("#inspections a").first.click()
    expect(page.locator("#review")).to_have_text("Not reviewed.")
    expect(page.locator("#no-changes")).to_be_visible()


def test_a_part_is_reviewed_on_its_page(visit, service):
    page = visit(service.address).open("parts/4")
    form = page.locator("#review-form")
    form.get_by_label("Verdict").select_option("good")
    form.get_by_label("Your name").fill("Noa")
    form.get_by_label("Reason").fill(SCRIPT)
    form.get_by_role("button", name="Save review").click()
    expect(page.locator("#review")).to_contain_text("Good, by Noa, ")
    expect(page.locator("#review")).to_contain_text(f"Reason: {SCRIPT}")
    expect(page.locator("#changes li").first).to_contain_text("Noa reviewed it as Good.")
    with httpx.Client(base_url=service.address) as http:
        http.delete("v1/records/4/review", headers={"If-Match": '"1"'}).raise_for_status()
    form.get_by_label("Verdict").select_option("scratch")
    form.get_by_role("button", name="Save review").click()
    expect(page.locator("#review-problem")).to_contain_text("revision")


def test_a_printed_page_has_a_qr_code(visit, service):
    page = visit(service.address).open("parts/2")
    expect(page.locator("#qr-code")).to_be_hidden()
    expect(page.locator("#qr-code")).to_have_attribute("src", re.compile("^blob:"))
    page.emulate_media(media="print")
    expect(page.locator("#qr-code")).to_be_visible()
    assert page.locator("#qr-code").evaluate("image => image.decode().then(() => image.naturalWidth)") > 60


def test_times_are_those_of_the_plant(visit, tmp_path):
    """Summer time in New York ends on 1 November 2026 and begins on 8 March. The browser is in Tokyo."""
    with serving(tmp_path, record_zone="America/New_York") as service:
        with httpx.Client(base_url=service.address) as http:
            number = inspect(http, part_image(), "4711")
            inspected = datetime.fromisoformat(http.get(f"v1/records/{number}").json()["inspected_at"])
        local = inspected.astimezone(ZoneInfo("America/New_York"))
        page = visit(service.address, timezone_id="Asia/Tokyo", locale="en-GB").open("parts")
        expect(page.locator("#zone")).to_have_text("Times: America/New_York")
        expect(page.locator("tbody td").nth(4)).to_contain_text(f"{local:%H:%M:%S}")
        with page.expect_request("**/v1/records?**") as asked:
            search(page, since=f"{local:%Y-%m-%dT%H:%M}")
        assert f"{inspected.astimezone(UTC):%Y-%m-%dT%H%%3A%M}%3A00.000Z" in asked.value.url
        expect(page.locator("#summary")).to_have_text("1 inspection")
        moments = page.evaluate(
            """async (times) => {
                const { momentOf } = await import("/static/shared/plant_time.js");
                return times.map(momentOf);
            }""",
            ["2026-07-01T12:00", "2026-11-01T12:00", "2026-03-08T01:30", "2026-03-08T03:30", "", "x"],
        )
        hours = ["07-01T16:00", "11-01T17:00", "03-08T06:30", "03-08T07:30"]
        assert moments == [*(f"2026-{hour}:00.000Z" for hour in hours), None, None]
        texts = page.evaluate(
            """async (times) => {
                const { timeText } = await import("/static/shared/plant_time.js");
                const { Clock } = await import("/static/line/clock.js");
                const clock = new Clock();
                clock.setZone("America/New_York");
                return times.map((time) => [timeText(time).split(", ")[1], clock.time(time)]);
            }""",
            [f"2026-{hour}:30:00Z" for hour in ("11-01T04", "11-01T05", "11-01T06", "11-01T07", "03-08T07")],
        )
        clocks = [
            ("00:30", ""),
            ("01:30", " GMT-04:00"),
            ("01:30", " GMT-05:00"),
            ("02:30", ""),
            ("03:30", ""),
        ]
        assert texts == [[f"{clock}:00{offset}", f"{clock}{offset}"] for clock, offset in clocks]
        page.goto(f"{service.address}parts/{number}")
        expect(page.locator("#facts")).to_contain_text(f"{local:%H:%M:%S} (America/New_York)")


def test_a_part_with_a_long_history_prints_on_one_sheet(visit, tmp_path):
    with serving(tmp_path) as service, httpx.Client(base_url=service.address) as http:
        facts = {f"property {number}": "a value of some length" for number in range(8)}
        for index in range(12):
            number = inspect(http, service.predictor.add_toy_part(index), "4711", **facts)
        for revision in range(12):
            sent = {"label": ("good", "scratch")[revision % 2], "reviewer": "Eva", "reason": "dust " * 200}
            headers = {"If-Match": f'"{revision}"'}
            http.put(f"v1/records/{number}/review", json=sent, headers=headers).raise_for_status()
        page = visit(service.address).open(f"parts/{number}")
        expect(page.locator("#inspections li")).to_have_count(12)
        expect(page.locator("#changes li")).to_have_count(12)
        page.wait_for_load_state("networkidle")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        printed = page.pdf(path=SCREENSHOTS / "part-printed.pdf", prefer_css_page_size=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
        assert re.search(rb"/MediaBox \[0 0 59\d\S* 84\d", printed)  # A4


def pixels(page):
    return page.evaluate("document.querySelector('#picture').toDataURL()")


def test_mask_and_heat_map_can_be_shown(visit, service):
    page = visit(service.address).open("parts/2")
    expect(page.locator("#show-heat-map")).to_be_enabled()
    both = pixels(page)
    page.get_by_label("Heat map").check()
    heated = pixels(page)
    page.get_by_label("Mask", exact=True).uncheck()
    assert len({both, heated, pixels(page)}) == 3


def test_a_defect_without_a_region_shows_where_the_network_responded(visit, service):
    page = visit(service.address).open("parts/9")
    expect(page.locator("#word")).to_have_text("scratch")
    expect(page.locator("#explanation")).to_contain_text("No region reaches the threshold of the mask")
    expect(page.locator("#show-heat-map")).to_be_checked()


def test_texts_of_clients_are_no_markup(visit, service):
    page = visit(service.address).open("parts/8")
    expect(page.locator("#part")).to_have_text(SCRIPT)
    expect(page.locator("#facts")).to_contain_text(SCRIPT)
    page = visit(service.address).open("parts")
    expect(page.get_by_role("link", name=SCRIPT)).to_be_visible()


def test_an_unknown_record_and_a_wrong_search_are_explained(visit, service):
    page = visit(service.address).open("parts/999")
    expect(page.get_by_role("alert")).to_contain_text("999")
    page = visit(service.address).open("parts")
    search(page, version="a\u2028b")
    expect(page.get_by_role("alert")).to_contain_text("U+2028 is not allowed")


def test_a_key_is_asked_for(visit, tmp_path, keys):
    with serving(tmp_path, review_keys=keys) as service:
        page = visit(service.address).open("parts")
        page.locator("#key").fill(KEY)
        page.keyboard.press("Enter")
        expect(page.locator("#none h2")).to_have_text("No inspection is recorded yet")
        expect(page.get_by_role("button", name="Forget key")).to_be_visible()
