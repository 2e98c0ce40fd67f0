"""The settings page in a real browser, with the real service and a stub network."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import serving
from tests.browser.test_log_in import add_people, log_in

ROW = ".row:has(h3:text-is('{}'))"


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path, outbox_mqtt="mqtt://user:secret@127.0.0.1:1/segdec") as service:
        add_people(service)
        yield service


def row(page, title):
    return page.locator(ROW.format(title))


def test_an_administrator_changes_settings_and_users(visit, service):
    user = visit(service.address)
    page = user.open("settings")
    log_in(page, "anna")
    zone = row(page, "Time zone of the plant")
    zone.locator("input").fill("Europe/Nowhere")
    zone.get_by_role("button", name="Save").click()
    expect(zone.locator(".problem")).to_contain_text("expected a time zone such as Europe/Berlin")
    zone.locator("input").fill("Europe/Berlin")
    zone.get_by_role("button", name="Save").click()
    expect(zone).to_contain_text(re.compile("Changed by anna, .*; UTC at the start"))
    days = row(page, "Good parts")
    days.locator("input").fill("7,5")
    days.get_by_role("button", name="Save").click()
    expect(days.locator("input")).to_have_value("7.5")
    expect(row(page, "MQTT broker").locator(".value")).to_have_text("mqtt://127.0.0.1:1")
    assert "secret" not in page.content()
    user.check_sizes("settings", full_page=True)
    days.get_by_role("button", name="Value of the start").click()
    expect(days.locator("input")).to_have_value("30")
    page.locator("#new-user [name=name]").fill("Eva")
    page.locator("#new-user [name=password]").fill("a good password")
    page.get_by_role("button", name="Add user").click()
    expect(page.locator("#user-rows tr")).to_have_count(4)
    page.get_by_label("Role of eva").select_option("quality")
    page.locator("#new-user [name=name]").fill("Press 3")
    page.locator("#new-user [name=screen]").check()
    page.get_by_role("button", name="Add user").click()
    expect(page.locator("#link")).to_contain_text(f"{service.address}line?kiosk=on#log-in=")
    user.check_sizes("users", full_page=True)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("row", name="press 3").get_by_role("button", name="Remove").click()
    expect(page.locator("#user-rows tr")).to_have_count(4)
    user.open("changes")
    changes = page.locator("#changes li")
    zone_change = "the setting “Shifts and days: Time zone of the plant” from UTC to Europe/Berlin."
    expect(changes.filter(has_text=f"anna changed {zone_change}")).to_have_count(1)
    expect(changes.filter(has_text="anna changed the role of eva from operator to quality.")).to_have_count(1)


def test_a_reviewer_sees_the_settings_only(visit, service):
    page = visit(service.address).open("settings")
    log_in(page)
    expect(row(page, "Time zone of the plant").locator(".value")).to_have_text("UTC")
    expect(page.locator(".row input")).to_have_count(0)
    expect(page.locator("main > [data-lacks]")).to_have_text(
        "Somebody with the role engineer can do this: Change settings."
    )
    expect(page.locator("#users")).to_be_hidden()


def test_without_users_the_page_says_how_to_add_one(visit, tmp_path):
    with serving(tmp_path) as service:
        page = visit(service.address).open("settings")
        expect(page.locator("#open-access")).to_contain_text("everybody on this machine has the role quality")
        expect(page.locator("#open-access")).to_contain_text("python -m api user add NAME")
        expect(page.locator(".row input")).to_have_count(0)
        assert httpx.get(f"{service.address}v1/settings").status_code == 200


def test_an_engineer_by_the_local_role_changes_settings(visit, tmp_path):
    with serving(tmp_path, local_role="engineer") as service:
        page = visit(service.address).open("settings")
        days = row(page, "Good parts")
        days.locator("input").fill("7")
        days.get_by_role("button", name="Save").click()
        expect(days.locator(".hint")).to_contain_text("30 days at the start")
        expect(page.locator("#users")).to_be_hidden()
