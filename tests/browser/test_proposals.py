"""Labels that a model proposes, in a real browser with the real service."""

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import contrast, serving
from tests.browser.test_label import HEIGHT, WIDTH, Labels, drag, save, shows

SPOT = np.s_[8:14, 10:20]


@pytest.fixture
def labels(tmp_path):
    with serving(tmp_path, local_role="engineer") as service, httpx.Client(base_url=service.address) as http:
        yield Labels(service, http)


def send(labels, **spots):
    """Sends photographs with a spot of a brightness each, which is the score × 255."""
    for name, brightness in spots.items():
        pixels = np.full((HEIGHT, WIDTH, 3), 40, np.uint8)
        pixels[SPOT] = brightness
        labels.send(name, pixels)


def address(labels, page):
    number = labels.path.rsplit("/", 1)[1]
    return {"datasets": f"datasets?id={number}", "label": f"label?data_set={number}"}[page]


def sources(labels):
    """Label, source and whether there is a mask, by the name of the photograph."""
    found = {}
    for one in labels.photographs():
        history = labels.http.get(f"{labels.path}/photographs/{one['id']}/annotations").json()["annotations"]
        found[one["name"]] = [(each["label"], each["source"], each["has_mask"]) for each in history]
    return found


def test_only_photographs_that_match_the_selection_are_shown(visit, labels):
    send(labels, one=220, two=210, near=135, good=100)
    base = str(labels.http.base_url)
    user = visit(base, locale="de")
    page = user.open(address(labels, "datasets"))
    page.get_by_role("button", name="Annotationen vorschlagen").click()
    expect(page.locator("#proposals-state")).to_contain_text("4 Annotationen")
    page = user.open(address(labels, "label"))
    shows(page, "near")
    chosen = page.get_by_label("Angezeigte Bilder")
    chosen.select_option("Gut (vorgeschlagen)")
    shows(page, "good")
    save(page)  # accepts
    expect(page.locator("#empty-title")).to_have_text("Kein weiteres Bild passt zur Auswahl")
    chosen.select_option("scratch (vorgeschlagen)")
    shows(page, "near")
    with page.expect_response("**/annotation"):
        page.keyboard.press("g")
    page.locator("#selection").select_option("Anders annotiert als vorgeschlagen")
    shows(page, "near")
    expect(page.locator("#facts")).to_have_text("Annotation: Gut · Vorgeschlagen: scratch")
    page.locator("#selection").press("i")  # a letter in the choice is not a shortcut
    page.locator("#selection").press("Escape")
    shows(page, "near")
    page.reload()
    shows(page, "near")
    expect(chosen).to_have_value("state=corrected")
    chosen.select_option("Gut (annotiert)")
    for name in ("good", "near"):  # the oldest annotation first
        shows(page, name)
        page.keyboard.press("n")
    expect(page.locator("#show-skipped")).to_have_text("Die 2 übersprungenen Bilder zeigen")
    expect(page.locator("#empty-text")).to_be_empty()


def test_a_data_set_shows_those_labelled_otherwise_than_proposed(visit, labels):
    send(labels, one=220, near=135, good=100)
    user = visit(str(labels.http.base_url))
    page = user.open(address(labels, "datasets"))
    page.get_by_role("button", name="Propose labels").click()
    expect(page.locator("#proposals-state")).to_contain_text("3 labels proposed")
    numbers = {one["name"]: one["id"] for one in labels.photographs()}
    for name in ("near", "good"):  # a model proposes scratch for near
        path = f"{labels.path}/photographs/{numbers[name]}/annotation"
        labels.http.put(path, json={"label": "good", "based_on": None}).raise_for_status()
    page.reload()
    names, link = page.locator("#pictures strong"), page.get_by_role("link", name="Label these photographs")
    expect(names).to_have_count(3)
    expect(link).to_be_hidden()
    choice = page.get_by_label("Labelled as")
    choice.select_option("Not labelled")
    expect(names).to_have_text(["one"])
    assert link.get_attribute("href") == address(labels, "label")
    choice.select_option("Good")
    expect(names).to_have_text(["near", "good"])
    assert link.get_attribute("href") == f"{address(labels, 'label')}&state=labelled&label=good"
    choice.select_option("Labelled otherwise than proposed")
    expect(names).to_have_text(["near"])
    check_accessibility(page)
    user.check_sizes("data-set-corrected")
    link.click()
    shows(page, "near")
    expect(page.locator("#selection")).to_have_value("state=corrected")


