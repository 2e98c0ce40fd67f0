"""Logging in on the pages in a real browser, with the real service and a stub network."""

import re
from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import expect

from api.accounts.passwords import hash_password
from api.accounts.users import add_user, link_path, make_link
from api.app import create_app
from api.database.database import open_database, write_transaction
from api.roles import user_roles_of
from api.settings import Settings
from segdec.images import encode_png
from tests.api.accounts.openid_provider import CLIENT, Provider, running
from tests.api.live_server import served
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SIZES, PagePredictor, part_image, serving

PASSWORD = "correct horse battery"
HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture
def service(tmp_path):
    """The service with an inspection and the reviewer `bob`."""
    with serving(tmp_path) as service:
        picture, headers = encode_png(part_image()), {"Content-Type": "image/png"}
        httpx.post(f"{service.address}v1/inspect", content=picture, headers=headers).raise_for_status()
        service.link = add_people(service)
        yield service


def add_people(service):
    """Adds the administrator `anna`, the reviewer `bob` and a screen; returns the link of the screen."""
    engine = open_database(f"sqlite:///{service.folder}/record.db")
    now, hashed = datetime.now(UTC), hash_password(PASSWORD, "bob")
    with write_transaction(engine) as connection:
        add_user(connection, "anna", "administrator", password=hashed, who="test", now=now)
        add_user(connection, "bob", "reviewer", password=hashed, who="test", now=now)
        add_user(connection, HTML, "operator", password=None, is_screen=True, who="test", now=now)
        return link_path(make_link(connection, HTML, "test", now)[0])


def log_in(page, name="bob", password=PASSWORD):
    page.locator("#user-name").fill(name)
    page.locator("#password").fill(password)
    page.locator("#log-in-submit").click()


def test_log_in_and_out(visit, service):
    user = visit(service.address)
    page = user.open("parts")
    expect(page.locator("#log-in-title")).to_have_text("Log in")
    user.check_sizes("log_in")
    log_in(page, password="wrong password")
    expect(page.locator("#log-in-problem")).to_have_text("The name or the password is wrong.")
    log_in(page)
    expect(page.locator("#account")).to_have_text("bob")
    expect(page.locator("#results, table").first).to_contain_text("scratch")
    user.check_sizes("logged_in")
    page.locator("#menu").click()
    page.locator("#account button").click()
    expect(page.locator("#account-role")).to_have_text("bob, role: reviewer")
    user.check_sizes("account")
    page.locator("#log-out").click()
    expect(page.locator("#log-in-title")).to_be_visible()
    check_accessibility(page)


def test_a_phone_shows_log_in_outside_the_menu(visit, service):
    user = visit(service.address, viewport=SIZES["phone"])
    page = user.open("")
    page.locator("#account button", has_text="Log in").click()
    log_in(page)
    expect(page.locator("nav #account")).to_have_text("bob")
    user.check_sizes("logged_in")


def test_reviews_have_the_name_of_the_user(visit, service):
    user = visit(service.address)
    page = user.open("review")
    log_in(page)
    expect(page.locator("#account")).to_have_text("bob")
    expect(page.locator("#reviewer")).to_be_hidden()
    expect(page.locator("#name-dialog")).to_be_hidden()
    expect(page.locator("#verdicts button").first).to_be_enabled()
    page.keyboard.press("g")
    expect(page.locator("#last em")).to_have_text("saved")
    user.open("parts/1")
    expect(page.locator("#review")).to_contain_text("by bob")
    expect(page.locator("[name=reviewer]")).to_be_hidden()
    page.locator("[name=label]").select_option("scratch")
    page.get_by_role("button", name="Save review").click()
    expect(page.locator("#review")).to_contain_text("scratch, by bob")


def test_controls_are_hidden_unless_the_role_allows_them(visit, service):
    """Also from a role of which the pages know nothing, and before they know the user."""
    user = visit(service.address)
    page = user.open("parts")
    log_in(page)
    controls = page.locator("[data-needs]:visible")
    expect(page.locator("#account")).to_have_text("bob")
    assert set(controls.evaluate_all("found => found.map(one => one.dataset.needs)")) == {"reviewer"}

    def change_role(route):
        answer = route.fetch().json()
        answer["user"] |= {"role": "trainee", "roles": ["trainee"]}
        route.fulfill(json=answer)

    page.route("**/v1/session", change_role)
    user.open("parts")
    expect(page.locator("#account button")).to_have_attribute("title", "Logged in as trainee")
    expect(controls).to_have_count(0)
    page.unroute("**/v1/session")
    page.route("**/v1/session", lambda _: None)  # the answer never arrives
    user.open("parts")
    expect(page.locator("h1, header").first).to_be_visible()
    expect(controls).to_have_count(0)


