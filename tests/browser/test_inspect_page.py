"""The inspection page in a real browser. Grey levels are scores × 255; the thresholds are 0.5."""

import json
import zlib

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from segdec.images import decode_image, encode_png
from segdec.inference.postprocessing import find_regions
from tests.api.conftest import know_training
from tests.browser.conftest import KEY, contrast, part_image, serving
from tests.image_files import encode, png


def two_spots(brightness: int = 204) -> NDArray[np.uint8]:
    """A part with a darker spot of 2 × 2 px (value 100), and a pixel of 180 at a corner of the other."""
    image = part_image(brightness)
    image[12, 16] = 180
    image[30:32, 40:42] = 100
    return image


PART = encode_png(two_spots())
DOUBTFUL = encode_png(two_spots(100))  # its highest score is 180 / 255 = 0.706
GOOD_PART = encode_png(np.full((40, 60), 30, np.uint8))
BROKEN = PART[:90]


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path, record="off") as service:
        yield service


@pytest.fixture
def open_page(service, visit):
    def open_page(**window):
        user = visit(service.address, **window)
        user.open()
        return user

    return open_page


def set_slider(page: Page, name: str, value: float) -> None:
    """Moves a slider as the pointer does: value, then the event."""
    page.locator(f"#{name}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", str(value)
    )


def regions_of(page: Page) -> list[str]:
    return [" ".join(row.split("\n")) for row in page.locator("#regions button").all_inner_texts()]


def pixel(page: Page, x: float, y: float) -> list[int]:
    """Red, green and blue of the drawn picture at a pixel of the photograph of 60 × 40 px."""
    return page.locator("#picture").evaluate(
        """(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(
            Math.floor(x / 60 * canvas.width), Math.floor(y / 40 * canvas.height), 1, 1).data].slice(0, 3)""",
        [x, y],
    )


def inspected(page: Page, word: str) -> None:
    expect(page.locator("#word")).to_have_text(word)


def sent(user) -> int:
    """Number of photographs sent to the service."""
    return sum("/predict" in url for url in user.requests)


