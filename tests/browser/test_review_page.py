"""The review page in a real browser, with the real service and a stub network."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, Route, expect

from api.record.initialization import DATABASE
from segdec.artifact import TrainingPhotographs
from segdec.images import encode_png
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import KEY, RunningService, Visit, contrast, part_image, serving
from tests.browser.german_page import english_texts
from tests.segdec.artifact.test_artifact import MANIFEST

ADA = "localStorage.setItem('segdec.reviewer', 'Ada')"
WIDTH, HEIGHT = 60, 40
LARGE = {"width": 1440, "height": 900}


class Line:
    """A production line: sends parts to the service and reads its record."""

    def __init__(self, service: RunningService, http: httpx.Client) -> None:
        self.address = service.address
        self.database = service.folder / DATABASE
        self.predictor = service.predictor
        self.http = http

    def inspect(self, picture: NDArray[np.uint8], part: str) -> int:
        """Inspects a photograph; returns its record id."""
        path = f"v1/inspect?station=line3-cam1&part_id={part}"
        headers = {"Content-Type": "image/png"}
        return self.http.post(path, content=encode_png(picture), headers=headers).json()["record_id"]

    def inspect_defects(self, count: int) -> list[int]:
        """Inspects different defective parts A1, A2, …; returns their record ids."""
        return [self.inspect(part_image(200 + n), f"A{n + 1}") for n in range(count)]

    def execute(self, statement: str, *values: object) -> list[Any]:
        """Changes or reads the record's database."""
        with closing(sqlite3.connect(self.database)) as database, database:
            return database.execute(statement, values).fetchall()

    def disagree(self, number: int, label: str, score: float) -> None:
        """Stores a differing prediction of a candidate."""
        self.execute(
            "INSERT INTO shadows (record_id, model, version, inspected_at, label, score, log_odds, differs) "
            "VALUES (?, 'unnamed', '1', '2026-01-01', ?, ?, 0, 1)",
            *(number, label, score),
        )
        self.execute("UPDATE review_queue SET priority = 0 WHERE record_id = ?", number)

    def record(self, number: int) -> dict[str, Any]:
        return self.http.get(f"v1/records/{number}").json()

    def judge(self, number: int, label: str) -> None:
        """Stores a verdict of another reviewer, without a lease."""
        self.execute("UPDATE review_queue SET leased_to = NULL, leased_until = NULL")
        headers = {"If-Match": f'"{self.record(number)["revision"]}"'}
        self.http.put(f"v1/records/{number}/review", json={"label": label}, headers=headers)

    def review(self, number: int) -> dict[str, Any] | None:
        return self.record(number)["review"]

    def label(self, number: int) -> str | None:
        """Returns the reviewed label of a record."""
        review = self.review(number)
        return review and review["label"]

    def mask(self, number: int, which: str = "reviewed", values: str = "defect") -> NDArray[np.uint8]:
        data = self.http.get(f"v1/records/{number}/mask?which={which}&values={values}").content
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


class Network:
    """The network between page and service: it works, breaks requests, is cut, or loses an answer."""

    def __init__(self) -> None:
        self.state = "works"

    def handle(self, route: Route) -> None:
        match self.state:
            case "works":
                route.continue_()
            case "breaks":
                route.fulfill(status=500, body="broken")
            case "is cut":
                route.abort()
            case "loses an answer":
                self.state = "works"
                route.fetch()
                route.abort()


@contextmanager
def producing(folder: Path, key: str = "", **settings: Any) -> Iterator[Line]:
    """Runs a service with a line, whose defective parts are queued for review."""
    with (
        serving(folder, **settings) as service,
        httpx.Client(base_url=service.address, headers={"X-API-Key": key}, timeout=30) as http,
    ):
        yield Line(service, http)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with producing(tmp_path) as line:
        yield line


@pytest.fixture
def review(line: Line, visit: Callable[..., Visit]) -> Callable[..., Visit]:
    """Opens the review page as the reviewer Ada."""

    def open_page(network: Network | None = None, **window: Any) -> Visit:
        user = visit(line.address, **window)
        user.page.context.add_init_script(ADA)
        if network:
            user.page.route("**/v1/records/*/review", network.handle)
        user.open("review")
        return user

    return open_page


def shows(page: Page, part: str) -> None:
    """Waits until the picture of a part is displayed."""
    expect(page.locator("#part")).to_have_text(part)
    expect(page.locator("main")).to_have_attribute("data-picture", "shown")


