"""The line display in a real browser, with answers made here to its requests."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from api.line.schemas import (
    ChartHour,
    DefectChart,
    LastUninspected,
    LineCounts,
    LineInspection,
    LineStatus,
    MeasureDistance,
    QuietStation,
    ScoreDrift,
    TrainingDistance,
)
from api.roles import user_roles_of
from segdec.images import encode_png
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import KEY, part_image, serving

HOUR = timedelta(hours=1)
SIZES = {
    "tv": {"width": 1920, "height": 1080},
    "small": {"width": 1024, "height": 768},
    "tablet": {"width": 820, "height": 1180},
    "phone": {"width": 390, "height": 844},
    "landscape": {"width": 844, "height": 390},
}


class FakeLine:
    """Answers requests of the page with a settable status at a fixed time.

    Attributes:
        status: The answer; None = an error.
        key: Required key; empty for none.
        stations: The requested stations.
        pictures: Number and side of the requested pictures.
        names: All stations; a search finds those that contain its text.
    """

    def __init__(self):
        self.now = datetime(2026, 1, 15, 13, 42, 7, tzinfo=UTC)
        self.key = ""
        self.stations = []
        self.pictures = []
        self.status = normal_day(self.now)
        self.names = []

    def update(self, **changes):
        self.status = self.status.model_copy(update=changes)

    def answer(self, route: Route) -> None:
        address = urlsplit(route.request.url)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path.endswith("/overlay"):
            self.pictures.append((int(address.path.split("/")[-2]), int(query["side"])))
            route.fulfill(body=encode_png(part_image()), content_type="image/png")
        elif address.path.endswith("/records/names"):
            found = [name for name in self.names if query["station"].lower() in name]
            route.fulfill(json={"stations": found[:1000], "labels": [], "reviewers": [], "metadata": []})
        elif self.key and route.request.headers.get("authorization") != f"Bearer {self.key}":
            route.fulfill(status=401, json={"code": "missing_key", "detail": "No API key arrived."})
        elif self.status is None:
            route.fulfill(status=503, json={"code": "draining", "detail": "The service is stopping."})
        else:
            self.stations.append(query.get("station"))
            answer = self.status.model_copy(update={"station": query.get("station")})
            route.fulfill(json=answer.model_dump(mode="json"))


def inspection(now, verdict="good", seconds=2, number=90210, **more):
    label = {"good": "good", "review": "review", "defect": "scratch"}[verdict]
    facts = {
        "record_id": number,
        "inspected_at": now - timedelta(seconds=seconds),
        "station": "line3-cam1",
        "part_id": "A17-004711",
        "verdict": verdict,
        "label": label,
        "score": {"good": 0.03, "review": 0.4, "defect": 0.97}[verdict],
        "threshold": 0.5,
    }
    return LineInspection(**facts | more)


def uninspected(now, seconds=4, **more):
    facts = {
        "at": now - timedelta(seconds=seconds),
        "station": "line3-cam1",
        "part_id": "A17-004712",
        "status": 422,
        "code": "truncated_image",
        "detail": "The file part.png ends too early: 41,200 bytes arrived. Expected a whole PNG.",
        "followed": False,
    }
    return LastUninspected(**facts | more)


def counts(now, hours, factor, uninspected=0):
    return LineCounts(
        begin=(now - hours * HOUR).replace(minute=0, second=0),
        end=now + HOUR,
        inspected=factor * 1043,
        good=factor * 1016,
        review=factor * 6,
        defective={"scratch": factor * 14, "dent": factor * 5, "stain": factor * 2},
        not_inspected=uninspected,
    )


def chart(now, out=False):
    hours = []
    for number in range(24):
        inspected = 0 if 9 <= number <= 10 else 12 if number == 8 else 480 + 17 * (number * 7 % 11)
        defective = inspected * (14 + 3 * (number * 5 % 7)) // 1000
        if out and number in (17, 23):
            defective = inspected * 6 // 100
        is_out = inspected > 20 and defective / inspected > 0.042
        log_odds = -4.4 + 0.1 * (number * 5 % 7) + (1.4 if out and number > 19 else 0)
        hours.append(
            ChartHour(
                hour=(now - (23 - number) * HOUR).replace(minute=0, second=0),
                inspected=inspected,
                defective=defective,
                low=0.006 if inspected > 20 else None,
                high=0.042 if inspected > 20 else None,
                out="high" if is_out else None,
                log_odds=log_odds if inspected else None,
            )
        )
    return DefectChart(centre=0.021, spread=1.0, hours=hours)


def normal_day(now):
    """A line without problems."""
    return LineStatus(
        at=now,
        zone="Europe/Berlin",
        station=None,
        stations=["line3-cam1", "line3-cam2", "line4-top"],
        last=inspection(now),
        uninspected=[],
        shift=counts(now, 7, 1),
        day=counts(now, 13, 2),
        chart=chart(now),
        drift=ScoreDrift(now=-4.2, before=-4.3, least=0.9, towards=None, hours=4),
        defects=[
            inspection(now, "defect", 400 * n + 65, 90200 - n, part_id=f"A17-00{4700 - 7 * n}")
            for n in range(8)
        ],
        quiet=[],
        training=[distances("line3-cam2", 0.29, 0.25), distances("line3-cam1", 0.21, 0.2)],
        unavailable=None,
    )


def distances(station, now, start):
    """Distances to the training photographs, the highest `now`, as multiples of the limit."""
    measures = [
        MeasureDistance(measure="brightness", now=now, start=start),
        MeasureDistance(measure="texture", now=0.1, start=0.08),
    ]
    named = {"station": station, "model": "parts", "version": "1"}
    return TrainingDistance(**named, measures=measures, near_limit=now >= 0.7)


@pytest.fixture
def line():
    return FakeLine()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service")) as service:
        yield service.address


@pytest.fixture
def watch(address, line, visit):
    """Opens the display in a window of a size; returns the visit."""

    def make(size="tv", path="line", **window):
        user = visit(address, viewport=SIZES[size], **window)
        user.page.route("**/v1/**", line.answer)
        user.open(path)
        return user

    return make


def fits(page: Page, *, scrolls: bool = False) -> bool:
    """Whether the page with its eight pictures fits the window, without clipped text."""
    expect(page.locator("#defects img")).to_have_count(8)
    return page.evaluate(
        """scrolls => {
            const root = document.documentElement;
            const inside = (id) => {
                const element = document.getElementById(id);
                return element.scrollWidth <= element.clientWidth + 1;
            };
            const high = scrolls || root.scrollHeight <= innerHeight;
            const wide = root.scrollWidth <= innerWidth;
            return high && wide && ["word", "counts", "rate", "scores"].every(inside);
        }""",
        scrolls,
    )


def test_the_last_verdict_fills_the_screen_above_the_last_defects(watch, line):
    user = watch()
    page = user.page
    for verdict, word in (("good", "GOOD"), ("review", "REVIEW"), ("defect", "DEFECT")):
        line.update(last=inspection(line.now, verdict))
        expect(page.locator("#word")).to_have_text(word)
        expect(page.locator(f"#call svg.{verdict}")).to_be_visible()
        assert page.locator("#call svg:visible").count() == 1
        assert page.locator("#word").evaluate("word => parseFloat(getComputedStyle(word).fontSize)") > 90
        assert fits(page)
    user.screenshot("line-defect")
    training = page.locator("#training")
    text = "Photographs of line3-cam2: brightness 0.3 of its limit"
    expect(training).to_have_text(f"{text}, 0.3 at the start")
    line.update(training=[distances("line3-cam2", 0.29, None)])
    expect(training).to_have_text(text)
    expect(page.locator("#notices .near, #training.alert")).to_have_count(0)
    line.update(training=[])
    expect(training).to_be_hidden()
    expect(page.locator("#label")).to_have_text("scratch")
    expect(page.locator("#part")).to_have_text("A17-004711")
    expect(page.locator("#station")).to_have_text("line3-cam1")
    expect(page.locator("#alarm")).to_be_hidden()
    expect(page.locator("#banner")).to_be_hidden()
    cells = page.locator("#counts tbody td").all_text_contents()
    assert cells == ["1,043", "2,086", "1,016", "2,032", "6", "12", "21", "42", "0", "0"]
    expect(page.locator("#classes")).to_have_text("scratch 14 · dent 5 · stain 2")
    newest = inspection(line.now, "defect", 1, 90300)
    line.update(defects=[newest, *line.status.defects[:7]])
    expect(page.locator("#defects li .which").first).to_have_text("A17-004711, line3-cam1")
    expect(page.locator("#defects img")).to_have_count(8)
    # Each picture is fetched once; that of the oldest defect is removed
    small = [(number, 480) for number in (*range(90193, 90201), 90300)]
    assert sorted(line.pictures) == sorted([*small, (90210, 1400)])
    expect(page.locator("#photograph img")).to_be_visible()
    for link, number in (("#photograph", 90210), ("#defects a", 90300)):
        assert page.locator(link).first.get_attribute("href") == f"parts/{number}"
    line.update(last=inspection(line.now, "good"))
    expect(page.locator("#photograph")).to_be_hidden()


def test_an_uninspected_part_fills_the_screen_until_it_is_acknowledged(watch, line):
    page = watch().page
    alarm = page.locator("#alarm")
    expect(page.locator("#word")).to_have_text("GOOD")
    line.update(uninspected=[uninspected(line.now)], shift=counts(line.now, 7, 1, uninspected=1))
    expect(alarm).to_be_visible()
    expect(page.locator("#alarm-word")).to_have_text("NOT INSPECTED")
    expect(page.locator("#alarm-part")).to_have_text("Part A17-004712")
    expect(page.locator("#alarm-station")).to_have_text("line3-cam1")
    expect(page.locator("#alarm-do")).to_have_text("Hold the part: its condition is unknown.")
    expect(page).to_have_title("NOT INSPECTED – Line")
    box = alarm.bounding_box()
    assert (box["width"], box["height"]) == (1920, 1080)
    page.reload()
    expect(alarm).to_be_visible()
    page.locator("#alarm-acknowledge").click()
    expect(alarm).to_be_hidden()
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator('[data-count="uninspected"] td').first).to_have_text("1")
    page.reload()
    expect(page.locator("#word")).to_have_text("GOOD")
    expect(alarm).to_be_hidden()
    second = uninspected(line.now, 1, station="line4-top", part_id=None)
    line.update(uninspected=[second, *line.status.uninspected], shift=counts(line.now, 7, 1, uninspected=2))
    expect(alarm).to_be_visible()
    expect(page.locator("#alarm-where")).to_have_text(re.compile(r"^\s*line4-top\s*$"))


def test_a_banner_stays_after_the_station_inspects_again(watch, line):
    page = watch().page
    line.update(uninspected=[uninspected(line.now, 5)], shift=counts(line.now, 7, 1, uninspected=3))
    expect(page.locator("#alarm")).to_be_visible()
    line.update(uninspected=[uninspected(line.now, 5, followed=True)])
    expect(page.locator("#alarm-do")).to_contain_text("3 were not inspected")
    line.update(uninspected=[uninspected(line.now, 60, followed=True)])
    expect(page.locator("#alarm")).to_be_hidden()
    expect(page.locator("#banner-text")).to_have_text("3 NOT INSPECTED")
    expect(page).to_have_title("3 not inspected – Line")
    assert fits(page)
    page.locator("#banner-acknowledge").click()
    expect(page.locator("#banner")).to_be_hidden()
    line.update(shift=counts(line.now + 8 * HOUR, 7, 1))
    expect(page.locator("#shift-begin")).to_have_text("since 15:00")
    expect(page.locator("#alarm")).to_be_hidden()
    line.update(uninspected=[uninspected(line.now, 9000)])
    expect(page.locator("#alarm")).to_be_visible()


def test_a_lost_connection_and_missing_data_are_alarms(watch, line):
    page = watch().page
    expect(page.locator("#word")).to_have_text("GOOD")
    line.status = None
    expect(page.locator("#alarm-word")).to_have_text("NO CONNECTION", timeout=20_000)
    expect(page.locator("#alarm-why")).to_have_text("The service is stopping.")
    expect(page.locator("#alarm-where")).to_contain_text("since 14:42:")
    expect(page.locator("#alarm-acknowledge")).to_be_hidden()
    line.status = normal_day(line.now)
    expect(page.locator("#alarm")).to_be_hidden(timeout=20_000)
    message = "The record cannot be used now: its database does not answer."
    nothing = {"last": None, "shift": None, "day": None, "chart": None, "drift": None, "defects": []}
    line.update(**nothing, unavailable=message)
    expect(page.locator("#alarm-word")).to_have_text("NO DATA")
    expect(page.locator("#alarm-why")).to_have_text(message)
    line.update(uninspected=[uninspected(line.now)])
    expect(page.locator("#alarm-word")).to_have_text("NOT INSPECTED")


def test_unusual_rates_drift_silent_stations_and_uninspected_parts_fit_every_screen(watch, line):
    drift = ScoreDrift(now=-2.9, before=-4.3, least=0.9, towards="defective", hours=4)
    silent = [
        QuietStation(station="line4-top", last_at=line.now - timedelta(minutes=52), usual_gap_s=4.2),
        QuietStation(station="", last_at=line.now - timedelta(minutes=7), usual_gap_s=0.8),
    ]
    line.update(chart=chart(line.now, out=True), drift=drift, quiet=silent)
    near = [distances(station, 0.84, 0.06) for station in ("line3-cam1", "line4-top")]
    line.update(last=inspection(line.now, "defect"), training=near)
    line.update(shift=counts(line.now, 7, 100), day=counts(line.now, 13, 1000))  # millions
    user = watch()
    page = user.page
    expect(page.locator("#rate .summary")).to_have_text(
        "2 hours above the limits: 5.8 % this hour, baseline 2.1 %."
    )
    assert page.locator("#rate .out").count() == 2
    assert page.locator("#rate .few").count() == 1
    expect(page.locator("#scores .summary")).to_have_text(
        "Drift towards defective: −2.9 recently, baseline −4.3."
    )
    expect(page.locator("#training.alert")).to_contain_text("line3-cam1: brightness 0.8 of its limit")
    text = "photographs differ from the training: brightness 0.8 of its limit, 0.06 at the start"
    expect(page.locator("#notices .near")).to_have_text(
        [f"{name} {text}" for name in ("line3-cam1", "line4-top")]
    )
    expect(page.locator("#notices .silent")).to_have_text(
        [
            "line4-top no inspections for 52 min, since 13:50; usually every 4 s",
            "unnamed station no inspections for 7 min, since 14:35; usually every second",
        ]
    )
    for size, window in SIZES.items():
        page.set_viewport_size(window)
        page.emulate_media(color_scheme="light" if size in ("small", "tablet") else "dark")
        scrolls = size in ("phone", "landscape")
        assert fits(page, scrolls=scrolls), size
        cell = page.locator("#counts tbody td").first
        assert cell.evaluate("cell => parseFloat(getComputedStyle(cell).fontSize)") > 12
        user.screenshot(f"line-{size}", full_page=scrolls)
    line.update(uninspected=[uninspected(line.now)], shift=counts(line.now, 7, 1, uninspected=1))
    expect(page.locator("#alarm")).to_be_visible()
    for size, window in SIZES.items():
        page.set_viewport_size(window)
        assert page.locator("#alarm-panel").evaluate(
            "panel => panel.scrollHeight <= panel.clientHeight && panel.scrollWidth <= panel.clientWidth"
        ), size
        user.screenshot(f"line-not-inspected-{size}")


def test_a_difference_that_has_not_grown_since_the_start_is_no_notice(watch, line):
    shares = {"line3-cam1": (0.84, 0.84), "line3-cam2": (0.6, 0.8), "line4-top": (0.9, 0.5)}
    line.update(training=[distances(name, *share) for name, share in shares.items()])
    page = watch().page
    expect(page.locator("#notices .near")).to_have_text([re.compile("^line4-top photographs differ")])


def test_a_usual_day_fits_every_screen(watch):
    user = watch()
    expect(user.page.locator("#training")).to_contain_text("of its limit")
    for size in ("tv", "small", "phone"):
        user.page.set_viewport_size(SIZES[size])
        assert fits(user.page, scrolls=size == "phone"), size
        user.screenshot(f"line-usual-{size}", full_page=size == "phone")


def test_the_url_has_station_and_sound_and_a_key_is_requested(watch, line):
    line.key = KEY
    line.update(last=inspection(line.now, seconds=3 * 3600), defects=[])
    page = watch(path="line?station=line4-top").page
    page.locator("#log-in-cancel").click()
    expect(page.locator("#alarm-why")).to_have_text("Log in, or enter an API key.")
    page.locator("#alarm-key").click()
    page.locator("#key").fill(KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#verdict.old")).to_be_visible()
    expect(page.locator("#age")).to_have_text("3 h ago")
    expect(page.locator("#no-defects")).to_be_visible()
    assert set(line.stations) == {"line4-top"}
    page.locator("#stations").select_option(label="line3-cam2")
    assert page.url.endswith("?station=line3-cam2")
    page.reload()
    expect(page.locator("#stations")).to_have_value("=line3-cam2")
    page.locator("#stations").select_option(label="All")
    assert page.url.endswith("/line")
    line.update(last=None)
    expect(page.locator("#word")).to_have_text("No inspection yet")
    sound = page.locator("#sound")
    expect(sound).to_have_text("Sound off")
    sound.click()
    expect(sound).to_have_text("Sound on")
    sound.click()
    expect(sound).to_have_text("Sound off")
    sound.click()
    assert page.url.endswith("?sound=on")
    page.reload()
    # Chromium may play sounds without a click on the new page, because somebody clicked on the last one.
    expect(sound).to_have_text(re.compile("Sound on|Click to enable sound"))


def test_the_real_service_is_displayed(visit, tmp_path, keys):
    with serving(tmp_path, review_keys=keys) as service:
        page = visit(service.address, viewport=SIZES["tv"]).open("line?station=a")
        page.locator("#key").fill(KEY)
        page.keyboard.press("Enter")
        expect(page.locator("#word")).to_have_text("No inspection yet")
        part = encode_png(part_image())

        def inspect(body, number):
            url = f"{service.address}v1/inspect?station=a&part_id={number}"
            return httpx.post(url, content=body, headers={"Content-Type": "image/png"}).status_code

        assert inspect(part, 1) == 200
        expect(page.locator("#word")).to_have_text("DEFECT")
        expect(page.locator("#which")).to_have_text("1scratch")
        picture = page.locator("#defects img")
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 60
        assert inspect(part[:-20], 2) == 422
        expect(page.locator("#alarm-part")).to_have_text("Part 2")
        page.locator("#alarm-acknowledge").click()
        expect(page.locator("#alarm")).to_be_hidden()
        expect(page.locator("#counts tbody td").first).to_have_text("1")
        expect(page.locator('[data-count="uninspected"] td').first).to_have_text("1")


def test_a_station_among_ten_thousand_is_searched_for(watch, line):
    names = [f"hall{number // 100}-cam{number % 100}" for number in range(10_000)]
    usual = {"last_at": line.now - HOUR, "usual_gap_s": 2.0}
    line.names = names
    line.update(stations=names[:100], quiet=[QuietStation(station=name, **usual) for name in names])
    user = watch("phone", "line?station=hall99-cam98")
    page = user.page
    expect(page.locator("#notices li")).to_have_count(7)
    check_accessibility(page)
    expect(page.locator("#notices li").last).to_have_text("9,994 more notices")
    expect(page.locator("#stations option")).to_have_count(103)  # all, the chosen one, 100 others, and a hint
    expect(page.locator("#stations")).to_have_value("=hall99-cam98")
    page.get_by_label("Search stations").fill("HALL73-cam4")
    expect(page.locator("#stations option")).to_have_count(13)  # cam4, cam40 to cam49
    user.screenshot("line-search")
    page.locator("#stations").select_option(label="hall73-cam42")
    expect(page).to_have_url(re.compile("station=hall73-cam42"))
    page.get_by_label("Search stations").fill("")
    expect(page.locator("#stations option").last).to_have_text("Further stations: search for them")
    assert page.evaluate("document.querySelectorAll('*').length") < 600
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_stations_are_shown_side_by_side(watch, line):
    user = watch()
    page = user.page
    page.get_by_role("button", name="Side by side").click()
    expect(page.locator("iframe")).to_have_count(3)
    titles = [frame.get_attribute("title") for frame in page.locator("iframe").all()]
    assert titles == ["line3-cam1", "line3-cam2", "line4-top"]
    for place in range(3):
        display = page.frame_locator("iframe").nth(place)
        expect(display.locator("#word")).to_have_text("GOOD")
        expect(display.get_by_role("button", name="Side by side")).to_be_hidden()
    assert {"line3-cam1", "line3-cam2", "line4-top"} <= set(line.stations)
    user.screenshot("line-side-by-side")


@pytest.mark.parametrize("size", ["tv", "small"])
def test_hours_below_the_charts_do_not_touch(watch, size):
    page = watch(size).page
    expect(page.locator("#scores svg text").last).to_be_visible()
    for chart in ("rate", "scores"):
        boxes = [one.bounding_box() for one in page.locator(f"#{chart} svg text").all()[3:]]
        assert len(boxes) >= 3
        for left, right in pairwise(boxes):
            assert right["x"] - left["x"] - left["width"] > 6


@pytest.mark.parametrize("locale", ["en", "de"])
def test_the_header_has_one_row_when_a_user_is_logged_in(watch, locale):
    user = watch(locale=locale)
    known = {"name": "maximilian-engineer", "role": "engineer", "roles": user_roles_of("engineer")}
    session = {"user": known, "has_users": True}
    user.page.route("**/v1/session", lambda route: route.fulfill(json=session))
    user.page.reload()
    expect(user.page.locator("nav #account button")).to_have_text("maximilian-engineer")
    expect(user.page.locator("#side-by-side")).to_be_visible()
    tops, bottoms = [], []
    for part in user.page.locator("header > :is(h1, #chooser, #clock, button, nav):visible").all():
        box = part.bounding_box()
        tops.append(box["y"])
        bottoms.append(box["y"] + box["height"])
    assert len(tops) == 7 and max(tops) < min(bottoms)
    check_accessibility(user.page)


def test_a_kiosk_has_no_links_to_other_pages(watch):
    page = watch().page
    expect(page.get_by_role("link", name="Review")).to_be_visible()
    expect(page.get_by_role("button", name="Full screen")).to_be_visible()
    page.goto(f"{page.url}?kiosk=on")
    expect(page.locator("#word")).to_have_text("GOOD")
    expect(page.locator("header :is(a, #full-screen):visible")).to_have_count(0)