def test_proposals_are_accepted_changed_and_rejected(visit, labels):
    send(labels, sure=220, edited=210, near=135, good=100, other=90)
    base = str(labels.http.base_url)
    user = visit(base)
    page = user.open(address(labels, "datasets"))
    page.get_by_role("button", name="Propose labels").click()
    expect(page.locator("#proposals-state")).to_contain_text("5 labels proposed by unnamed 0")
    expect(page.locator("#proposals-bar")).to_be_hidden()
    page = user.open(address(labels, "label"))
    shows(page, "near")
    text = "Proposed by unnamed 0: scratch, score 0.53. The model is uncertain."
    expect(page.locator("#proposal")).to_have_text(text)
    expect(page.locator("#save-text")).to_have_text("Accept scratch with the mask")
    page.keyboard.press("Enter")
    shows(page, "good")
    expect(page.locator("#save-text")).to_have_text("Accept: good")
    page.keyboard.press("2")
    expect(page.locator("#save-text")).to_have_text("Save spot without a mask")
    page.keyboard.press("g")
    shows(page, "other")
    expect(page.locator("#proposal")).to_have_text("Proposed by unnamed 0: good, score 0.35.")
    page.keyboard.press("Enter")
    shows(page, "edited")
    expect(page.locator("#proposal")).to_have_text("Proposed by unnamed 0: scratch, score 0.82.")
    page.keyboard.press("x")
    drag(page, (30.2, 20.2), (32.8, 21.8))
    expect(page.locator("#save-text")).to_have_text("Save scratch with the mask")
    page.keyboard.press("g")
    expect(page.locator("#notice")).to_contain_text("clear it first")
    page.keyboard.press("Enter")
    shows(page, "sure")
    page.keyboard.press("x")
    drag(page, (30.2, 20.2), (32.8, 21.8))
    page.locator("#reset").click()
    expect(page.locator("#save-text")).to_have_text("Accept scratch with the mask")
    page.keyboard.press("g")
    expect(page.locator("#empty-title")).to_have_text("No photograph without a label is left")
    expect(page.locator("#unlabelled")).to_have_text("0 without a label")
    assert sources(labels) == {
        "sure": [("good", "drawn", False)],
        "edited": [("scratch", "drawn", True)],
        "near": [("scratch", "proposed", True)],
        "good": [("good", "drawn", False)],
        "other": [("good", "proposed", False)],
    }
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected[SPOT] = 1
    np.testing.assert_array_equal(labels.mask(2), expected)
    expected[20:22, 30:33] = 1
    np.testing.assert_array_equal(labels.mask(1), expected)


def test_a_proposal_that_a_newer_run_has_replaced_is_not_shown(visit, labels):
    send(labels, near=135)
    base = str(labels.http.base_url)
    page = visit(base).open(address(labels, "datasets"))
    page.get_by_role("button", name="Propose labels").click()
    expect(page.locator("#proposals-state")).to_contain_text("1 label proposed by unnamed 0")
    user = visit(base)
    lost = {"status": 404, "content_type": "application/problem+json", "body": '{"code": "no_mask"}'}
    user.page.route("**/proposal/mask", lambda route: route.fulfill(**lost))
    page = user.open(address(labels, "label"))
    shows(page, "near")
    expect(page.locator("#proposal")).to_be_hidden()
    expect(page.locator("#save")).to_be_disabled()


def test_proposals_fit_screens_and_phones(visit, labels):
    send(labels, near=135, other=140, third=145)
    base = str(labels.http.base_url)
    for width, height in ((1920, 1080), (1024, 768), (390, 844)):
        user = visit(base, viewport={"width": width, "height": height}, locale="de")
        page = user.open(address(labels, "datasets"))
        if width == 1920:
            page.locator("#propose").click()
        expect(page.locator("#proposals-state")).to_contain_text("unnamed 0")
        expect(page.locator("#propose")).to_be_enabled()
        page.locator("#proposals-panel").scroll_into_view_if_needed()
        user.screenshot(f"proposals-data-set-{width}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page = user.open(address(labels, "label"))
        expect(page.locator("main")).to_have_attribute("data-picture", "shown")
        expect(page.locator("#proposal")).to_be_visible()
        user.screenshot(f"proposals-label-{width}")
        for selector in ("html", "#side"):
            assert page.locator(selector).evaluate("part => part.scrollWidth <= part.clientWidth")
        assert contrast(page, "#proposal") >= 4.5
        user.open("datasets")  # gives the photographs back


def test_a_few_labels_order_a_training_and_its_end_without_a_model_is_explained(visit, labels):
    send(labels, **{f"part{number}": 100 + number for number in range(8)})
    base = str(labels.http.base_url)
    page = visit(base).open(address(labels, "label"))
    page.locator("#proposals-panel summary").click()
    for number in range(6):
        shows(page, f"part{number}")
        good, defective = min(number, 3), max(number - 3, 0)
        expect(page.locator("#proposals-need")).to_contain_text(
            f"So far: {good} good, {defective} defective."
        )
        expect(page.locator("#propose-rest")).to_be_hidden()
        page.keyboard.press("g" if number < 3 else "1")
        if number >= 3:
            page.keyboard.press("Enter")
    page.get_by_role("button", name="Propose the rest from these labels").click()
    expect(page.locator("#proposals-training")).to_contain_text("Training 1 waits for a worker.")
    expect(page.locator("#proposals-job")).to_have_attribute("href", "train?job=1")
    expect(page.locator("#propose-rest")).to_be_hidden()
    steps = visit(base).open(address(labels, "datasets")).locator("#steps li")
    expect(steps.nth(2)).to_have_text("Let a model propose the rest A training runs.", use_inner_text=True)
    expect(steps.nth(3)).to_have_text("Train a model", use_inner_text=True)
    labels.http.post("v1/training/jobs/1/cancel")
    expect(page.locator("#proposals-training")).to_contain_text("was cancelled, so nothing is proposed")
    expect(page.locator("#propose-rest")).to_be_visible()


def test_proposals_of_a_chosen_model_appear_on_the_open_page(visit, labels):
    send(labels, one=220, two=215, three=210, near=135)
    user = visit(str(labels.http.base_url))
    page = user.open(address(labels, "label"))
    shows(page, "one")
    expect(page.locator("#proposal")).to_be_hidden()
    page.locator("#proposals-panel summary").click()
    expect(page.locator("#proposing-model option")).to_have_text(["unnamed 0, in use"])
    page.get_by_role("button", name="Propose labels").click()
    expect(page.locator("#proposals-state")).to_contain_text("4 labels proposed by unnamed 0")
    expect(page.locator("#proposal")).to_contain_text("Proposed by unnamed 0: scratch")
    shows(page, "near")
