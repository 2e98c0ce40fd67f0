"""The page of inspection plans in a real browser: zones, rules, simulation and versions."""

import json
from base64 import b64encode

import cv2
import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

from api.app import create_app
from api.settings import Settings
from segdec.images import encode_png
from tests.api.live_server import served
from tests.api.models.stub_models import NAME, StubModels
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import part_image, serving
from tests.browser.german_page import check_german

WIDTH, HEIGHT = 60, 40
PNG = {"Content-Type": "image/png"}


@pytest.fixture
def address(tmp_path, monkeypatch):
    """Of a service with a model and three recorded parts; two have a defect at (10, 8), 6 × 4 px."""
    shelf = StubModels(tmp_path / "models", monkeypatch)
    shelf.put("1")
    shelf.set_aliases(stable="1")
    app = create_app(
        Settings(
            models=shelf.folder,
            batch_sizes=(1,),
            record="required",
            record_folder=tmp_path / "record",
            local_role="engineer",
        )
    )
    with served(app) as (host, port):
        address = f"http://{host}:{port}/"
        inspect(address, 100, "P1")
        inspect(address, 200, "P2")
        inspect(address, 201, "P3")
        yield address


def inspect(address, brightness, part):
    picture = encode_png(part_image(brightness))
    answer = httpx.post(f"{address}v1/inspect?part_id={part}&station=press1", content=picture, headers=PNG)
    answer.raise_for_status()
    return answer.json()


class PlanPage:
    """What a person does on the page."""

    def __init__(self, page):
        self.page = page
        expect(page.locator("main")).to_have_attribute("data-picture", "shown")
        expect(page.locator("#plan-name")).to_be_visible()

    def point(self, x, y):
        box = self.page.locator("#picture").bounding_box()
        return box["x"] + x * box["width"] / WIDTH, box["y"] + y * box["height"] / HEIGHT

    def drag(self, start, end):
        mouse = self.page.mouse
        mouse.move(*self.point(*start))
        mouse.down()
        mouse.move(*self.point(*((a + b) / 2 for a, b in zip(start, end, strict=True))))
        mouse.move(*self.point(*end))
        mouse.up()

    def draw(self, key, start, end):
        """Draws a zone with the tool of a key."""
        count = self.page.locator(".zone").count()
        self.page.keyboard.press(key)
        expect(self.page.locator("#picture.drawing")).to_be_visible()
        self.drag(start, end)
        expect(self.page.locator(".zone")).to_have_count(count + 1)

    def draw_with_limit(self, px):
        """Draws a zone around the defect, with a rule that rejects longer ones."""
        self.draw("x", (5, 4), (30, 30))
        self.page.locator("#zone-new-rule").click()
        self.type("zone-rule-0-limit", px)

    def click(self, *points):
        for point in points:
            self.page.mouse.click(*self.point(*point))

    def plan(self):
        """The plan as it is stored next; the page is not changed."""
        plan = self.page.evaluate(
            """async () => {
                const { DraftStore } = await import("/static/shared/draft_store.js");
                const model = document.getElementById("model").value;
                const draft = await new DraftStore("segdec.plan_drafts").find(model);
                return JSON.stringify(draft.step.plan);
            }"""
        )
        return json.loads(plan)

    def choose(self, field, option):
        self.page.locator(f"#{field}").select_option(option)

    def type(self, field, text):
        self.page.locator(f"#{field}").fill(text)
        self.page.keyboard.press("Tab")


@pytest.fixture
def opened(visit, address):
    user = visit(address)
    return PlanPage(user.open("plan"))


def test_zones_are_drawn_moved_copied_and_undone(opened):
    page = opened.page
    opened.draw("x", (5, 4), (20, 16))
    expect(page.locator("#zone-name")).to_have_value("zone 1")
    opened.type("zone-name", "rim")
    expect(page.locator("#zone-ignored")).to_be_focused()  # the form was made again meanwhile
    opened.drag((12, 10), (14, 11))
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    page.locator("#picture").click(position={"x": 2, "y": 2})
    opened.click((12, 10))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("d")
    expect(page.locator(".zone")).to_have_count(2)
    assert opened.plan()["zones"] == {
        "rim": {"rectangle": {"corner": [8, 5], "width": 15, "height": 12}},
        "rim 2": {"rectangle": {"corner": [28, 25], "width": 15, "height": 12}},
    }
    page.keyboard.press("Delete")
    expect(page.locator(".zone")).to_have_count(1)
    for _ in range(2):
        page.keyboard.press("Control+z")
    expect(page.locator(".zone")).to_have_count(1)
    page.keyboard.press("Control+y")
    expect(page.locator(".zone")).to_have_count(2)
    assert len(opened.plan()["zones"]) == 2  # written
    page.reload()
    expect(page.locator(".zone")).to_have_count(2)  # the draft is kept


