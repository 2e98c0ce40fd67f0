"""The models page in a real browser, with a service that serves stub models."""

import httpx
import pytest
from playwright.sync_api import expect

from api.app import create_app
from api.settings import Settings
from segdec.images import encode_png
from tests.api.live_server import served
from tests.api.models.stub_models import StubModels
from tests.browser.conftest import KEY, part_image

SIZES = {"large": (1920, 1080), "small": (1024, 768), "phone": (390, 844)}


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Version 1, stable, and 2, its candidate."""
    shelf = StubModels(tmp_path / "models", monkeypatch)
    for version in ("1", "2"):
        shelf.put(version)
    shelf.label(stable="1", candidate="2")
    return shelf


@pytest.fixture
def address(shelf, tmp_path, keys):
    settings = {"models": shelf.folder, "batch_sizes": (1,), "record": "required", "admin_keys": keys}
    app = create_app(Settings(record_folder=tmp_path / "record", **settings))
    with served(app) as (host, port):
        address = f"http://{host}:{port}/"
        picture, headers = encode_png(part_image()), {"Content-Type": "image/png"}
        httpx.post(f"{address}v1/inspect", content=picture, headers=headers).raise_for_status()
        yield address


def enter_key(page):
    page.locator("#key").fill(KEY)
    page.locator("#log-in-dialog").get_by_role("button", name="Use key").click()


def test_a_candidate_is_promoted_and_rolled_back(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("h3")).to_have_text(["Version 1 answers", "Version 2 candidate"])
    expect(page.locator("article").nth(1)).to_contain_text("Compared with the version that answers")
    page.get_by_role("button", name="Promote 2").click()
    expect(page.locator("#confirm-text")).to_contain_text(
        "Version 2 answers from now on instead of version 1"
    )
    page.locator("#confirm").get_by_role("button", name="Cancel").click()
    assert shelf.labels == {"stable": "1", "candidate": "2"}
    page.get_by_role("button", name="Promote 2").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#done")).to_have_text("Promote 2: done.")
    assert shelf.labels == {"stable": "2", "previous": "1"}
    page.get_by_role("button", name="Roll back to 1").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#done")).to_have_text("Roll back to 1: done.")
    assert shelf.labels == {"stable": "1"}


def test_a_refused_change_is_explained(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    expect(page.get_by_role("button", name="Stop the comparison")).to_be_visible()
    shelf.label(stable="1")
    page.get_by_role("button", name="Promote 2").click()
    page.locator("#confirm-yes").click()
    expect(page.get_by_role("alert")).to_contain_text("candidate")
    expect(page.locator("#done")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits_on_screens(visit, address, size):
    user = visit(address, viewport=dict(zip(("width", "height"), SIZES[size], strict=True)))
    page = user.open("models")
    enter_key(page)
    expect(page.locator("article").first).to_be_visible()
    page.locator("summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    user.screenshot(f"models-{size}", full_page=True)
