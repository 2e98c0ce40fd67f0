"""The label page in a real browser, with the real service."""

import base64

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, Route, expect

from datasets.layouts.toy import make_sample
from segdec.images import decode_mask_values, encode_png
from tests.api.data_sets.filled_data_set import EVERY_FIELD
from tests.browser.conftest import SIZES, RunningService, Visit, contrast, serving

LARGE = {"width": 1440, "height": 900}
WIDTH, HEIGHT = 60, 40
CLASSES = ["scratch", "spot"]


class Labels:
    """A data set of the service with photographs 0.png, 1.png, …, and what is stored about them."""

    def __init__(self, service: RunningService, http: httpx.Client) -> None:
        self.http = http
        created = http.post("v1/data-sets", json={"name": "Brackets", "classes": CLASSES})
        self.address, self.id = service.address, created.json()["id"]
        self.path = f"v1/data-sets/{self.id}"
        self.page = f"{self.address}label?data_set={self.id}"

    def add(self, count: int) -> None:
        for number in range(count):
            pixels = np.full((HEIGHT, WIDTH, 3), 40 + number, np.uint8)
            pixels[8:14, 10:20] = 220
            self.send(f"{number}.png", pixels)

    def send(self, name: str, pixels: NDArray[np.uint8]) -> None:
        path = f"{self.path}/photographs?name={name}"
        sent = self.http.post(path, content=encode_png(pixels), headers={"Content-Type": "image/png"})
        assert sent.status_code == 201, sent.text

    def photographs(self) -> list[dict]:
        return self.http.get(f"{self.path}/photographs").json()["photographs"]

    def labels(self) -> list[str | None]:
        return [shown["label"] for shown in self.photographs()]

    def annotate(self, mask: NDArray[np.uint8], **content: object) -> None:
        """Annotates the first photograph, as a program does."""
        sent = {**content, "mask": base64.b64encode(encode_png(mask)).decode(), "based_on": None}
        path = f"{self.path}/photographs/{self.photographs()[0]['id']}/annotation"
        self.http.put(path, json=sent).raise_for_status()

    def contents(self) -> list[dict]:
        """What the annotations of the first photograph say, the newest first."""
        path = f"{self.path}/photographs/{self.photographs()[0]['id']}/annotations"
        listed = self.http.get(path).json()["annotations"]
        return [{name: one[name] for name in one if name not in ("id", "at")} for one in listed]

    def mask(self, index: int) -> np.ndarray:
        number = self.photographs()[index]["id"]
        answer = self.http.get(f"{self.path}/photographs/{number}/mask")
        return decode_mask_values(answer.content, "mask", max_pixels=WIDTH * HEIGHT, classes=range(1, 3))


@pytest.fixture
def labels(tmp_path):
    with serving(tmp_path, local_role="engineer") as service, httpx.Client(base_url=service.address) as http:
        yield Labels(service, http)


@pytest.fixture
def open_page(browser, labels):
    """Opens the page; the errors of all of them are checked at the end."""
    contexts, visits = [], []

    def open_one(viewport=LARGE, **words):
        contexts.append(browser.new_context(viewport=viewport, **words))
        visits.append(Visit(contexts[-1], labels.page))
        visits[-1].open()
        return visits[-1]

    yield open_one
    for visit in visits:
        assert visit.errors == []
    for context in contexts:
        context.close()


def shows(page: Page, name: str) -> None:
    """Waits until the photograph is displayed."""
    expect(page.locator("#name")).to_have_text(name)
    expect(page.locator("main")).to_have_attribute("data-picture", "shown")