def place(page: Page, x: float, y: float) -> tuple[float, float]:
    """Returns the window position of a point of the photograph, without zoom."""
    box = page.locator("#picture").bounding_box()
    assert box is not None
    return box["x"] + x / WIDTH * box["width"], box["y"] + y / HEIGHT * box["height"]


def draw(page: Page, *points: tuple[float, float]) -> None:
    """Draws a line on the picture with the mouse."""
    page.mouse.move(*place(page, *points[0]))
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*place(page, *point))
    page.mouse.up()


def test_verdicts_by_key_are_saved_and_show_the_next_picture(review, line):
    numbers = line.inspect_defects(5)
    page = review().page
    for part, key in zip(("A1", "A2", "A3", "A4"), "g1u2", strict=True):
        shows(page, part)
        page.keyboard.press(key)
    shows(page, "A5")
    expect(page.locator("#last em")).to_have_text(["saved"] * 4)
    expect(page.locator("#judged")).to_have_text("4 reviewed")
    expect(page.locator("#waiting")).to_have_text("1 waiting")
    assert [line.label(number) for number in numbers] == ["good", "scratch", "unsure", "spot", None]
    assert line.review(numbers[0])["reviewer"] == "Ada"


SIZES = {"large": LARGE, "small": {"width": 1024, "height": 768}, "phone": {"width": 390, "height": 844}}


def inspect_dark_parts(line: Line, grey_training: TrainingPhotographs, count: int) -> None:
    """Sends photographs D0, D1 … that are unlike those of the training."""
    update = {"training_photographs": grey_training, "classes": line.predictor.config.classes}
    line.predictor.config = MANIFEST.model_copy(update=update)
    for number in range(count):
        dark = np.random.default_rng(number).integers(0, 60, (320, 480), np.uint8)
        dark[100:140, 200:220] = 10 * number
        headers = {"Content-Type": "image/png"}
        answer = line.http.post(f"v1/inspect?part_id=D{number}", content=encode_png(dark), headers=headers)
        assert answer.json()["code"] == "unlike_training"


def test_pages_say_in_german_why_a_photograph_was_not_inspected(review, line, grey_training):
    inspect_dark_parts(line, grey_training, 1)
    expected = "Erwartet wird eines wie die des Trainings: Licht, Kamera und Teil prüfen."
    user = review(locale="de-DE", viewport=SIZES["small"])
    page = user.page
    shows(page, "D0")
    expect(page.locator("#models .limits")).to_contain_text(expected)
    for path, selector in {"parts/1": "#score", "line": "#alarm-why"}.items():
        page.goto(f"{line.address}{path}")
        expect(page.locator(selector)).to_contain_text(expected)
        assert english_texts(page) == []
        user.screenshot(f"german-not-inspected-{path.replace('/', '-')}")


def test_a_photograph_without_a_verdict_is_judged_or_dismissed(review, line, grey_training):
    inspect_dark_parts(line, grey_training, 4)
    user = review()
    page = user.page
    shows(page, "D0")
    for size, window in SIZES.items():
        page.set_viewport_size(window)
        user.screenshot(f"review-not-inspected-{size}", full_page=True)
    expect(page.locator("#why-title")).to_have_text("Not inspected")
    expect(page.locator("#models .word")).to_have_text("Not inspected")
    detail = line.record(1)["refusal"]["detail"]
    expect(page.locator("#models .limits")).to_have_text(detail)
    expect(page.locator("#verdicts button").last).to_have_text("UDismiss")
    for part, key in zip(("D0", "D1", "D2"), "g1u", strict=True):
        shows(page, part)
        page.keyboard.press(key)
    shows(page, "D3")
    expect(page.locator("#last strong")).to_have_text(["Dismiss", "scratch", "Good"])
    expect(page.locator("#last em")).to_have_text(["saved"] * 3)
    assert [line.label(number) for number in (1, 2, 3, 4)] == ["good", "scratch", "unsure", None]


