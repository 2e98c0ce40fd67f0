"""All pages on large and small screens, with the real service."""

import httpx
import pytest
from playwright.sync_api import ViewportSize, expect

from segdec.images import encode_png
from tests.browser.conftest import SIZES, part_image, serving

PATHS = {
    "": "main",
    "line": "#defects img",
    "parts": "tbody tr",
    "parts/1": "#word",
    "trends": "#errors canvas",
    "review": "main[data-picture=shown]",
}
"""Paths of the pages, each with an element that appears when it is complete."""
MORE_SIZES: dict[str, ViewportSize] = {
    **SIZES,
    "tablet": {"width": 768, "height": 1024},
    "small-phone": {"width": 360, "height": 640},
    "turned-phone": {"width": 844, "height": 390},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a service that has inspected good and defective parts."""
    with serving(tmp_path_factory.mktemp("service"), record_good_share=1) as service:
        with httpx.Client(base_url=service.address, headers={"Content-Type": "image/png"}) as http:
            for brightness in (100, 101, 200, 201):
                http.post("v1/inspect", content=encode_png(part_image(brightness))).raise_for_status()
        yield service.address


@pytest.mark.parametrize("path", PATHS)
def test_pages_open_without_a_rejected_request_and_do_not_scroll_sideways(visit, address, path):
    user = visit(address)
    user.page.context.add_init_script("localStorage.setItem('segdec.reviewer', 'Ada')")
    page = user.open(path)
    expect(page.locator(PATHS[path]).first).to_be_visible()
    for size, window in MORE_SIZES.items():
        user.check_sizes(path.replace("/", "-") or "inspect", {size: window})
        for verdict in page.locator("#verdicts button").all():
            expect(verdict).to_be_in_viewport(ratio=1)
    assert user.rejections == []
