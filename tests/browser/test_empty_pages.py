"""Pages without content in a real browser: what each will show, and the next step."""

import httpx
import pytest
from playwright.sync_api import expect

from api.app import create_app
from api.roles import user_roles_of
from api.settings import Settings
from tests.api.live_server import served
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SIZES
from tests.browser.german_page import check_german

STEPS = {
    "": ("train", "engineer"),
    "line": ("docs", "engineer"),
    "review": ("parts", None),
    "parts": ("docs", "engineer"),
    "trends": ("docs", "engineer"),
    "label": ("datasets", "engineer"),
    "train": ("datasets", "engineer"),
    "models": ("train", "engineer"),
    "changes": ("settings", "engineer"),
}
"""Page → the page of the next step, and the role that takes it."""
MISSING = {
    "datasets?id=99": ("This data set does not exist", "datasets"),
    "datasets?id=gone": ("This data set does not exist", "datasets"),
    "label?data_set=99": ("This data set does not exist", "datasets"),
    "label?data_set=gone": ("This data set does not exist", "datasets"),
    "train?data_set=99": ("This data set does not exist", "datasets"),
    "train?job=99": ("This training does not exist", "train"),
    "train?job=gone": ("This training does not exist", "train"),
    "parts/99": ("This inspection does not exist", "parts"),
    "parts/gone": ("This inspection does not exist", "parts"),
}
"""Address of something that does not exist → title, and the page of the list."""
STATE = ":is(.empty-state, #none):visible:has(a.primary)"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a service without models, inspections, data sets and users."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "models").mkdir()
    given = {"models": folder / "models", "allow_no_model": True, "local_role": "engineer"}
    record = {"record": "required", "record_folder": folder / "record"}
    with served(create_app(Settings.model_validate({**given, **record}))) as (host, port):
        yield f"http://{host}:{port}/"


def open_as(visit, address, path, role, **window):
    """Opens a page as a user with a role."""
    user = visit(address, viewport=SIZES["large"], **window)
    session = {"user": {"name": "eva", "role": role, "roles": user_roles_of(role)}, "has_users": True}
    user.page.route("**/v1/session", lambda route: route.fulfill(json=session))
    user.open(path)
    return user


@pytest.mark.parametrize("path", STEPS)
def test_an_empty_page_says_what_it_will_show_and_links_to_the_next_step(visit, address, path):
    step, _ = STEPS[path]
    page = visit(address).open(path)
    state = page.locator(STATE)
    expect(state.locator("p").first).not_to_be_empty()
    expect(state.locator("a.primary:not([hidden])")).to_be_visible()
    assert state.locator("a.primary:not([hidden])").get_attribute("href") == step
    assert httpx.get(address + step).status_code == 200
    check_accessibility(page)


@pytest.mark.parametrize("path", MISSING)
def test_a_page_of_something_that_does_not_exist_says_so_and_links_to_the_list(visit, address, path):
    title, link = MISSING[path]
    page = visit(address).open(path)
    state = page.locator(STATE)
    expect(state.get_by_role("heading")).to_have_text(title)
    expect(page.locator("main :is(a, button):visible")).to_have_count(1)
    assert state.locator("a:visible").get_attribute("href") == link
    expect(page.locator("main")).not_to_contain_text("v1/")
    reason = "The address is wrong: /" if link == "parts" else "It was deleted, or the address is wrong: /"
    expect(state.locator("p").first).to_have_text(f"{reason}{path}")
    check_accessibility(page)


def test_a_search_without_a_result_links_to_all_inspections(visit, address):
    page = visit(address).open("parts?part_id=gone")
    expect(page.locator("#summary")).to_have_text("No inspection matches this search.")
    expect(page.locator("#table")).to_be_hidden()
    page.get_by_role("link", name="Show all inspections").click()
    expect(page).to_have_url(f"{address}parts")


@pytest.mark.parametrize("path", [path for path, (_, role) in STEPS.items() if role and path != "line"])
def test_others_read_who_takes_the_next_step(visit, address, path):
    user = open_as(visit, address, path, "quality", locale="de")
    state = user.page.locator(STATE)
    expect(state.locator("[data-lacks]")).to_contain_text("Jemand mit der Rolle Ingenieur kann das: ")
    expect(state.locator("a[data-needs]")).to_be_hidden()
    check_german(user, f"empty-{path or 'inspect'}")


def test_only_engineers_read_how_a_data_set_is_created_and_a_worker_started(visit, address):
    page = open_as(visit, address, "datasets", "reviewer").page
    expect(page.locator("#empty")).to_contain_text(
        "Somebody with the role engineer can do this: Create data set."
    )
    expect(page.locator("#new-data-set")).to_be_hidden()
    page.goto(f"{address}train")
    expect(page.locator("#no-worker")).to_contain_text("Trainings wait until one does")
    expect(page.locator("#no-worker summary")).to_be_hidden()
    page = open_as(visit, address, "train", "engineer").page
    page.locator("#no-worker summary").click()
    expect(page.locator("#no-worker pre")).to_have_text(
        f"python -m training worker --url {address} --key-file FILE"
    )


def test_without_a_record_no_page_offers_a_training(visit, tmp_path):
    given = {"models": tmp_path, "allow_no_model": True, "record": "off"}
    with served(create_app(Settings.model_validate(given))) as (host, port):
        page = visit(f"http://{host}:{port}/").open("models")
        expect(page.locator(".empty-state")).to_contain_text("put one into the folder of models")
        expect(page.locator(".empty-state a")).to_have_count(0)


def test_who_has_declined_the_log_in_can_log_in_later(visit, address):
    user = visit(address, viewport=SIZES["large"])
    page = user.page
    page.route("**/v1/session", lambda route: route.fulfill(json={"user": None, "has_users": True}))
    page.route("**/v1/records?**", lambda route: route.fulfill(status=401, json={}))
    user.open("parts")
    page.locator("#log-in-cancel").click()
    expect(page.locator("#problem")).to_have_text("Log in, or enter an API key.")
    page.locator("#account button", has_text="Log in").click()
    expect(page.locator("#log-in-title")).to_be_visible()