def test_verdicts_are_undone_one_after_another(review, line):
    numbers = line.inspect_defects(3)
    page = review().page
    shows(page, "A1")
    page.keyboard.press("g")
    shows(page, "A2")
    page.locator("#tools label", has_text="Brush").click()
    page.keyboard.press("ArrowRight")  # skips, and does not change the tool
    shows(page, "A3")
    page.keyboard.press("1")
    expect(page.locator("#empty-title")).to_have_text("Nothing else to review")
    expect(page.locator("#show-skipped")).to_have_text("Show the skipped part")
    expect(page.locator("#last em")).to_have_text(["saved", "", "saved"])
    page.keyboard.press("z")
    shows(page, "A3")
    page.keyboard.press("Control+z")
    shows(page, "A2")
    page.locator("#undo").click()
    shows(page, "A1")
    expect(page.locator("#judged")).to_have_text("0 reviewed")
    expect(page.locator("#undo")).to_be_disabled()
    for part, key in (("A1", "2"), ("A2", "2"), ("A3", "g")):
        shows(page, part)
        page.keyboard.press(key)
    expect(page.locator("#last em")).to_have_text(["saved"] * 3)
    assert [line.label(number) for number in numbers] == ["spot", "spot", "good"]
    assert [line.record(number)["revision"] for number in numbers] == [3, 1, 3]
    assert line.execute("SELECT DISTINCT who, what FROM audit") == [("Ada", "review"), ("Ada", "undo")]


def test_text_held_keys_and_double_clicks_judge_nothing_else(review, line):
    numbers = line.inspect_defects(3)
    page = review().page
    shows(page, "A1")
    page.keyboard.press("r")
    page.keyboard.type("ugly 12")
    page.keyboard.press("Enter")
    shows(page, "A1")
    page.keyboard.down("g")
    shows(page, "A2")
    page.keyboard.down("g")  # repeated by the browser
    page.keyboard.down("g")
    page.keyboard.up("g")
    page.locator("#verdicts button[data-label=scratch]").dblclick()
    shows(page, "A3")
    expect(page.locator("#last em")).to_have_text(["saved"] * 2)
    assert [line.label(number) for number in numbers] == ["good", "scratch", None]
    assert line.review(numbers[0])["reason"] == "ugly 12"
    assert line.review(numbers[1])["reason"] is None


def thinnest_brush(page: Page) -> None:
    page.keyboard.press("b")
    for _ in range(20):
        page.keyboard.press("[")


def paint_by_hand(page: Page) -> NDArray[np.uint8]:
    """Draws a stroke, a polygon and a box, erases a part; returns the expected mask."""
    thinnest_brush(page)
    draw(page, (20.5, 30.5), (40.5, 30.5))
    page.keyboard.press("p")
    for corner in ((45.2, 5.2), (55.2, 5.2), (55.2, 15.2), (45.2, 15.2)):
        draw(page, corner)
    page.keyboard.press("Enter")
    page.keyboard.press("x")
    draw(page, (30.2, 20.2), (25.2, 17.2))
    page.keyboard.press("e")
    page.keyboard.press("]")  # 2 px: centred on the corner of four pixels
    draw(page, (10.1, 9.1), (15.9, 9.1))
    draw(page, (0.5, 0.5), (59.5, 39.5))
    page.keyboard.press("Control+z")
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:12, 10:16] = 255
    mask[30, 20:41] = 255
    mask[5:15, 45:55] = 255
    mask[17:20, 25:30] = 255
    mask[8:10, 10:16] = 0
    return mask


def test_edited_and_confirmed_masks_are_saved_pixel_by_pixel(review, line):
    numbers = line.inspect_defects(4)
    user = review(viewport=LARGE)
    page = user.page
    shows(page, "A1")
    expected = paint_by_hand(page)
    user.screenshot("review-edited")
    page.keyboard.press("g")
    expect(page.locator("#notice")).to_contain_text("The edited mask has defect pixels")
    page.keyboard.press("2")
    shows(page, "A2")
    page.locator("#clear").click()
    page.keyboard.press("1")
    expect(page.locator("#notice")).to_contain_text("The edited mask is empty")
    page.locator("#reset").click()
    page.keyboard.press("1")
    shows(page, "A3")
    page.keyboard.press("k")
    expect(page.locator("#mask-correct")).to_be_checked()
    page.keyboard.press("1")
    shows(page, "A4")
    expect(page.locator("#mask-correct")).not_to_be_checked()
    expect(page.locator("#last em")).to_have_text(["saved"] * 3)
    np.testing.assert_array_equal(line.mask(numbers[0]), expected)
    assert line.label(numbers[0]) == "spot"
    assert line.review(numbers[1])["corrected_mask"] is None
    np.testing.assert_array_equal(line.mask(numbers[2]), line.mask(numbers[2], "predicted"))