def test_each_shape_is_drawn_and_resized(opened):
    page = opened.page
    opened.draw("c", (20, 20), (28, 20))
    opened.drag((28, 20), (26, 20))
    opened.draw("r", (45, 20), (55, 20))
    page.keyboard.press("p")
    opened.click((2, 30), (14, 30), (8, 38))
    page.keyboard.press("Enter")
    expect(page.locator(".zone")).to_have_count(3)
    opened.drag((8, 30), (8, 28))  # a point between two corners
    opened.click((14, 30))
    page.keyboard.press("Delete")  # the corner
    opened.draw("b", (30, 4), (40, 4))
    page.keyboard.press("e")
    expect(page.locator("#picture.drawing")).to_be_visible()
    opened.drag((35, 0), (35, 9))
    expect(page.locator("#step-undo")).to_be_enabled()
    zones = list(opened.plan()["zones"].values())
    assert zones[0] == {"circle": {"center": [20, 20], "radius": 6}}
    assert zones[1] == {"ring": {"center": [45, 20], "inner_radius": 6, "outer_radius": 10}}
    assert zones[2] == {"polygon": [[2, 30], [8, 28], [8, 38]]}
    assert list(zones[3]) == ["mask"]


def test_what_is_typed_belongs_to_the_selected_zone(opened):
    page = opened.page
    opened.draw("x", (2, 2), (58, 38))
    page.locator("#zone-name").fill("part")
    page.locator("#zone-new-rule").click()  # the form is not made again before the click ends
    expect(page.locator("#zone-rule-0-limit")).to_have_value("10")
    opened.draw("x", (20, 10), (40, 30))
    page.locator("#zone-new-rule").click()
    page.locator("#zone-rule-0-limit").fill("7")
    opened.click((5, 5))  # in the other zone
    expect(page.locator("#zone-name")).to_have_value("part")
    expect(page.locator("#zone-rule-0-limit")).to_have_value("10")
    opened.click((30, 20))  # the smaller one of two
    expect(page.locator("#zone-rule-0-limit")).to_have_value("7")


def test_a_plan_is_made_by_keyboard_alone(opened):
    page = opened.page
    page.locator("#new-zone").focus()
    page.keyboard.press("Enter")
    page.locator("#zone-place summary").focus()
    page.keyboard.press("Enter")
    opened.type("zone-x", "10")  # the zone has the width of the photograph
    expect(page.locator("#zone-x:invalid")).to_have_value("10")
    for field, number in (("width", "30"), ("height", "20"), ("x", "10"), ("y", "5")):
        opened.type(f"zone-{field}", number)
    page.locator("#zone-new-rule").focus()
    page.keyboard.press("Enter")
    opened.type("zone-rule-0-limit", "4")
    expect(page.locator("#zone-rule-0-limit-unit")).to_be_focused()
    rectangle = {"corner": [10, 5], "width": 30, "height": 20}
    rule = {"longer_than": "4 px", "then": "reject"}
    assert opened.plan()["zones"] == {"zone 1": {"rectangle": rectangle, "rules": [rule]}}


def test_rules_are_sentences(opened):
    page = opened.page
    page.keyboard.press("l")
    opened.click((10, 20), (50, 20))
    expect(page.locator("#distance-px")).to_have_text("The points are 40 px apart.")
    page.keyboard.type("20")
    page.keyboard.press("Enter")
    expect(page.locator("#general")).to_contain_text("30 × 20 mm")
    opened.draw("x", (5, 4), (40, 30))
    page.locator("#zone-new-rule").click()
    expect(page.locator(".zone .rule").nth(1)).to_have_text("any defect within all limits→accept")
    opened.choose("zone-rule-0-limit-unit", "px")
    expect(page.locator("#zone-rule-0-limit")).to_have_value("2")  # 1 mm
    opened.choose("zone-rule-0-condition", "larger_than")
    expect(page.locator("#zone-rule-0-limit-unit")).to_have_value("mm²")
    opened.choose("zone-rule-0-then", "review")
    page.locator("#zone-new-rule").click()
    opened.choose("zone-rule-1-condition", "more_than")
    opened.type("zone-rule-1-limit", "2")
    page.locator("#part-new-rule").click()
    opened.choose("plan-outside_zones", "reject")
    expect(page.locator("#plan-outside_zones")).to_have_value("reject")
    plan = opened.plan()
    assert plan["photograph"]["known_distance"] == {"points": [[10, 20], [50, 20]], "mm": 20}
    assert plan["zones"]["zone 1"]["rules"] == [
        {"then": "review", "larger_than": "1 mm²"},
        {"then": "reject", "more_than": 2, "counted_from": "1 mm"},
    ]
    assert plan["part"]["rules"] == [{"more_than": 3, "counted_from": "1 mm", "then": "reject"}]
    assert plan["otherwise"] == {"outside_zones": "reject"}
    page.locator("#zone-ignored").check()
    expect(page.locator("#zone-new-rule")).to_have_count(0)
    assert list(opened.plan()["zones"]["zone 1"]) == ["rectangle", "ignored"]


