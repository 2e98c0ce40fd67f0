"""All pages on large and small screens, with the real service."""

import httpx
import pytest
from playwright.sync_api import expect

from segdec.images import encode_png
from tests.browser.conftest import part_image, serving

SIZES = ((1920, 1080), (1024, 768), (768, 1024), (390, 844), (360, 640), (844, 390))


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a service with enough parts for all visits, also such without a defect."""
    with serving(tmp_path_factory.mktemp("service"), record_good_share=1) as service:
        with httpx.Client(base_url=service.address, headers={"Content-Type": "image/png"}) as http:
            for number in range(3 * len(SIZES)):
                http.post("v1/inspect", content=encode_png(part_image(100 + number))).raise_for_status()
                http.post("v1/inspect", content=encode_png(part_image(200 + number))).raise_for_status()
        yield service.address


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pages_open_without_a_rejected_request_and_do_not_scroll_sideways(visit, address, size):
    user = visit(address, viewport=dict(zip(("width", "height"), size, strict=True)))
    user.page.context.add_init_script("localStorage.setItem('segdec.reviewer', 'Ada')")
    for path, shown in (
        *(
            ("", "main"),
            ("docs", ".opblock"),
            ("line", "#defects img"),
            ("parts", "tbody tr"),
            ("trends", "#errors canvas"),
        ),
        ("review", "main[data-picture=shown]"),
    ):
        page = user.open(path)
        expect(page.locator(shown).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    for verdict in page.locator("#verdicts button").all():
        expect(verdict).to_be_in_viewport(ratio=1)
    assert user.rejections == []
