"""The page of changes in a real browser, with the real service and a stub network."""

import httpx
from playwright.sync_api import expect

from segdec.images import encode_png
from tests.browser.conftest import part_image, serving

HTML = "<img src=x onerror=alert(1)>"


def test_changes_are_sentences_with_names(visit, tmp_path):
    with serving(tmp_path) as service, httpx.Client(base_url=service.address) as http:
        http.post("v1/inspect", content=encode_png(part_image()), headers={"Content-Type": "image/png"})
        for revision, (label, name) in enumerate((("good", "Eva"), ("scratch", HTML))):
            sent, headers = {"label": label, "reviewer": name}, {"If-Match": f'"{revision}"'}
            http.put("v1/records/1/review", json=sent, headers=headers).raise_for_status()
        http.delete("v1/records/1/review?reviewer=Eva", headers={"If-Match": '"2"'}).raise_for_status()
        user = visit(service.address)
        page = user.open("changes")
        items = page.locator("#changes li")
        expect(items).to_have_count(3)
        expect(items.nth(0)).to_contain_text("Eva withdrew the review; it is Good again.")
        expect(items.nth(1)).to_contain_text(f"{HTML} reviewed it as scratch.")
        page.locator("[name=who]").fill("Eva")
        page.keyboard.press("Enter")
        expect(items).to_have_count(2)
        page.get_by_role("link", name="Record 1").first.click()
        expect(page.locator("#changes li")).to_have_count(3)