def test_pixels_are_drawn_with_their_class(review, line):
    line.predictor.have_classes(13)
    number = line.inspect_defects(1)[0]
    page = review().page
    shows(page, "A1")
    expect(page.locator("#classes button")).to_have_text(["scratch", "spot"])
    thinnest_brush(page)
    draw(page, (30.5, 20.5), (34.5, 20.5))
    page.keyboard.press("c")
    draw(page, (30.5, 22.5), (34.5, 22.5))
    page.keyboard.press("1")
    expect(page.locator("#last em")).to_have_text(["saved"])
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected[8:12, 10:13], expected[8:12, 13:16] = 1, 2
    expected[20, 30:35], expected[22, 30:35] = 1, 2
    np.testing.assert_array_equal(line.mask(number, values="class"), expected)


def test_tabs_show_different_pictures_and_a_reload_the_same(review, line):
    line.inspect_defects(8)
    page = review().page
    shows(page, "A1")
    page.keyboard.press("g")
    shows(page, "A2")
    expect(page.locator("#last em")).to_have_text(["saved"])
    with page.context.expect_page() as opened:  # browsers copy the session storage
        page.evaluate("window.open(location.href)")
    shows(opened.value, "A5")
    expect(opened.value.locator("#judged")).to_have_text("0 reviewed")
    page.reload()
    shows(page, "A2")
    expect(page.locator("#judged")).to_have_text("1 reviewed")


def test_failed_verdicts_are_reported_and_reviewed_again(review, line):
    numbers = line.inspect_defects(3)
    network = Network()
    page = review(network).page
    shows(page, "A1")
    network.state = "breaks"
    page.keyboard.press("g")
    shows(page, "A2")
    expect(page.locator("#failed-text")).to_contain_text("A1: Good was not saved: The service answered 500")
    network.state = "works"
    page.locator("#review-again").click()
    shows(page, "A1")
    expect(page.locator("#failed")).to_be_hidden()
    expect(page.locator("#notice")).to_contain_text("Good was not saved")
    line.judge(numbers[0], "spot")
    page.keyboard.press("g")
    expect(page.locator("#failed-text")).to_contain_text("Another reviewer has changed it.")
    page.locator("#dismiss").click()
    shows(page, "A2")
    expect(page.locator("#judged")).to_have_text("0 reviewed")
    assert line.label(numbers[0]) == "spot"


def test_verdicts_without_a_connection_are_saved_once_later(review, line):
    numbers = line.inspect_defects(3)
    network = Network()
    page = review(network).page
    shows(page, "A1")
    network.state = "is cut"
    page.keyboard.press("g")
    shows(page, "A2")
    bar = page.locator("#offline")
    expect(bar).to_contain_text("1 verdict is not sent yet: do not close this page.")
    page.locator("#try-now").click()  # fetching tasks works, but the verdict is unsent
    expect(bar).to_be_visible()
    network.state = "works"
    expect(page.locator("#last em")).to_have_text(["saved"])
    expect(bar).to_be_hidden()
    network.state = "loses an answer"
    page.keyboard.press("2")
    expect(page.locator("#last em")).to_have_text(["saved"] * 2)
    expect(page.locator("#failed")).to_be_hidden()
    assert [line.label(number) for number in numbers] == ["good", "spot", None]


def test_key_and_name_are_requested_and_an_empty_queue_is_polled(visit, tmp_path, keys):
    with producing(tmp_path, KEY, admin_keys=keys) as line:
        page = visit(line.address).page
        page.clock.install()
        page.goto(f"{line.address}review")
        page.locator("#log-in-cancel").click()
        expect(page.locator("#offline")).to_contain_text(
            "The service rejects requests. Log in, or enter an API key."
        )
        page.locator("#try-now").click()
        page.locator("#key").fill(KEY)
        page.keyboard.press("Enter")
        expect(page.locator("#empty-title")).to_have_text("Nothing to review")
        line.inspect_defects(1)
        page.clock.run_for(6000)
        shows(page, "A1")
        page.keyboard.press("g")
        page.locator("#name").fill("Grace")
        page.keyboard.press("Enter")
        expect(page.locator("#last em")).to_have_text(["saved"])
        assert line.review(1)["reviewer"] == "office/Grace"
        page.reload()
        expect(page.locator("#reviewer")).to_have_text("Grace")
        expect(page.locator("#name-dialog")).to_be_hidden()