def test_a_plan_is_simulated_before_it_is_stored(opened):
    page = opened.page
    opened.draw_with_limit("20")
    page.locator("#simulate-button").click()
    expect(page.locator("#simulation-summary")).to_contain_text("changes: 2 of 3, 67%")
    expect(page.locator("#simulated-parts li")).to_have_count(2)
    expect(page.locator("#simulated-parts li").first).to_contain_text("scratch → Review")
    page.get_by_role("button", name="Parts from Defect to Review: 2").click()
    expect(page.locator("#simulated-parts li")).to_have_count(2)
    page.get_by_role("button", name="Show on the photograph").last.click()
    expect(page.locator("#reference option:checked")).to_contain_text("P2")
    opened.type("zone-rule-0-limit", "30")
    expect(page.locator("#outdated")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#step-undo").click()
    expect(page.locator("#outdated")).to_be_hidden()
    page.locator("#store").click()
    expect(page.locator("#reason-lines")).to_contain_text("changes: 2 of 3")
    page.locator("#reason-dialog .cancel").click()
    expect(page.locator("#versions li")).to_have_count(0)


def test_a_plan_is_stored_activated_and_drawn(visit, address):
    user = visit(address)
    opened = PlanPage(user.open("plan"))
    page = opened.page
    opened.draw_with_limit("20")
    page.locator("#store").click()
    expect(page.locator("#reason-lines")).to_contain_text("not simulated")
    page.keyboard.type("drawing 4711")
    page.keyboard.press("Enter")
    expect(page.locator("#versions li")).to_contain_text("drawing 4711")
    expect(page.locator("#draft-state")).to_have_text("Stored as version 1")
    page.locator("#activate-1").click()
    dialog = page.locator("#reason-dialog")
    dialog.locator("[name=station]").fill("press")
    expect(page.locator("#station-hint")).to_contain_text("No part of this station")
    dialog.locator("[name=station]").fill("press1")
    expect(page.locator("#station-hint")).to_be_empty()
    dialog.locator("[name=reason]").fill("released")
    page.locator("#reason-yes").click()
    expect(page.locator("#versions .active")).to_contain_text("Active: press1")
    check_accessibility(page)
    expect(user.open("models").locator("article")).to_contain_text("parts 1: press1")

    answer = inspect(address, 202, "P4")
    assert (answer["decision"]["label"], answer["plan"]["version"]) == ("review", 1)
    page = user.open(f"parts/{answer['record_id']}")
    expect(page.locator("#explanation")).to_contain_text("zone 1: length of")
    expect(page.locator("#show-plan")).to_be_visible()
    assert user.rejections == []
    with_zones = page.locator("#picture").screenshot()
    page.locator("#show-plan").uncheck()
    assert page.locator("#picture").screenshot() != with_zones

    page = user.open("plan")
    opened = PlanPage(page)
    page.get_by_role("button", name="Deactivate …").click()
    page.locator("#reason-dialog [name=reason]").fill("back")
    page.locator("#reason-yes").click()
    expect(page.locator("#versions .active")).to_have_count(0)
    page.locator("#open-1").click()
    expect(page.locator("#draft-state")).to_have_text("Stored as version 1")


def test_a_plan_that_the_service_refuses_is_explained(visit, address):
    user = visit(address)
    opened = PlanPage(user.open("plan"))
    page = opened.page
    expect(page.locator("#store")).to_be_disabled()
    page.keyboard.press("p")
    opened.click((5, 5), (30, 30), (30, 5), (5, 30))
    page.keyboard.press("Enter")
    page.locator("#simulate-button").click()
    expect(page.locator("#problem")).to_contain_text("cross each other")
    page.keyboard.press("Control+z")
    page.locator("#new-zone").click()
    page.locator("#zone-new-rule").click()
    page.locator("#zone-rule-0-limit").fill("")
    page.locator("#simulate-button").click()
    expect(page.locator("#zone-rule-0-limit")).to_be_focused()  # nothing was sent
    assert len(user.rejections) == 1


def test_a_photograph_of_another_size_is_not_shown_below_the_zones(opened):
    page = opened.page
    opened.draw("x", (5, 4), (30, 30))
    picture = {"name": "other.png", "mimeType": "image/png", "buffer": encode_png(part_image()[:, :30])}
    page.locator("#reference-file").set_input_files(picture)
    expect(page.locator("#photograph-note")).to_contain_text("has 30 × 40 px, but the plan is for 60 × 40 px")
    page.locator("#new-size").click()
    expect(page.locator("#photograph-note")).to_be_empty()
    assert opened.plan()["photograph"] == {"width": 30, "height": 40}
    text = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"}
    page.locator("#reference-file").set_input_files(text)
    expect(page.locator("#problem")).to_contain_text("cannot show notes.txt")


def test_the_page_is_in_german_and_fits_small_windows(visit, address):
    user = visit(address, locale="de-DE")
    opened = PlanPage(user.open("plan"))
    opened.draw("x", (5, 4), (30, 30))
    user.page.locator("#zone-new-rule").click()
    user.page.locator("#zone-new-rule").click()
    opened.choose("zone-rule-1-condition", "more_than")
    user.page.locator("#simulate-button").click()
    expect(user.page.locator("#simulation-summary")).to_contain_text("von 3")
    check_accessibility(user.page)
    check_german(user, "plan")


def test_a_service_with_one_model_cannot_store_plans(visit, tmp_path):
    with serving(tmp_path, local_role="engineer") as service:
        inspect(service.address, 200, "P1")
        page = visit(service.address).open("plan")
        expect(page.locator("#fixed")).to_be_visible()
        expect(page.locator("#store")).to_be_hidden()
        page.locator("#new-zone").click()
        page.locator("#simulate-button").click()
        expect(page.locator("#simulation-summary")).to_contain_text("changes: 0 of 1")
        assert NAME not in page.locator("#model").inner_text()


def test_painting_ends_cleanly(opened):
    page = opened.page
    page.keyboard.press("b")
    expect(page.locator("#picture.drawing")).to_be_visible()
    opened.drag((10, 10), (20, 10))
    expect(page.locator(".zone")).to_have_count(1)
    page.mouse.move(*opened.point(40, 30))
    page.mouse.down()
    page.keyboard.press("v")  # in the middle of a stroke
    page.mouse.move(*opened.point(50, 30))
    page.mouse.up()
    page.keyboard.press("e")
    expect(page.locator("#picture.drawing")).to_be_visible()
    opened.drag((5, 10), (30, 10))
    expect(page.locator(".zone")).to_have_count(0)  # nothing of it is left


def test_hostile_plans_are_shown_or_explained(visit, address):
    grey = cv2.imencode(".png", np.full((HEIGHT, WIDTH), 255, np.uint8), [cv2.IMWRITE_PNG_BILEVEL, 1])[1]
    rectangle = {"corner": [20, 10], "width": 10, "height": 10}
    zones = {
        "null": {"rectangle": rectangle, "rules": [{"min_score": 0.125, "then": "review"}]},
        "__proto__": {"rectangle": rectangle},
        "two levels": {"mask": b64encode(grey.tobytes()).decode()},
    }
    plan = {"name": "<b>bold</b>", "photograph": {"width": WIDTH, "height": HEIGHT}, "zones": zones}
    body = {"plan": plan, "reason": "<script>alert(1)</script>"}
    httpx.post(f"{address}v1/models/{NAME}/plans", json=body).raise_for_status()
    opened = PlanPage(visit(address).open("plan"))
    page = opened.page
    page.locator("#open-1").click()
    expect(page.locator(".zone-title")).to_contain_text(["null", "__proto__", "two levels"])
    expect(page.locator("#problem")).to_contain_text("masks of these zones: two levels")
    opened.drag((50, 30), (55, 35))  # beside all zones
    assert opened.plan() == plan
    page.locator("#zone-0").click()
    page.locator("#simulate [name=count]").fill("1500")
    page.locator("#simulate-button").click()
    expect(page.locator("#simulation-summary")).to_contain_text("of 3")


def test_one_dialog_makes_one_change(visit, address):
    httpx.put(
        f"{address}v1/records/1/review",
        json={"label": "scratch", "reviewer": "Ada", "session": "desk"},
        headers={"If-Match": '"0"'},
    ).raise_for_status()
    opened = PlanPage(visit(address).open("plan"))
    page = opened.page
    page.locator("#new-zone").click()
    page.locator("#simulate-button").click()
    expect(page.locator("#simulation-details")).to_contain_text("but good by the plan: 1 of 1")
    for _ in range(2):
        page.locator("#store").evaluate("button => button.click()")
    page.keyboard.type("drawing 4711")
    page.keyboard.press("Enter")
    expect(page.locator("#versions li")).to_have_count(1)
    expect(page.locator("#store")).to_be_disabled()
    expect(page.locator("#reason-dialog")).to_be_hidden()