@pytest.mark.parametrize(
    ("role", "linked"),
    [
        ("operator", "Inspect Line Parts"),
        ("reviewer", "Inspect Line Review Parts Data sets"),
        ("quality", "Inspect Line Review Parts Trends Plan Data sets Train Models Changes"),
        ("engineer", "Inspect Line Review Parts Trends Plan Data sets Train Models Settings Changes API"),
    ],
)
def test_a_role_has_links_to_the_pages_that_it_uses(visit, service, role, linked):
    page = visit(service.address).open("parts")

    def change_role(route):
        answer = route.fetch().json()
        answer["user"] |= {"role": role, "roles": user_roles_of(role)}
        route.fulfill(json=answer)

    log_in(page)
    expect(page.locator("#account")).to_have_text("bob")
    page.route("**/v1/session", change_role)
    page.reload()
    expect(page.locator("#account button")).to_have_attribute("title", f"Logged in as {role}")
    assert " ".join(page.locator("nav a:visible").all_inner_texts()) == linked
    assert page.locator("nav [role=group]:visible:not(:has(a:visible))").count() == 0


def test_own_password_is_changed(visit, service):
    page = visit(service.address).open("parts")
    log_in(page)
    page.locator("#account button").click()
    page.locator("#old-password").fill("wrong")
    page.locator("#new-password").fill("another good password")
    page.get_by_role("button", name="Change password").click()
    expect(page.locator("#account-problem")).to_have_text("The name or the password is wrong.")
    page.locator("#old-password").fill(PASSWORD)
    page.get_by_role("button", name="Change password").click()
    expect(page.locator("#account-dialog")).to_be_hidden()
    page.reload()
    expect(page.locator("#account")).to_have_text("bob")
    expect(page.locator("#log-in-dialog")).to_have_count(0)


def test_a_screen_logs_in_with_its_link_once(visit, service):
    screen = visit(service.address)
    page = screen.open(service.link)
    expect(page.locator("#word")).to_have_text(re.compile("defect", re.IGNORECASE))
    assert "log-in" not in page.url
    page.reload()
    expect(page.locator("#word")).to_have_text(re.compile("defect", re.IGNORECASE))
    expect(page.locator("#account button")).to_have_text(HTML)
    other = visit(service.address).open(service.link)
    expect(other.locator("#log-in-title")).to_have_text("Log in")
    expect(other.locator("#log-in-reason")).to_contain_text("This link was used before")


def test_the_role_is_named_that_a_page_needs(visit, service):
    page = visit(service.address).open("trends")
    log_in(page)
    expect(page.get_by_role("link", name="Changes")).to_be_hidden()
    expect(page.get_by_role("link", name="Review")).to_be_visible()
    expect(page.locator("#problem")).to_have_text(
        "'bob' has the role reviewer; this needs the role quality. Ask an administrator."
    )


def test_a_company_account_logs_in(visit, tmp_path):
    """The provider is another site, `localhost`: browsers must accept and send its cookies."""
    provider = Provider()
    with running(provider):
        provider.issuer = provider.issuer.replace("127.0.0.1", "localhost")
        settings = Settings(
            model="unused",
            record="required",
            record_folder=tmp_path / "record",
            public_url="http://127.0.0.1:1",
            openid_issuer=provider.issuer,
            openid_client=CLIENT,
            openid_roles={"qs": "quality"},
        )
        app = create_app(settings, PagePredictor())
        with served(app) as (host, port):
            address = f"http://{host}:{port}"
            app.state.settings = settings.model_copy(update={"public_url": address})
            app.state.open_id.redirect_uri = f"{address}/v1/session/openid/callback"
            user = visit(f"{address}/")
            page = user.open("trends")
            expect(page.locator("#log-in-title")).to_have_text("Log in")
            user.screenshot("log_in_with_provider")
            page.get_by_role("link", name="Company account").click()
            expect(page.locator("#account")).to_have_text("eva")
            assert page.url.startswith(f"{address}/trends")
            user.requests.clear()  # those to the provider


def test_a_page_that_the_role_does_not_allow_does_not_try_again(visit, service):
    engine = open_database(f"sqlite:///{service.folder}/record.db")
    now, hashed = datetime.now(UTC), hash_password(PASSWORD, "otto")
    with write_transaction(engine) as connection:
        add_user(connection, "otto", "operator", password=hashed, who="test", now=now)
    page = visit(service.address, locale="de").open("review")
    log_in(page, "otto")
    expect(page.locator("#offline-text")).to_have_text(
        "Ihre Rolle erlaubt das nicht. Fragen Sie einen Administrator."
    )
    expect(page.locator("#try-now")).to_be_hidden()
    expect(page.locator("#empty-title")).to_have_text("")