def test_the_name_is_requested_with_the_first_verdict_and_not_again(visit, line):
    line.inspect_defects(3)
    page = visit(line.address).open("review")
    shows(page, "A1")
    dialog = page.locator("#name-dialog")
    expect(dialog).to_be_hidden()
    page.locator("#verdicts button", has_text="Good").click()
    expect(dialog).to_be_visible()
    check_accessibility(page)
    page.locator("#name").fill("Grace")
    page.keyboard.press("Enter")
    shows(page, "A2")
    page.keyboard.press("g")
    shows(page, "A3")
    expect(page.locator("#last em")).to_have_text(["saved"] * 2)
    assert [line.review(number)["reviewer"] for number in (1, 2)] == ["Grace", "Grace"]


def test_verdicts_are_saved_without_a_name_that_is_given_later(visit, line):
    line.inspect_defects(3)
    page = visit(line.address).open("review")
    shows(page, "A1")
    page.keyboard.press("g")
    page.get_by_role("button", name="Later").click()
    shows(page, "A2")
    page.keyboard.press("g")
    shows(page, "A3")
    expect(page.locator("#last em")).to_have_text(["saved"] * 2)
    assert [line.label(number) for number in (1, 2)] == ["good", "good"]


@pytest.mark.parametrize("pasted", ["segdec_" + 10 * "aB3_-", "0d2f7c3b9a5e4d118c6f0b2a7e9d4c51", KEY])
def test_a_key_is_not_taken_for_a_name(visit, line, pasted):
    line.inspect_defects(1)
    user = visit(line.address)
    user.page.context.add_init_script(
        f"sessionStorage.setItem('segdec.key', '{KEY}'); localStorage.setItem('segdec.reviewer', '{pasted}')"
    )
    page = user.open("review")
    shows(page, "A1")
    page.locator("#reviewer").click()
    name = page.locator("#name")
    expect(name).to_have_value("")  # a key that was stored as a name is deleted
    name.fill(f" {pasted} ")
    page.keyboard.press("Enter")
    expect(page.locator("#name-dialog")).to_be_visible()
    assert "API key" in name.evaluate("field => field.validationMessage")
    name.fill("Ada.Lovelace.1815@plant.example.com")
    page.keyboard.press("Enter")
    shows(page, "A1")
    expect(page.locator("#reviewer")).to_have_text("Ada.Lovelace.1815@plant.example.com")


def test_a_finger_draws_and_two_fingers_zoom(review, line):
    number = line.inspect_defects(1)[0]
    page = review(viewport={"width": 820, "height": 1180}, has_touch=True).page
    shows(page, "A1")
    page.locator("#tools label", has_text="Brush").tap()
    thinnest_brush(page)
    touch = page.context.new_cdp_session(page)

    def send(kind: str, *points: tuple[float, float]) -> None:
        places = [place(page, *point) for point in points]
        points_sent = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(places)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points_sent})

    send("touchStart", (20.5, 30.5))
    send("touchMove", (40.5, 30.5))
    send("touchEnd")
    before = page.locator("#picture").evaluate("canvas => canvas.toDataURL()")
    send("touchStart", (20.5, 20.5))
    send("touchStart", (20.5, 20.5), (40.5, 20.5))
    send("touchMove", (10.5, 20.5), (50.5, 20.5))
    send("touchEnd")
    expect(page.locator("#zoom-out")).to_be_enabled()
    assert page.locator("#picture").evaluate("canvas => canvas.toDataURL()") != before
    page.keyboard.press("0")
    for kind, x, down in (("mousePressed", 20.5, 1), ("mouseMoved", 30.5, 1), ("mouseReleased", 30.5, 0)):
        left, top = place(page, x, 25.5)
        pen = {"type": kind, "x": left, "y": top, "button": "left", "buttons": down, "pointerType": "pen"}
        touch.send("Input.dispatchMouseEvent", {**pen, "clickCount": 1})
    send("touchStart", (20.5, 35.5))  # the palm next to the pen
    send("touchMove", (40.5, 35.5))
    send("touchEnd")
    page.locator("#verdicts button[data-label=scratch]").click()
    expect(page.locator("#empty-title")).to_have_text("Nothing to review")
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected[8:12, 10:16] = 255
    expected[30, 20:41] = 255
    expected[25, 20:31] = 255
    np.testing.assert_array_equal(line.mask(number), expected)