def test_decision_overlay_outline_and_downloads_of_a_dropped_photograph(open_page, service):
    service.predictor.area = np.zeros((40, 60), np.uint8)
    service.predictor.area[2:38, 3:58] = 255
    user = open_page()
    page = user.page
    user.drop(("part.old.png", PART))
    inspected(page, "Defect: scratch")
    expect(page.locator("#reason")).to_have_text("Score 0.800 reaches the threshold 0.500.")
    expect(page.locator("#facts")).to_contain_text("60 × 40 px, 8 bit, PNG · unnamed 0 · ")
    expect(page.locator("#scale")).to_have_attribute("aria-label", "Score 0.800 of 1, threshold 0.500")
    assert regions_of(page) == ["1 10, 8 7 × 5 25 0.80"]
    assert pixel(page, 13.5, 10.5) == [224, 159, 138]  # 204 below 40 % of (255, 92, 40)
    assert pixel(page, 40.5, 20.5) == [30, 30, 30]
    red, green, blue = pixel(page, 3.0, 20.5)  # the outline is as wide as the screen asks for
    assert green > red > blue > 30
    set_slider(page, "mask-slider", 0.3)
    with page.expect_download() as download:
        page.locator("#save-mask").click()
    assert download.value.suggested_filename == "part.old.mask.png"
    mask = cv2.imdecode(np.fromfile(download.value.path(), np.uint8), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(mask, np.where(two_spots() >= 77, 255, 0))
    reached = set()
    page.locator("header a").last.focus()
    for _ in range(18):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.closest('ol')?.id"))
    sliders = {"score-slider", "mask-slider", "opacity-slider"}
    assert {"files", "history", *sliders, "regions", "save-mask"} <= reached


def test_sliders_change_mask_and_decision_without_a_request(open_page):
    user = open_page()
    page = user.page
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    before = len(user.requests)
    set_slider(page, "mask-slider", 0.3)  # 76.5: the second spot has 100
    assert regions_of(page) == ["1 10, 8 7 × 5 25 0.80", "2 40, 30 2 × 2 4 0.39"]
    set_slider(page, "mask-slider", 0.75)  # 191.25: the corner's 180 no longer reaches it
    assert regions_of(page) == ["1 10, 8 6 × 4 24 0.80"]
    set_slider(page, "mask-slider", 0.9)
    assert regions_of(page) == []
    expect(page.locator("#no-regions")).to_be_visible()
    assert pixel(page, 13.5, 10.5) == [204, 204, 204]
    page.locator("#score-number").fill("0.85")
    inspected(page, "Good")
    expect(page.locator("#changed")).to_have_text("At your threshold. Model’s decision: Defect: scratch.")
    expect(page.locator("#history .tag")).to_have_text("✓ Good, at your threshold")
    set_slider(page, "opacity-slider", 0)
    page.locator("#reset").click()
    inspected(page, "Defect: scratch")
    assert regions_of(page) == ["1 10, 8 7 × 5 25 0.80"]
    assert pixel(page, 13.5, 10.5) == [204, 204, 204]
    assert len(user.requests) == before


def test_zoomed_picture_centres_the_picked_region(open_page):
    user = open_page()
    page = user.page
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    assert pixel(page, 30, 20) == [30, 30, 30]
    row, picture = page.locator("#regions button"), page.locator("#picture")
    unmarked = picture.evaluate("canvas => canvas.toDataURL()")
    row.hover()
    assert picture.evaluate("canvas => canvas.toDataURL()") != unmarked
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    expect(page.locator("#zoom-in")).to_be_disabled()
    row.click()
    assert pixel(page, 30, 20) == [224, 159, 138]
    box = picture.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 220, middle[1], steps=4)
    page.mouse.up()
    assert pixel(page, 30, 20) == [30, 30, 30]
    expect(row).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Fit").click()
    row.click()  # deselects
    page.mouse.move(0, 0)
    for width in (900, 600, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert pixel(page, 13.5, 10.5) == [224, 159, 138]


def filtered_png(image: NDArray[np.uint8]) -> bytes:
    """An 8-bit grey PNG whose rows use the filters 0 to 4 (none, left, above, mean, Paeth) in turn."""
    before = np.pad(image.astype(int), ((1, 0), (1, 0)))
    left, above, corner = before[1:, :-1], before[:-1, 1:], before[:-1, :-1]
    away = [abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)]
    nearest = np.argmin(away, axis=0)  # the first of equals, as the format requires
    paeth = np.choose(nearest, [left, above, corner])
    rows = b""
    for y, row in enumerate(image):
        guess = (0, left[y], above[y], (left[y] + above[y]) // 2, paeth[y])[y % 5]
        rows += bytes([y % 5]) + ((row.astype(int) - guess) % 256).astype(np.uint8).tobytes()
    return png(image.shape[1], image.shape[0], 8, 0, zlib.compress(rows))


def test_png_filters_and_the_scale_of_scores(open_page):
    page = open_page().page
    image = np.random.default_rng(0).integers(0, 256, (25, 9), dtype=np.uint8)
    found = page.evaluate(
        """async bytes => {
            const { readGrey } = await import("/static/shared/png.js");
            const { width, height, pixels } = await readGrey(new Uint8Array(bytes));
            return [width, height, ...pixels];
        }""",
        list(filtered_png(image)),
    )
    assert found == [9, 25, *image.ravel().tolist()]
    places, scores, texts = page.evaluate(
        """async () => {
            const { toPosition, scoreAt, short } = await import("/static/inspect/score_scale.js");
            return [
                [0, 1e-9, 1e-5, 0.01, 0.5, 0.99, 1 - 1e-5, 1].map(toPosition),
                [0, 0.3, 0.5, 0.7, 1].map(scoreAt),
                [0, 0.5, 0.0912443, 0.00012345, 0.99987654, 1].map(short),
            ];
        }"""
    )
    # Even in log-odds: ln(0.01 / 0.99) = −4.5951 and ln(1e5) = 11.5129: 0.5 − 4.5951 / 23.0259 = 0.3004
    assert places == pytest.approx([0, 0, 0, 0.3004, 0.5, 0.6996, 1, 1], abs=1e-4)
    # 1e5 ** ±0.4: 100 to 1, or 1 to 100
    assert scores == pytest.approx([0, 1 / 101, 0.5, 100 / 101, 1], abs=1e-9)
    assert texts == [0, 0.5, 0.0912, 0.000123, 0.999877, 1]


def test_regions_and_their_labels_are_those_of_the_service(open_page):
    """Noise: lines of one pixel, regions that touch or cross, holes and regions in them."""
    noise = np.random.default_rng(21).normal(size=(2, 60, 70))
    stored = np.clip(128 + 200 * cv2.GaussianBlur(noise[0], (0, 0), 0.8), 0, 255).astype(np.uint8)
    kinds = (1 + (cv2.GaussianBlur(noise[1], (0, 0), 1.5) > 0)).astype(np.uint8)
    names = ("good", "scratch", "stain")
    scores = stored.astype(np.float32) / 255
    mask = np.where(stored >= 128, np.uint8(255), np.uint8(0))
    labelled = [
        {"polygon": region.polygon, "holes": region.holes, "label": names[kind]}
        for kind in (1, 2)
        for region in find_regions(mask * (kinds == kind), scores)
    ]
    found, labels = open_page().page.evaluate(
        """async ([pixels, regions]) => {
            const { findRegions } = await import("/static/shared/regions.js");
            const { rasterizeLabels } = await import("/static/inspect/region_labels.js");
            const scores = { width: 70, height: 60, pixels: new Uint8Array(pixels) };
            const { names, indices } = rasterizeLabels(scores, { mask: { threshold: 0.5 }, regions });
            const found = findRegions(scores, 0.5).regions.map((region) => [...region.box, region.area]);
            return [found, [...indices].map((index) => names[index - 1] ?? "good")];
        }""",
        [stored.ravel().tolist(), labelled],
    )
    assert len(labelled) > 50
    assert found == [[*region.bbox, region.area_px] for region in find_regions(mask, scores)]
    assert labels == [names[kind] for kind in np.where(mask, kinds, 0).ravel()]


def test_several_files_are_sent_two_at_once_and_stay_in_the_history(open_page, service):
    user = open_page()
    page = user.page
    service.predictor.gate.clear()
    parts = [(f"part {n}.png", encode_png(two_spots(110 + 40 * n))) for n in range(4)]
    user.drop(*parts, ("good.png", GOOD_PART), ("broken.jpg", b"\xff\xd8\xff\xe0 not a photograph"))
    expect(page.locator("#history .tag", has_text="Inspecting")).to_have_count(2)
    expect(page.locator("#history .tag", has_text="Waiting")).to_have_count(4)
    service.predictor.gate.set()
    expect(page.locator("#progress p")).to_have_text("5 of 6 inspected")
    expect(page.locator("#uninspected-count")).to_have_text("1 not inspected")
    names = ["broken.jpg", *(name for name, _ in parts), "good.png"]
    assert page.locator("#history .name").all_inner_texts() == names
    inspected(page, "Defect: scratch")
    expect(page.locator("#name")).to_have_text("part 0.png")
    page.locator("#history button", has_text="good.png").click()
    inspected(page, "Good")
    expect(page.locator("#no-regions")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#name")).to_have_text("part 3.png")
    expect(page.locator("#reason")).to_have_text("Score 0.902 reaches the threshold 0.500.")
    assert sent(user) == 6


def prominence(page: Page) -> list[float]:
    """Size and weight of the decision's word, width of its border, and its ground's distance from the page's.

    The distance is the sum of the differences in red, green and blue.
    """
    return page.evaluate(
        """() => {
            const style = (selector) => getComputedStyle(document.querySelector(selector));
            const rgb = (color) => color.match(/[0-9.]+/g).slice(0, 3).map(Number);
            const [here, around] = ["#decision", "body"].map((part) => rgb(style(part).backgroundColor));
            const away = here.reduce((sum, value, index) => sum + Math.abs(value - around[index]), 0);
            const word = style("#word");
            return [word.fontSize, word.fontWeight, style("#decision").borderTopWidth, away].map(parseFloat);
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_review_is_shown_and_not_inspected_is_the_most_prominent_state(open_page, service, scheme):
    service.predictor.threshold, service.predictor.review = 0.75, 0.25
    user = open_page(color_scheme=scheme)
    page, measured = user.page, {}
    words = {"Good": GOOD_PART, "Review": DOUBTFUL, "Defect: scratch": PART, "Not inspected": BROKEN}
    for word, data in words.items():
        user.drop((f"{word}.png", data))
        inspected(page, word)
        measured[word] = prominence(page)
    *others, broken = measured.values()
    assert all(a >= b for other in others[1:] for a, b in zip(broken, other, strict=True)), measured
    assert all(broken[3] > 2 * other[3] for other in others), measured
    expect(page.locator("#hold")).to_have_text("Hold the part: its condition is unknown.")
    grounds = page.locator("#history [data-result]").evaluate_all(
        "rows => rows.map((row) => getComputedStyle(row).backgroundColor)"
    )
    assert grounds[0] != grounds[1] == grounds[2] == grounds[3]
    user.drop(("again.png", DOUBTFUL))
    expect(page.locator("#reviews p")).to_have_text("? 2 for review")
    tags = page.locator("#history .tag")
    expect(tags).to_have_text(["! Not inspected", "? Review", "✕ Defect: scratch", "? Review", "✓ Good"])
    for name in ("Review.png", "again.png"):
        page.get_by_role("button", name="Show next for review").click()
        expect(page.locator("#name")).to_have_text(name)
        inspected(page, "Review")
    expect(page.locator("#reason")).to_have_text("Score 0.706 is between the thresholds 0.250 and 0.750.")
    expect(page.locator("#check")).to_be_visible()
    expect(page.locator("#decision svg.review")).to_be_visible()
    description = "Score 0.706 of 1, review from 0.250, threshold 0.750"
    expect(page.locator("#scale")).to_have_attribute("aria-label", description)
    expect(page.locator("#score-limits")).to_have_text("Review from 0.250, defect from 0.750")
    for part in ("#word", "#reason", "#check", "#reviews p", ".tag", "#zone-review"):
        assert contrast(page, part) >= 4.5, part
    user.screenshot(f"inspect-review-{scheme}")


def test_a_photograph_unlike_the_training_is_for_review_at_any_threshold(open_page, service, grey_training):
    know_training(service.predictor, grey_training)
    user = open_page()
    page = user.page
    user.drop(("unlike.png", encode_png(np.full((32, 48, 1), 60, np.uint8))))
    inspected(page, "Review")
    expect(page.locator("#reason")).to_have_text(
        "The photograph is unlike those of the training: review instead of good."
    )
    expect(page.locator("#reviews p")).to_have_text("? 1 for review")
    set_slider(page, "score-slider", 0.9)
    inspected(page, "Review")
    set_slider(page, "score-slider", 0.1)
    inspected(page, "Defect: scratch")


@pytest.mark.parametrize(("review", "threshold"), [(None, 0.2), (0.1, 0.5)])
def test_a_threshold_makes_no_photograph_unlike_the_training_good(
    open_page, service, grey_training, review, threshold
):
    """Its score of 60 / 255 is that of a defect, or for review by itself."""
    know_training(service.predictor, grey_training)
    service.predictor.threshold, service.predictor.review = threshold, review
    user = open_page()
    user.drop(("unlike.png", encode_png(np.full((32, 48, 1), 60, np.uint8))))
    inspected(user.page, "Defect: scratch" if review is None else "Review")
    set_slider(user.page, "score-slider", 0.9)
    inspected(user.page, "Review")
    expect(user.page.locator("#reason")).to_have_text(
        "The photograph is unlike those of the training: review instead of good."
    )


def test_photographs_that_were_not_inspected_are_tried_again_together(visit, service):
    user = visit(service.address)
    page = user.page
    page.route("**/v1/predict*", lambda route: route.abort())
    user.open()
    broken = "<img src=x onerror=alert(1)>.png"
    user.drop(("a.png", PART), ("b.png", GOOD_PART), (broken, BROKEN))
    expect(page.locator("#uninspected-count")).to_have_text("3 not inspected")
    expect(page.locator("#uninspected")).to_have_attribute("role", "alert")
    expect(page).to_have_title("3 not inspected – Inspect")
    expect(page.locator("#reason")).to_contain_text("No response: the service is stopped or unreachable")
    page.get_by_role("button", name="Show next").click()
    page.get_by_role("button", name="Show next").click()
    expect(page.locator("#name")).to_have_text("b.png")
    expect(page.locator("#progress p")).to_have_text("0 of 3 inspected")
    band = page.locator("#view").evaluate("view => getComputedStyle(view, '::before').content")
    assert band == '"Not inspected"'
    user.screenshot("inspect-not-inspected")
    page.unroute("**/v1/predict*")
    page.get_by_role("button", name="Retry all").click()
    expect(page.locator("#uninspected-count")).to_have_text("1 not inspected")
    expect(page.locator("#progress p")).to_have_text("2 of 3 inspected")
    expect(page.locator("#history .name")).to_have_text([broken, "a.png", "b.png"])
    page.locator("#history button", has_text="a.png").click()
    inspected(page, "Defect: scratch")
    expect(page.locator("#uninspected")).to_be_visible()
    page.locator("#history button", has_text=broken).click()
    expect(page.locator("#reason")).to_contain_text(f"{broken} is not a complete PNG file")
    expect(page.locator("#history .error").first).to_contain_text("copy or take it again")
    expect(page.locator("#no-picture")).to_have_text("The file cannot be displayed.")
    expect(page.locator("#panel")).to_be_hidden()


def test_requests_to_a_busy_service_are_retried(visit, service):
    user = visit(service.address)
    page, refusals = user.page, [3]

    def refuse(route):
        refusals[0] -= 1
        problem = {"status": 503, "code": "queue_full", "detail": "The queue is full."}
        if refusals[0] < 0:
            route.continue_()
        else:
            route.fulfill(status=503, json=problem, headers={"Retry-After": "0"})

    page.route("**/v1/predict*", refuse)
    user.open()
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    assert sent(user) == 4
    refusals[0] = 9
    user.drop(("late.png", PART))
    inspected(page, "Not inspected")
    expect(page.locator("#reason")).to_have_text("The queue is full.")
    assert sent(user) == 4 + 5
    refusals[0] = 0
    page.locator("#retry").click()
    inspected(page, "Defect: scratch")


def test_key_is_asked_for_once_and_kept_in_the_tab(visit, tmp_path, keys):
    with serving(tmp_path, record="off", api_keys=keys) as service:
        user = visit(service.address)
        page = user.open()
        page.locator("#log-in-cancel").click()
        expect(page.locator("#model")).to_have_text("Log in, or enter an API key.")
        user.drop(("a.png", PART), ("b.png", PART))
        page.locator("#key").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#log-in-reason")).to_have_text(
            "The service does not accept this key. Check it, or ask the operator of the service."
        )
        page.locator("#key").fill(KEY)
        page.keyboard.press("Enter")
        expect(page.locator("#progress p")).to_have_text("2 of 2 inspected")
        with page.expect_download() as download:
            page.locator("#save-json").click()
        assert download.value.suggested_filename == "a.json"
        (region,) = json.loads(download.value.path().read_text())["regions"]
        assert (region["bbox"], region["area_px"]) == ([10, 8, 7, 5], 25)
        page.reload()
        expect(page.locator("#model")).to_have_text("unnamed 0 (stable)")
        assert page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
        page.locator("#forget-key").click()
        assert page.evaluate("sessionStorage.length") == 0


def test_decisions_at_the_users_threshold_say_so_until_photographs_or_model_change(visit, service):
    user = visit(service.address)
    page, gate = user.page, service.predictor.gate
    known = {"sha256": "0" * 64, "manifest": {}}
    models = [
        {"name": "surface", "version": "3", "aliases": ["stable"], **known},
        {"name": "surface", "version": "4", "aliases": ["canary"], **known},
    ]
    page.route("**/v1/models", lambda route: route.fulfill(json={"models": models}))
    default = f"{service.address}v1/predict?mask=scores"
    page.route("**/v1/models/surface/**", lambda route: route.continue_(url=default))
    user.open()
    tags = page.locator("#history .tag")
    user.drop(("spot.png", PART), ("clean.png", GOOD_PART), ("broken.png", BROKEN))
    expect(tags).to_have_text(["! Not inspected", "✕ Defect: scratch", "✓ Good"])
    inspected(page, "Defect: scratch")
    page.locator("#score-number").fill("0.95")
    marked = ["✓ Good, at your threshold", "✓ Good, at your threshold"]
    expect(tags).to_have_text(["! Not inspected", *marked])
    gate.clear()
    user.drop(("new.png", PART))
    expect(tags).to_have_text(["! Not inspected", "Inspecting …", "✕ Defect: scratch", "✓ Good"])
    page.locator("#history button", has_text="clean.png").click()
    expect(page.locator("#score-number")).to_have_value("0.5")
    page.locator("#score-number").fill("0.95")
    gate.set()
    expect(page.locator("#announcement")).to_have_text("new.png: Good, at your threshold")
    expect(tags).to_have_text(["! Not inspected", "✓ Good, at your threshold", *marked])
    page.locator("#history button", has_text="broken.png").click()  # no decision and no sliders in sight
    inspected(page, "Not inspected")
    page.get_by_label("Model").select_option("surface 4 (canary)")
    expect(tags).to_have_text(["! Not inspected", "✕ Defect: scratch", "✕ Defect: scratch", "✓ Good"])
    page.locator("#history button", has_text="new.png").click()
    inspected(page, "Defect: scratch")
    expect(page.locator("#changed")).to_be_hidden()


def test_a_model_of_the_address_that_is_not_served_is_named(open_page):
    user = open_page()
    page = user.open("?model=gone%20%3Cb%3E")
    note = page.get_by_role("alert").filter(has_text="gone")
    expect(note).to_have_text("The model gone <b> is not served. The default model inspects the photographs.")
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    expect(note).to_be_visible()
    for served in ("", "?model=unnamed"):
        user.open(served)
        expect(page.locator("#model")).to_have_text("unnamed 0 (stable)")
        expect(page.locator("#other-model")).to_be_hidden()


def test_tiff_is_shown_by_its_mask_and_a_turned_jpeg_upright(open_page):
    user = open_page()
    page = user.page
    user.drop(("part.tif", cv2.imencode(".tif", two_spots().astype(np.uint16) * 257)[1].tobytes()))
    inspected(page, "Defect: scratch")
    expect(page.locator("#note")).to_contain_text("cannot display TIFF")
    assert regions_of(page) == ["1 10, 8 7 × 5 25 0.80"]
    assert pixel(page, 40.5, 20.5) == [128, 128, 128]
    expect(page.locator("#history .thumbnail")).to_have_text("TIF")
    lying = np.ascontiguousarray(np.rot90(two_spots()))  # [60, 40]: the camera was held upright
    jpeg = cv2.imencode(".jpg", lying, [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # orientation 6
    user.drop(("part.jpg", jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:]))
    expect(page.locator("#facts")).to_contain_text("60 × 40 px, 8 bit, JPEG")
    expect(page.locator("#note")).to_be_hidden()
    set_slider(page, "opacity-slider", 0)
    assert min(pixel(page, 13.5, 10.5)) > 180
    assert max(pixel(page, 40.5, 20.5)) < 60


def test_files_are_chosen_pasted_and_dropped(open_page):
    user = open_page()
    page = user.page
    page.locator("#files").set_input_files({"name": "chosen.png", "mimeType": "image/png", "buffer": PART})
    expect(page.locator("#history .name")).to_have_text("chosen.png")
    page.evaluate(
        """bytes => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], "pasted.png"));
            document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer }));
        }""",
        list(GOOD_PART),
    )
    inspected(page, "Good")
    assert page.locator("#history .name").all_inner_texts() == ["pasted.png", "chosen.png"]
    user.drop()
    expect(page.locator("#error")).to_contain_text("contains no files")
    user.drop(("part.jpg", encode(decode_image(PART, "part").pixels, "JPEG")))
    inspected(page, "Defect: scratch")
    expect(page.locator("#error")).to_be_hidden()
    expect(page.locator("#facts")).to_contain_text("60 × 40 px, 8 bit, JPEG without checksum ·")


def test_a_file_that_was_chosen_before_the_script_ran_is_inspected(visit, service):
    page = visit(service.address).page
    held = []
    page.route("**/inspect/inspect.js*", lambda route, _: held.append(route))
    page.goto(service.address, wait_until="commit")
    page.locator("#files").set_input_files({"name": "early.png", "mimeType": "image/png", "buffer": PART})
    held[0].continue_()
    inspected(page, "Defect: scratch")
    assert page.locator("#history .name").all_inner_texts() == ["early.png"]


def test_page_fits_a_phone(open_page, service):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    user = open_page(device_scale_factor=2, **phone)
    page = user.page
    expect(page.locator("#camera")).to_be_visible()
    service.predictor.threshold, service.predictor.review = 0.091, 0.02
    parts = [(1, 230, "Defect: scratch"), (5, 14, "Review")]
    for index, peak, word in parts:
        user.drop((f"IMG_2026000{index}_093513.jpg", encode_png(service.predictor.add_toy_part(index, peak))))
        inspected(page, word)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#history button").last.tap()
    page.locator("#regions button").first.tap()
    expect(page.locator("#regions button").first).to_have_attribute("aria-pressed", "true")
    user.screenshot("inspect-phone")
    user.drop(("IMG_20260004_093512.jpg", BROKEN))
    inspected(page, "Not inspected")
    expect(page.locator("#uninspected")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_api_pages_need_no_internet(visit, service):
    user = visit(service.address)
    page = user.open("docs")
    page.locator(".opblock-summary-path[data-path='/v1/predict']").click()
    expect(page.get_by_role("button", name="Try it out")).to_be_visible()
    expect(page.locator(".errors-wrapper")).to_have_count(0)  # where it names what it cannot read
    assert user.rejections == []


def test_an_inspection_plan_decides_until_the_threshold_is_moved(open_page):
    user = open_page()
    finding = {"zone": "rim", "cause": "rule", "certain": True, "classes": ["scratch"]}
    measured = {"value": 2.345, "low": 2.1, "high": 2.5, "unit": "mm"}
    finding |= {"condition": "longer_than", "measured": measured, "limit": 2.0, "severity": "review"}
    defect = {"bbox": [10, 8, 6, 4], "length": measured, "zones": ["rim"]}
    plan = {"name": "housing", "version": 3, "sha256": "ab", "severity": "review", "defect_count": 1}
    plan |= {"findings": [finding | {"defect": 0}], "defects": [defect]}
    zones = {"rim": {"rectangle": {"corner": [2, 2], "width": 30, "height": 30}}}
    read = []

    def send_plan(route):
        read.append(route.request.url)
        route.fulfill(json={"sha256": "ab", "plan": {"zones": zones}})

    def decide(route):
        response = route.fetch()
        answer = response.json()
        label = answer["decision"]["label"]
        answer["decision"] |= {"label": verdicts[0], "model_label": label}
        route.fulfill(response=response, json=answer | {"plan": plan})

    user.page.route("**/predict*", decide)
    user.page.route("**/plans/3", send_plan)
    verdicts = ["review", "good", "scratch"]
    for word in ("Review", "Good", "Defect: scratch"):
        user.drop((f"{word}.png", PART))
        inspected(user.page, word)
        text = "Inspection plan housing, version 3: rim: length of scratch 2.35 mm (2.1 to 2.5 mm possible), "
        expect(user.page.locator("#reason")).to_have_text(f"{text}limit 2 mm: for review.")
        verdicts.append(verdicts.pop(0))
    assert len(read) == 1  # for all photographs
    set_slider(user.page, "score-slider", 0.0)
    inspected(user.page, "Defect: scratch")
    expect(user.page.locator("#changed")).to_contain_text("Decision of the inspection plan: Defect: scratch.")
    expect(user.page.locator("#reason")).to_contain_text("Score")
