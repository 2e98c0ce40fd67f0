"""Photographs that are unlike the training and that people confirm as usual: review, line and models page."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import expect

from api.app import create_app
from api.roles import user_roles_of
from api.settings import Settings
from segdec.images import encode_png
from tests.api.conftest import know_training
from tests.api.live_server import served
from tests.api.models.stub_models import StubModels
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import KEY, part_image, serving
from tests.browser.german_page import check_german, english_texts
from tests.browser.test_models import enter_key

ADA = "localStorage.setItem('segdec.reviewer', 'Ada')"


class Line:
    """Sends grey photographs to a service; those of the training have levels of 100 to 119."""

    def __init__(self, address: str) -> None:
        self.address, self.count = address, 0
        self.headers = {"Content-Type": "image/png", "X-API-Key": KEY}

    def inspect(self, level: int) -> tuple[str, bool]:
        """Inspects a photograph of station `cam 1`; returns its label, and whether it has the warning."""
        answer = self.send(np.full((32, 48, 1), level, np.uint8))
        warned = any(warning.startswith("unlike_training: ") for warning in answer["warnings"])
        return answer["decision"]["label"], warned

    def send(self, picture: NDArray[np.uint8]) -> Any:
        self.count += 1
        path = f"{self.address}v1/inspect?station=cam 1&part_id=A{self.count}"
        return httpx.post(path, content=encode_png(picture), headers=self.headers).json()


@pytest.fixture
def line(tmp_path, monkeypatch, keys, grey_training):
    shelf = StubModels(tmp_path / "models", monkeypatch)
    know_training(shelf.put("1"), grey_training)
    settings = {"models": shelf.folder, "batch_sizes": (1,), "record": "required", "admin_keys": keys}
    with served(create_app(Settings(record_folder=tmp_path / "record", **settings))) as (host, port):
        yield Line(f"http://{host}:{port}/")


def test_a_confirmed_photograph_makes_those_like_it_good_until_the_confirmation_is_undone(visit, line):
    assert line.inspect(62) == ("review", True)
    user = visit(line.address)
    user.page.context.add_init_script(ADA)
    page = user.open("review")
    enter_key(page)
    expect(page.locator("#warnings")).to_contain_text("of another part or surface than those of the training")
    expect(page.locator("main")).to_have_attribute("data-picture", "shown")
    check_accessibility(page)
    user.check_sizes("confirm-review")
    page.keyboard.press("w")
    expect(page.locator("#usual")).to_have_text("WConfirmed as usual")
    expect(page.locator("#usual")).to_be_disabled()
    expect(page.locator("#part")).to_have_text("A1")
    user.screenshot("confirmed-review")
    check_accessibility(page)
    page.keyboard.press("?")
    expect(page.locator("#keys dl")).to_contain_text("Usual photograph")
    assert line.inspect(64) == ("good", False)

    page = user.open("models")
    page.locator(".confirmed summary").click()
    expect(page.locator(".confirmed li")).to_contain_text("office, 1 photograph: 1")
    check_accessibility(page)
    user.check_sizes("confirmed-models", full_page=True)
    page.locator(".confirmed").get_by_role("button", name="Undo").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_contain_text("Undo: office, 1 photograph: done.")
    expect(page.locator(".confirmed")).to_have_count(0)
    assert line.inspect(66) == ("review", True)

    page.locator("#done").get_by_role("button", name="Undo").click()
    expect(page.locator("#confirm-text")).to_contain_text("The photographs are confirmed again")
    page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_have_text("Undone.")
    assert line.inspect(68) == ("good", False)
    page.locator("#latest li").first.get_by_role("button", name="Undo").click()
    # "Undone." is there already, from the click before.
    with page.expect_response(lambda response: response.request.method != "GET"):
        page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_have_text("Undone.")
    assert line.inspect(69) == ("review", True)


def test_the_page_of_a_part_says_why_a_good_score_is_for_review(visit, line):
    assert line.inspect(62) == ("review", True)
    page = visit(line.address).open("parts/1")
    enter_key(page)
    expect(page.locator("#explanation")).to_have_text(
        "The photograph is unlike those of the training: review instead of good."
    )
    expect(page.locator("#warnings")).to_have_text("of another part or surface than those of the training")


def test_a_photograph_without_the_warning_has_nothing_to_confirm(visit, tmp_path):
    with serving(tmp_path) as service:
        picture, headers = encode_png(part_image()), {"Content-Type": "image/png"}
        httpx.post(f"{service.address}v1/inspect", content=picture, headers=headers).raise_for_status()
        page = visit(service.address).open("review")
        expect(page.locator("main")).to_have_attribute("data-picture", "shown")
        expect(page.locator("#unlike")).not_to_be_visible()
        page.keyboard.press("w")
        expect(page.locator("#announcement")).to_have_text("This photograph has nothing to confirm.")


def test_the_line_shows_many_unlike_photographs_and_confirms_them(visit, line):
    for level in (60, 61, 62, 63, 64, 65):
        line.inspect(level)
    user = visit(line.address)
    page = user.open("line")
    enter_key(page)
    notice = page.locator("#notices .unlike")
    expect(notice).to_contain_text("cam 1 Photographs unlike the training: 6 of the last 6.")
    expect(notice).to_contain_text("Most often: of another part or surface than those of the training")
    user.check_sizes("unlike-line")
    page.set_viewport_size({"width": 1920, "height": 1080})
    notice.get_by_role("button", name="Show photographs").press("Enter")
    expect(page.locator("#unlike-photographs img")).to_have_count(6)
    check_accessibility(page)
    user.check_sizes("unlike-line-dialog")
    page.get_by_role("button", name="Confirm 6 photographs as usual").click()
    expect(page.locator("#unlike")).not_to_be_visible()
    expect(notice).to_have_count(0)
    assert line.inspect(62) == ("good", False)


def test_the_line_shows_all_photographs_that_it_confirms(visit, line):
    for count in range(14):
        line.inspect(60 + count % 6)
    page = visit(line.address).open("line")
    enter_key(page)
    page.locator("#notices").get_by_role("button", name="Show photographs").click()
    expect(page.locator("#unlike-confirm")).to_have_text("Confirm 12 photographs as usual")
    expect(page.locator("#unlike-photographs li")).to_have_count(12)


def test_who_may_not_review_cannot_confirm_on_the_line(visit, line):
    for level in (60, 61, 62, 63, 64):
        line.inspect(level)
    user = visit(line.address)
    known = {"name": "op", "role": "operator", "roles": user_roles_of("operator")}
    session = {"user": known, "has_users": True}
    page = user.open("line")
    enter_key(page)
    page.route("**/v1/session", lambda route: route.fulfill(json=session))
    page.reload()
    page.locator("#notices").get_by_role("button", name="Show photographs").click()
    expect(page.locator("#unlike-photographs img")).to_have_count(5)
    expect(page.locator("#unlike-close")).to_be_visible()
    expect(page.locator("#unlike-confirm")).not_to_be_visible()


def test_an_error_of_a_confirmation_is_shown_and_can_be_tried_again(visit, line):
    for level in (60, 61, 62, 63, 64):
        line.inspect(level)
    user = visit(line.address)
    detail = "A reload of 'parts' is running. Wait for its answer."
    busy = {"code": "reload_running", "detail": detail}
    page = user.open("line")
    enter_key(page)
    page.route("**/confirmed", lambda route: route.fulfill(status=409, json=busy))
    page.locator("#notices").get_by_role("button", name="Show photographs").click()
    page.locator("#unlike-confirm").click()
    expect(page.locator("#unlike-problem")).to_have_text(detail)
    expect(page.locator("#unlike-confirm")).to_be_enabled()
    page.locator("#unlike-close").click()
    page.goto(line.address + "review")
    expect(page.locator("main")).to_have_attribute("data-picture", "shown")
    page.keyboard.press("w")
    expect(page.locator("#notice")).to_have_text(detail)
    expect(page.locator("#usual")).to_be_enabled()


def test_the_pages_are_in_german(visit, line):
    for level in (60, 61, 62, 63, 64):
        line.inspect(level)
    user = visit(line.address, locale="de")
    page = user.open("line")
    enter_key(page, "Schlüssel verwenden")
    notice = page.locator("#notices .unlike")
    expect(notice).to_contain_text(
        "Bilder anders als im Training: 5 der letzten 5. Am häufigsten: Das Bild zeigt"
    )
    notice.get_by_role("button").click()
    expect(page.locator("#unlike-photographs img")).to_have_count(5)
    assert english_texts(page) == []
    user.screenshot("german-unlike-line")
    page.locator("#unlike-confirm").click()
    expect(notice).to_have_count(0)
    page = user.open("review")
    expect(page.locator("main")).to_have_attribute("data-picture", "shown")
    expect(page.locator("#warnings")).to_contain_text("ein anderes Teil oder eine andere Oberfläche")
    assert english_texts(page) == []
    user.screenshot("german-confirm-review")
    page = user.open("models")
    page.locator(".confirmed summary").click()
    check_german(user, "confirmed-models")