def test_strokes_cover_half_their_width_and_the_pace_ignores_pauses(review):
    page = review().page
    draws = np.random.default_rng(0)
    for diameter in (1, 2, 5, 12):
        ends = draws.integers(0, 40, (2, 2)) + (0.5 if diameter % 2 else 0)
        rows = page.evaluate(
            """async ([from, to, diameter]) => {
                const { rasterizeLine } = await import("/static/shared/mask_editor/rasterize.js");
                const rows = [];
                const [a, b] = [from, to].map(([x, y]) => ({ x, y }));
                rasterizeLine(a, b, diameter, (...row) => rows.push(row));
                return rows;
            }""",
            [ends[0].tolist(), ends[1].tolist(), diameter],
        )
        covered = np.zeros((60, 60), bool)
        for y, start, end in rows:
            covered[y + 10, start + 10 : end + 10] = True
        centres = np.stack(np.meshgrid(np.arange(60), np.arange(60)), axis=-1) - 9.5
        along = ends[1] - ends[0]
        share = np.clip((centres - ends[0]) @ along / (along @ along), 0, 1)[..., None]
        away = np.linalg.norm(centres - ends[0] - share * along, axis=2)
        np.testing.assert_array_equal(covered, away <= diameter / 2 + 1e-6)
    pace = """async times => {
        const { Tally } = await import("/static/review/session.js");
        const tally = new Tally();
        for (const time of times) tally.add(time * 1000);
        return [tally.count, tally.perHour];
    }"""
    assert page.evaluate(pace, [0, 10, 20, 30]) == [4, None]
    assert page.evaluate(pace, [0, 10, 20, 3000, 3010, 3020]) == [6, 360]


def test_statistics_are_sentences(review, line):
    page = review().page
    none = {"value": None, "low": None, "high": None}
    found = {
        "inspected": 12800,
        "called_good": 12340,
        "called_defective": 410,
        "for_review": 50,
        "drawn": 700,
        "reviewed": 690,
        "unsure": 7,
        "missed": {"value": 13.7, "low": 3.2, "high": 40.4},
        "miss_rate": {"value": 0.034, "low": 0.008, "high": 0.09},
        "false_alarms": none,
        "defect_rate": {"value": 0.031, "low": 0.03, "high": 0.0345},
        "notes": ["Few."],
    }
    texts = page.evaluate(
        "async found => (await import('/static/review/statistics.js')).sentences(found)", found
    )
    assert texts["headline"] == "Of 12,340 predicted good, about 14 are defective (3.2 to 40)."
    assert texts["facts"] == [
        "Of 410 predicted defective: too few reviews to estimate how many are good.",
        "Of all defective parts, about 3.4\u202f% are missed (0.8\u202f% to 9\u202f%).",
        "Of all parts, about 3.1\u202f% are defective (3\u202f% to 3.5\u202f%).",
        "12,800 inspected, 50 of them uncertain. 700 selected for review, 690 reviewed, 7 of them unsure.",
    ]
    line.inspect_defects(1)
    page.locator("#show-statistics").click()
    expect(page.locator("#statistics .headline")).to_have_text(["No part was predicted good."] * 2)
    page.keyboard.press("g")
    page.keyboard.press("Escape")
    assert line.label(1) is None


def test_texts_have_contrast_and_candidates_are_shown(review, line):
    for index in (1, 7):
        number = line.inspect(line.predictor.add_toy_part(index), f"A1045{index}")
    line.disagree(number, "good", 0.312)
    user = review(viewport=LARGE)
    page = user.page
    shows(page, "A10457")
    expect(page.locator("#models .differs")).to_contain_text("Candidate · unnamed 1Goodscore 0.312differs")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for text in ("#facts", "#why-text", "#verdicts button", "#skip", "#models .differs .who", "#waiting"):
            assert contrast(page, text) >= 4.5, (scheme, text)
        user.screenshot(f"review-{scheme}")
    page.keyboard.press("1")
    shows(page, "A10451")


def test_the_page_fits_small_screens(review, line):
    line.disagree(line.inspect(line.predictor.add_toy_part(1), "A10451"), "good", 0.312)
    user = review(has_touch=True)
    page = user.page
    shows(page, "A10451")
    words = page.locator("#models .word")
    expect(words).to_have_text(["scratch", "Good"])
    page.keyboard.press("b")
    for width, height in ((820, 1180), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for shown in (*words.all(), page.locator("#view"), *page.locator("#verdicts button").all()):
            expect(shown).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if width > 600:
            assert page.evaluate("document.documentElement.scrollHeight") == height
        user.screenshot(f"review-{width}", full_page=True)