def save(page: Page) -> None:
    """Saves what is shown, and waits until it is stored."""
    with page.expect_response("**/annotation") as saved:
        page.keyboard.press("Enter")
    assert saved.value.ok


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags between two points of the photograph."""
    box = page.locator("#picture").bounding_box()
    for number, (x, y) in enumerate((start, end)):
        page.mouse.move(box["x"] + x / WIDTH * box["width"], box["y"] + y / HEIGHT * box["height"])
        if not number:
            page.mouse.down()
    page.mouse.up()


def test_photographs_are_labelled_by_keys_with_masks_of_several_classes(labels, open_page):
    labels.add(4)
    page = open_page().page
    shows(page, "0.png")
    expect(page.locator("#unlabelled")).to_have_text("4 without a label")
    page.keyboard.press("g")
    shows(page, "1.png")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    page.keyboard.press("2")
    drag(page, (30.2, 20.2), (32.8, 21.8))
    page.locator("#classes button", has_text="Ignore").click()
    drag(page, (0.2, 30.2), (4.8, 39.8))
    expect(page.locator("#save-text")).to_have_text("Save scratch, spot with the mask")
    page.keyboard.press("g")
    expect(page.locator("#notice")).to_contain_text("clear it first")
    page.keyboard.press("Enter")
    shows(page, "2.png")
    expect(page.locator("#tools input[value=box]")).to_be_checked()
    page.keyboard.press("2")
    expect(page.locator("#save-text")).to_have_text("Save spot without a mask")
    page.keyboard.press("Enter")
    shows(page, "3.png")
    page.keyboard.press("i")
    expect(page.locator("#empty-title")).to_have_text("No photograph without a label is left")
    expect(page.locator("#unlabelled")).to_have_text("0 without a label")
    assert labels.labels() == ["good", "scratch", "spot", "ignore"]
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected[8:14, 10:20], expected[20:22, 30:33], expected[30:40, 0:5] = 1, 2, 255
    np.testing.assert_array_equal(labels.mask(1), expected)


def test_a_thumbnail_is_shown_until_the_photograph_is_loaded(labels, open_page):
    labels.add(2)
    page = open_page().page
    shows(page, "0.png")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/image?form=png", hold)
    page.reload()
    expect(page.locator("#preview")).to_be_visible()
    page.wait_for_function("document.getElementById('preview').naturalWidth > 0")
    expect(page.locator("#save-text")).to_have_text("Choose a label or draw a defect")
    expect(page.locator("#save")).to_be_disabled()
    assert len(held) == 1  # the next photograph does not delay it
    with page.expect_request("**/image?form=png"):  # the next one, ahead
        held.pop().continue_()
    shows(page, "0.png")
    expect(page.locator("#preview")).to_be_hidden()


GREY = """() => {
    const canvas = document.getElementById("picture");
    return canvas.getContext("2d").getImageData(5, 5, 1, 1).data[0];
}"""
"""The brightness of a pixel near the left upper corner."""


def test_brightness_and_contrast_change_what_is_shown_and_stay_for_the_next_photograph(labels, open_page):
    labels.add(2)
    page = open_page().page
    shows(page, "0.png")
    assert page.evaluate(GREY) == 40
    page.get_by_role("button", name="Brightness and contrast").click()
    page.get_by_label("Brightness", exact=True).fill("2")
    assert page.evaluate(GREY) == 80
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    shows(page, "1.png")
    assert page.evaluate(GREY) == 82
    page.get_by_role("button", name="Brightness and contrast").click()
    page.locator("#light [type=reset]").click()
    page.wait_for_function(f"({GREY})() === 41")


def test_the_view_zooms_to_the_mask(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    page.keyboard.press("f")
    expect(page.locator("#zoom-out")).to_be_disabled()  # nothing is marked
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    page.keyboard.press("f")
    expect(page.locator("#zoom-out")).to_be_enabled()
    page.keyboard.press("0")
    expect(page.locator("#zoom-out")).to_be_disabled()
    page.get_by_role("button", name="Zoom to the mask").click()
    expect(page.locator("#zoom-out")).to_be_enabled()


def test_the_question_mark_lists_the_keys_and_how_to_label(labels, open_page):
    labels.add(1)
    page = open_page(locale="de").page
    shows(page, "0.png")
    page.keyboard.press("?")
    keys = page.locator("#keys")
    expect(keys.locator("li").first).to_have_text("Ein gutes Bild: G drücken.")
    listed = dict(
        zip(keys.locator("dt").all_text_contents(), keys.locator("dd").all_text_contents(), strict=True)
    )
    assert listed["B"] == "Pinsel"
    assert listed["[]"] == "Größe"
    assert listed["1"] == "scratch"
    assert listed["I"].startswith("Nicht verwenden: Das Bild bleibt im Datensatz")
    page.keyboard.press("g")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    assert labels.labels() == [None]
    page.locator("#show-keys").click()
    expect(keys).to_be_visible()


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_tools_fit_a_phone(labels, open_page, language):
    labels.add(1)
    page = open_page(SIZES["phone"], locale=language).page
    shows(page, "0.png")
    for tool in ("b", "p", "s", "v"):
        page.keyboard.press(tool)
        for part in page.locator("#tools :is(label, button):visible").all():
            box = part.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= SIZES["phone"]["width"]
    view = page.locator("#view-tools button:visible").evaluate_all("all => all.map((part) => part.offsetTop)")
    assert len(set(view)) == 1  # one row


def test_an_annotation_that_is_saved_again_loses_no_field(labels, open_page):
    labels.add(1)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:14, 10:20], mask[30:38, 40:50] = 1, 2  # the other class has the largest area
    labels.annotate(mask, **EVERY_FIELD.model_dump())
    page = open_page().page
    page.goto(f"{labels.page}&photograph={labels.photographs()[0]['id']}")
    shows(page, "0.png")
    save(page)
    again, first = labels.contents()
    assert again == first
    np.testing.assert_array_equal(labels.mask(0), mask)


def test_a_reload_does_not_return_to_the_photograph_of_the_address(labels, open_page):
    labels.add(2)
    page = open_page().page
    page.goto(f"{labels.page}&photograph={labels.photographs()[1]['id']}")
    shows(page, "1.png")
    page.locator("#skip").click()
    shows(page, "0.png")
    expect(page).to_have_url(labels.page)


def test_a_tab_keeps_its_session_when_it_is_reloaded(labels, open_page):
    """A request of the former page may lease photographs after the new one has asked for them."""
    labels.add(2)

    def session_of(page):
        with page.expect_request("**/next") as sent:
            page.goto(labels.page)
        shows(page, "0.png")
        return sent.value.post_data_json["session"]

    page = open_page().page
    shows(page, "0.png")
    first = session_of(page)
    assert session_of(page) == first
    page.goto("about:blank")
    assert session_of(open_page().page) != first


def test_boxes_stay_boxes_until_a_person_clears_them_or_says_otherwise(labels, open_page):
    labels.add(1)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:14, 10:20] = 1
    labels.annotate(mask, label="scratch", is_boxes=True)
    page = open_page().page
    page.goto(f"{labels.page}&photograph={labels.photographs()[0]['id']}")
    shows(page, "0.png")
    boxes = page.get_by_label("Boxes around the defects")
    expect(boxes).to_be_checked()
    page.keyboard.press("x")
    drag(page, (30.2, 20.2), (32.8, 21.8))
    expect(boxes).to_be_checked()
    page.locator("#clear").click()
    expect(boxes).to_be_hidden()
    drag(page, (10.2, 8.2), (19.8, 13.8))
    expect(boxes).not_to_be_checked()
    for _ in "drawn", "cleared":
        page.locator("#step-undo").click()
    expect(boxes).to_be_checked()
    save(page)
    page.keyboard.press("ArrowLeft")
    shows(page, "0.png")
    expect(boxes).to_be_checked()
    boxes.uncheck()
    save(page)
    assert [one["is_boxes"] for one in labels.contents()] == [False, True, True]


def test_drawn_boxes_are_exact_until_a_person_says_otherwise_also_after_a_reload(labels, open_page):
    labels.add(1)
    page = open_page(locale="de").page
    shows(page, "0.png")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    boxes = page.get_by_label("Rechtecke um die Fehler, nicht ihre Umrisse")
    expect(boxes).not_to_be_checked()
    boxes.check()
    wait_for_draft(page, 1, is_boxes=True)
    page.reload()
    shows(page, "0.png")
    expect(boxes).to_be_checked()
    save(page)
    assert [one["is_boxes"] for one in labels.contents()] == [True]


def test_clicks_mark_a_region_and_are_undone(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    page.keyboard.press("s")
    box = page.locator("#picture").bounding_box()
    scale = box["width"] / WIDTH
    page.mouse.click(box["x"] + 14.5 * scale, box["y"] + 10.5 * scale)
    expect(page.locator("#save-text")).to_have_text("Save scratch with the mask")
    page.keyboard.press("z")
    expect(page.locator("#save")).to_be_disabled()
    page.mouse.click(box["x"] + 14.5 * scale, box["y"] + 10.5 * scale)
    expect(page.locator("#save-text")).to_have_text("Save scratch with the mask")
    page.locator("#next-region").click()
    page.keyboard.press("Enter")
    expect(page.locator("#unlabelled")).to_have_text("0 without a label")
    expected = np.zeros((HEIGHT, WIDTH), bool)
    expected[8:14, 10:20] = True
    found = labels.mask(0) == 1
    assert (found & expected).sum() / (found | expected).sum() > 0.7  # a spot of 60 px


def test_clicks_on_a_photograph_are_not_used_for_the_next_one(labels, open_page):
    labels.add(2)
    page = open_page().page
    sent: list[list[dict]] = []
    page.on(
        "request",
        lambda request: request.url.endswith("/segment") and sent.append(request.post_data_json["clicks"]),
    )
    for index, (x, y) in enumerate([(14.5, 10.5), (12.5, 9.5)]):
        shows(page, f"{index}.png")
        page.keyboard.press("s")
        box = page.locator("#picture").bounding_box()
        scale = box["width"] / WIDTH
        page.mouse.click(box["x"] + x * scale, box["y"] + y * scale)
        expect(page.locator("#save-text")).to_have_text("Save scratch with the mask")
        page.keyboard.press("Enter")
    expect(page.locator("#unlabelled")).to_have_text("0 without a label")
    assert [[(click["x"], click["y"]) for click in clicks] for clicks in sent] == [[(14, 10)], [(12, 9)]]


def test_enter_saves_only_what_was_drawn_or_chosen(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    expect(page.locator("#save")).to_be_disabled()
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_have_text("Draw a defect or choose a label first.")
    page.keyboard.press("1")
    expect(page.locator("#labels [aria-pressed=true]")).to_have_text("1scratch")
    expect(page.locator("#notice")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page.locator("#next-step")).to_be_visible()
    expect(page.locator("#unlabelled")).to_have_text("0 without a label")
    assert labels.labels() == ["scratch"]
    page.locator("#next-step").click()
    expect(page.locator("#steps [aria-current=step]")).to_have_text("Label photographs")


def test_a_hint_disappears_with_the_first_drawing(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_have_text("Draw a defect or choose a label first.")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    expect(page.locator("#save-text")).to_have_text("Save scratch with the mask")
    expect(page.locator("#notice")).to_be_hidden()


def test_the_label_that_was_given_is_shown_in_the_language_of_the_page(labels, open_page):
    labels.add(2)
    page = open_page(locale="de").page
    shows(page, "0.png")
    page.keyboard.press("g")
    shows(page, "1.png")
    expect(page.locator("#unlabelled")).to_have_text("1 ohne Annotation")
    page.keyboard.press("ArrowLeft")
    shows(page, "0.png")
    expect(page.locator("#facts")).to_have_text("Annotation: Gut")


def test_the_annotation_of_the_photograph_before_is_copied_and_undone(labels, open_page):
    labels.add(3)
    page = open_page(locale="de").page
    shows(page, "0.png")
    expect(page.locator("#copy")).to_be_disabled()
    page.keyboard.press("r")
    expect(page.locator("#notice")).to_have_text("Es gibt noch keine Annotation, die kopiert werden kann.")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    page.keyboard.press("2")
    drag(page, (30.2, 20.2), (32.8, 21.8))
    page.get_by_label("Rechtecke um die Fehler").check()
    save(page)
    shows(page, "1.png")
    page.keyboard.press("r")
    expect(page.locator("#save-text")).to_have_text("scratch, spot mit Maske speichern")
    expect(page.get_by_label("Rechtecke um die Fehler")).to_be_checked()
    page.keyboard.press("z")
    expect(page.locator("#save")).to_be_disabled()
    page.locator("#copy").click()
    save(page)
    assert labels.labels() == ["scratch", "scratch", None]
    assert [one["is_boxes"] for one in labels.photographs()] == [True, True, False]
    np.testing.assert_array_equal(labels.mask(1), labels.mask(0))


def test_the_copy_has_the_label_of_the_photograph_before_also_without_a_mask(labels, open_page):
    labels.add(5)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:14, 10:20], mask[30:38, 40:50] = 1, 2  # the other class has the largest area
    labels.annotate(mask, label="scratch")
    labels.page += f"&photograph={labels.photographs()[0]['id']}"
    page = open_page().page
    shows(page, "0.png")
    save(page)
    shows(page, "1.png")
    page.keyboard.press("r")
    expect(page.locator("#save-text")).to_have_text("Save spot, scratch with the mask")
    save(page)
    shows(page, "2.png")
    page.keyboard.press("2")
    save(page)
    shows(page, "3.png")
    page.keyboard.press("r")
    expect(page.locator("#save-text")).to_have_text("Save spot without a mask")
    with page.expect_response("**/annotation"):
        page.keyboard.press("g")
    shows(page, "4.png")
    page.keyboard.press("r")
    expect(page.locator("#notice")).to_have_text("3.png has the label Good: press G.")
    assert labels.labels() == ["scratch", "scratch", "spot", "good", None]


def test_a_mask_of_another_size_is_not_copied(labels, open_page):
    labels.add(1)
    labels.send("small.png", np.full((HEIGHT, WIDTH - 10, 3), 40, np.uint8))
    page = open_page().page
    shows(page, "0.png")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    save(page)
    shows(page, "small.png")
    page.keyboard.press("r")
    expect(page.locator("#notice")).to_have_text(
        "0.png has 60 × 40 pixels and this photograph 50 × 40: the mask cannot be copied."
    )
    expect(page.locator("#save")).to_be_disabled()


def test_the_last_save_is_undone_from_the_next_photograph_and_what_was_drawn_stays(labels, open_page):
    labels.add(3)
    page = open_page(locale="de").page
    shows(page, "0.png")
    expect(page.locator("#undo-save")).to_be_disabled()
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    save(page)
    shows(page, "1.png")
    with page.expect_response("**/annotation"):
        page.keyboard.press("g")
    shows(page, "2.png")
    page.keyboard.press("u")
    shows(page, "1.png")
    expect(page.locator("#unlabelled")).to_have_text("2 ohne Annotation")
    page.locator("#undo-save").click()
    shows(page, "0.png")
    expect(page.locator("#save-text")).to_have_text("scratch mit Maske speichern")
    expect(page.locator("#undo-save")).to_be_disabled()
    page.keyboard.press("u")
    expect(page.locator("#notice")).to_have_text(
        "Es gibt keine Annotation, die rückgängig gemacht werden kann."
    )
    assert labels.labels() == [None, None, None]
    page.keyboard.press("z")
    expect(page.locator("#save")).to_be_disabled()
    assert [(one["label"], one["has_mask"]) for one in labels.contents()] == [
        (None, False),
        ("scratch", True),
    ]


def test_an_undone_save_restores_the_annotation_before_with_each_field(labels, open_page):
    labels.add(2)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:14, 10:20], mask[30:38, 40:50] = 1, 2
    labels.annotate(mask, **EVERY_FIELD.model_dump(), source="imported")
    labels.page += f"&photograph={labels.photographs()[0]['id']}"
    page = open_page().page
    shows(page, "0.png")
    page.locator("#clear").click()
    with page.expect_response("**/annotation"):
        page.keyboard.press("g")
    shows(page, "1.png")
    page.keyboard.press("ArrowLeft")
    shows(page, "0.png")
    expect(page.locator("#facts")).to_have_text("Label: Good")
    page.keyboard.press("u")
    expect(page.locator("#facts")).to_have_text("Label: scratch")
    shows(page, "0.png")
    restored, _, first = labels.contents()
    assert restored == first
    np.testing.assert_array_equal(labels.mask(0), mask)
    expect(page.get_by_label("Boxes around the defects")).to_be_checked()


def test_a_save_that_another_person_has_changed_since_is_not_undone(labels, open_page):
    labels.add(2)
    page = open_page().page
    shows(page, "0.png")
    with page.expect_response("**/annotation"):
        page.keyboard.press("g")
    shows(page, "1.png")
    first = labels.photographs()[0]
    changed = {"label": "spot", "based_on": first["annotation_id"]}
    labels.http.put(f"{labels.path}/photographs/{first['id']}/annotation", json=changed).raise_for_status()
    page.keyboard.press("u")
    expect(page.locator("#notice")).to_contain_text("The label of 0.png was not undone: ")
    shows(page, "1.png")
    assert labels.labels() == ["spot", None]


def test_a_data_set_that_does_not_exist_is_an_error_on_the_page(labels, open_page):
    page = open_page().page
    page.goto(f"{labels.page}999")
    expect(page.locator("#empty-title")).to_have_text("This data set does not exist")
    expect(page.get_by_role("link", name="All data sets")).to_be_visible()
    expect(page.locator("#empty-notice")).to_be_hidden()


@pytest.mark.parametrize("size", ["large", "small"])
def test_the_selection_is_readable(labels, open_page, size):
    labels.add(1)
    page = open_page(viewport=SIZES[size]).page
    shows(page, "0.png")
    text = "select => { select.style.width = 'auto'; return select.offsetWidth }"
    selection = page.locator("#selection")
    shown = selection.evaluate("select => select.offsetWidth")
    assert shown >= min(selection.evaluate(text), 220)


@pytest.mark.parametrize("photograph", ["999", "gone"])
def test_a_photograph_that_does_not_exist_is_named_with_a_link_to_the_others(labels, open_page, photograph):
    page = open_page().page
    labels.add(1)
    page.goto(f"{labels.page}&photograph={photograph}")
    expect(page.locator("#empty-title")).to_have_text("This photograph does not exist")
    expect(page.locator("#empty :is(a, button):visible")).to_have_text(["Label other photographs"])
    page.get_by_role("link", name="Label other photographs").click()
    shows(page, "0.png")


def test_a_photograph_that_another_person_has_open_is_an_error_with_a_way_to_the_others(labels, open_page):
    labels.add(5)
    first, second = open_page(), open_page()
    shows(first.page, "0.png")
    number = labels.photographs()[0]["id"]
    second.page.goto(f"{labels.page}&photograph={number}")
    expect(second.page.locator("#empty-notice")).to_contain_text("0.png")
    second.page.locator("#others").click()
    shows(second.page, "3.png")


def test_failed_requests_for_the_next_photographs_are_repeated_and_lose_no_label(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    failing = [True]
    page.route("**/next", lambda route: route.abort() if failing else route.continue_())
    page.reload()
    expect(page.locator("#empty-notice")).to_be_visible()
    failing.clear()
    page.locator("#retry").click()
    shows(page, "0.png")
    expect(page.locator("#empty-notice")).to_be_hidden()
    failing.append(True)
    with page.expect_response("**/annotation") as saved:
        page.keyboard.press("g")
    assert saved.value.ok
    expect(page.locator("#empty-notice")).to_be_visible()
    assert labels.labels() == ["good"]


STORED_DRAFT = """async () => {
    const answer = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await answer(indexedDB.open("segdec.drafts"));
    const drafts = await answer(database.transaction("drafts").objectStore("drafts").getAll());
    database.close();
    const { done, isBoxes } = drafts[0]?.state ?? { done: [] };
    return [done.length, Boolean(isBoxes)];
}"""


def wait_for_draft(page: Page, steps: int, is_boxes: bool = False) -> None:
    """Waits until the browser has stored a draft with this number of steps, of boxes or not."""
    for _ in range(600):
        if page.evaluate(STORED_DRAFT) == [steps, is_boxes]:
            return
        page.wait_for_timeout(50)
    pytest.fail("The draft is not stored.")


def test_an_unsaved_mask_and_its_undo_survive_a_reload(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    drag(page, (30.2, 20.2), (32.8, 21.8))
    wait_for_draft(page, 2)
    page.reload()
    shows(page, "0.png")
    expect(page.locator("#step-undo")).to_be_enabled()
    page.locator("#step-undo").click()
    page.keyboard.press("Enter")
    expect(page.locator("#empty-title")).to_have_text("No photograph without a label is left")
    expect(page.locator("#unlabelled")).to_have_text("0 without a label")
    expected = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected[8:14, 10:20] = 1
    np.testing.assert_array_equal(labels.mask(0), expected)


def test_an_unsaved_mask_is_not_shown_on_another_photograph_with_the_same_id(labels, open_page):
    labels.add(1)
    page = open_page().page
    shows(page, "0.png")
    page.keyboard.press("x")
    drag(page, (10.2, 8.2), (19.8, 13.8))
    wait_for_draft(page, 1)
    pixels = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    picture, digest = encode_png(pixels), "9" * 64  # as after a start with an empty record
    page.route("**/image?form=png", lambda route: route.fulfill(body=picture, content_type="image/png"))
    page.route("**/next", lambda route: answer_with_digest(route, digest))
    page.reload()
    shows(page, "0.png")
    expect(page.locator("#step-undo")).to_be_disabled()
    expect(page.locator("#save")).to_be_disabled()


def answer_with_digest(route: Route, digest: str) -> None:
    """Answers with the photographs of the service, as if each had another content."""
    answer = route.fetch()
    body = answer.json()
    for photograph in body["photographs"]:
        photograph["sha256"] = digest
    route.fulfill(response=answer, json=body)


def test_two_people_never_have_the_same_photograph(labels, open_page):
    labels.add(6)
    first, second = open_page(), open_page()
    shows(first.page, "0.png")
    shows(second.page, "3.png")  # each page has leased three
    first.page.keyboard.press("n")
    shows(first.page, "1.png")
    first.page.keyboard.press("ArrowLeft")
    shows(first.page, "0.png")
    second.page.close()
    first.page.keyboard.press("g")
    shows(first.page, "1.png")
    expect(first.page.locator("#unlabelled")).to_have_text("5 without a label")
    assert labels.labels()[0] == "good"


def test_the_page_fits_screens_and_phones(labels, open_page):
    for index in range(9):  # each page leases three
        image = make_sample(index, size=512).image
        labels.send(f"toy_{index}.png", image)
    for width, height in ((1920, 1080), (1024, 768), (390, 844)):
        visit = open_page({"width": width, "height": height}, locale="de")
        expect(visit.page.locator("main")).to_have_attribute("data-picture", "shown")
        visit.page.keyboard.press("b")
        drag(visit.page, (10, 10), (30, 20))
        visit.screenshot(f"label-{width}")
        for selector in ("html", "#side"):
            assert visit.page.locator(selector).evaluate("part => part.scrollWidth <= part.clientWidth")
        tools, classes = (
            visit.page.locator(part).first.bounding_box() for part in ("#tools .joined", "#classes")
        )
        assert (
            classes["y"] == tools["y"] or classes["x"] == tools["x"]
        )  # beside the tools or below, at the left
        assert contrast(visit.page, "#save-text") >= 4.5
