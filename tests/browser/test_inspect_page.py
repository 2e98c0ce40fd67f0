"""The inspection page in a real browser. Grey levels are scores × 255; the thresholds are 0.5."""

import json
import zlib
from functools import cache

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from datasets.layouts.toy import make_sample
from datasets.sample import Sample
from segdec.images import decode_image, encode_png
from segdec.inference.postprocessing import find_regions
from segdec.schemas import PolygonAnswer
from tests.browser.conftest import KINDS, region_answers
from tests.image_files import encode, png


def part_image(brightness: int = 204) -> NDArray[np.uint8]:
    """A dark part, 60 × 40 px, with a spot 6 × 4 px of `brightness` and a darker one of 2 × 2 px (value 100).

    A pixel of 180 touches the spot's lower right corner, so it belongs to it at thresholds up to 180/255.
    """
    image = np.full((40, 60), 30, np.uint8)
    image[8:12, 10:16] = brightness
    image[12, 16] = 180
    image[30:32, 40:42] = 100
    return image


PART = encode_png(part_image())
GOOD_PART = encode_png(np.full((40, 60), 30, np.uint8))


@cache
def toy_sample(index: int) -> Sample:
    return make_sample(index, size=512)


def toy_part(service, index: int, peak: int = 230) -> bytes:
    """A photograph that looks real; the service answers scores like a network's, of `peak` / 255 at most."""
    sample = toy_sample(index)
    data = encode_png(sample.image)
    blurred = cv2.GaussianBlur(sample.mask.astype(np.float32), (0, 0), 6)
    service.known[data] = np.rint(2 + peak * blurred / max(blurred.max(), 1)).astype(np.uint8)
    return data


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


def test_dropped_photograph_shows_decision_overlay_and_regions(visit):
    user = visit()
    page = user.open()
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    expect(page.locator("#reason")).to_have_text("Score 0.800 reaches the threshold 0.500.")
    expect(page.locator("#facts")).to_have_text("60 × 40 px, 8 bit, PNG · surface 3 · 17 ms")
    expect(page.locator("#scale")).to_have_attribute("aria-label", "Score 0.800 of 1, threshold 0.500")
    assert regions_of(page) == ["1 10, 8 7 × 5 25 0.80"]
    red, green, blue = pixel(page, 13.5, 10.5)  # 204 below 40 % of (255, 92, 40)
    assert (red, green, blue) == (224, 159, 138)
    assert pixel(page, 40.5, 20.5) == [30, 30, 30]


@pytest.mark.slow
def test_what_is_inspected_is_outlined(visit, service):
    border = [(20, 2), (20, 37), (57, 37), (57, 2)]
    service.inspected_area = [PolygonAnswer(outer=border, holes=[])]
    user = visit()
    page = user.open()
    user.drop(("part.png", GOOD_PART))
    inspected(page, "Good")
    red, green, blue = pixel(page, 20.5, 20.5)  # the line is as wide as the screen asks for
    assert green > red > blue > 30
    assert pixel(page, 40.5, 20.5) == [30, 30, 30]
    assert pixel(page, 10.5, 20.5) == [30, 30, 30]


@pytest.mark.slow
def test_sliders_change_mask_and_decision_without_a_request(visit):
    user = visit()
    page = user.open()
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


@pytest.mark.slow
def test_zoomed_picture_centres_the_picked_region(visit):
    user = visit()
    page = user.open()
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    assert pixel(page, 30, 20) == [30, 30, 30]
    unmarked = page.locator("#picture").evaluate("canvas => canvas.toDataURL()")
    page.locator("#regions button").hover()
    assert page.locator("#picture").evaluate("canvas => canvas.toDataURL()") != unmarked
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    expect(page.locator("#zoom-in")).to_be_disabled()
    row = page.locator("#regions button")
    row.click()
    assert pixel(page, 30, 20) == [224, 159, 138]
    box = page.locator("#picture").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 220, middle[1], steps=4)
    page.mouse.up()
    assert pixel(page, 30, 20) == [30, 30, 30]
    expect(page.locator("#regions button")).to_have_attribute("aria-pressed", "true")
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
    nearest = np.argmin(away, axis=0)  # the first of equals, as the format demands
    paeth = np.choose(nearest, [left, above, corner])
    rows = b""
    for y, row in enumerate(image):
        guess = (0, left[y], above[y], (left[y] + above[y]) // 2, paeth[y])[y % 5]
        rows += bytes([y % 5]) + ((row.astype(int) - guess) % 256).astype(np.uint8).tobytes()
    return png(image.shape[1], image.shape[0], 8, 0, zlib.compress(rows))


@pytest.mark.slow
def test_every_png_row_filter_is_decoded(visit):
    image = np.random.default_rng(0).integers(0, 256, (25, 9), dtype=np.uint8)
    page = visit().open()
    found = page.evaluate(
        """async bytes => {
            const { readGrey } = await import("/static/shared/png.js");
            const { width, height, pixels } = await readGrey(new Uint8Array(bytes));
            return [width, height, ...pixels];
        }""",
        list(filtered_png(image)),
    )
    assert found == [9, 25, *image.ravel().tolist()]


@pytest.mark.slow
def test_regions_are_those_of_the_service(visit):
    stored = np.random.default_rng(1).integers(0, 256, (40, 50), dtype=np.uint8)
    mask = np.where(stored >= 179, np.uint8(255), np.uint8(0))  # 0.7 × 255 = 178.5
    expected = [[*r.bbox, r.area_px] for r in find_regions(mask, stored.astype(np.float32) / 255)]
    page = visit().open()
    found = page.evaluate(
        """async pixels => {
            const { findRegions } = await import("/static/shared/regions.js");
            const scores = { width: 50, height: 40, pixels: new Uint8Array(pixels) };
            return findRegions(scores, 0.7).regions.map((region) => [...region.box, region.area]);
        }""",
        stored.ravel().tolist(),
    )
    assert len(expected) > 50
    assert found == expected


def test_a_region_in_the_box_of_another_keeps_its_own_label(visit, service):
    """A scratch from corner to corner, and a stain within its box that does not touch it."""
    scores, kinds = np.full((40, 60), 30, np.uint8), np.zeros((40, 60), np.uint8)
    for place in range(5, 35):
        scores[place, place : place + 3], kinds[place, place : place + 3] = 200, 1
    scores[8, 11:25] = 100  # joins both, below the threshold
    scores[8:12, 25:31], kinds[8:12, 25:31] = 160, 2
    scores[9, 26] = 180
    part = encode_png(scores)
    service.kinds[part] = kinds
    user = visit()
    page = user.open()
    user.drop(("part.png", part))
    inspected(page, "Defect: scratch")
    assert regions_of(page) == ["1 5, 5 32 × 30 90 0.78 scratch", "2 25, 8 6 × 4 24 0.71 stain"]
    set_slider(page, "mask-slider", 0.65)
    assert regions_of(page) == ["1 5, 5 32 × 30 90 0.78 scratch", "2 26, 9 1 × 1 1 0.71 stain"]
    set_slider(page, "mask-slider", 0.3)
    assert regions_of(page) == ["1 5, 5 32 × 30 128 0.78 scratch, stain"]


@pytest.mark.slow
def test_labels_are_rasterized_to_the_pixels_of_their_regions(visit):
    """Noise: lines of one pixel, regions that touch, holes and regions in them."""
    draw = np.random.default_rng(0)
    noise, side = draw.normal(size=(2, 60, 70)), (0, 0)
    stored = np.clip(128 + 200 * cv2.GaussianBlur(noise[0], side, 0.8), 0, 255).astype(np.uint8)
    kinds = (1 + (cv2.GaussianBlur(noise[1], side, 1.5) > 0)).astype(np.uint8)
    regions = region_answers(stored, kinds)
    page = visit().open()
    found = page.evaluate(
        """async ([pixels, regions]) => {
            const { rasterizeLabels } = await import("/static/inspect/region_labels.js");
            const scores = { width: 70, height: 60, pixels: new Uint8Array(pixels) };
            const { names, indices } = rasterizeLabels(scores, { mask: { threshold: 0.5 }, regions });
            return [...indices].map((index) => names[index - 1] ?? "good");
        }""",
        [stored.ravel().tolist(), [region.model_dump() for region in regions]],
    )
    assert len(regions) > 50
    expected = np.where(stored >= 128, kinds, 0).ravel()
    assert found == [KINDS[kind] for kind in expected]


@pytest.mark.slow
def test_downloads_are_the_mask_at_the_current_threshold_and_the_answer(visit):
    user = visit()
    page = user.open()
    user.drop(("part.old.png", PART))
    inspected(page, "Defect: scratch")
    set_slider(page, "mask-slider", 0.3)
    with page.expect_download() as download:
        page.locator("#save-mask").click()
    assert download.value.suggested_filename == "part.old.mask.png"
    mask = cv2.imdecode(np.fromfile(download.value.path(), np.uint8), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(mask, np.where(part_image() >= 77, 255, 0))
    with page.expect_download() as download:
        page.locator("#save-json").click()
    assert download.value.suggested_filename == "part.old.json"
    answer = json.loads(download.value.path().read_text())
    assert answer["decision"]["label"] == "scratch"
    assert answer["regions"][0]["bbox"] == [10, 8, 7, 5]


@pytest.mark.slow
def test_several_files_are_sent_two_at_once_and_stay_in_the_history(visit, service):
    user = visit()
    page = user.open()
    service.gate.clear()
    parts = [(f"part {n}.png", encode_png(part_image(110 + 40 * n))) for n in range(4)]
    user.drop(*parts, ("good.png", GOOD_PART), ("broken.jpg", b"\xff\xd8\xff\xe0 no photograph"))
    expect(page.locator("#history .tag", has_text="Inspecting")).to_have_count(2)
    expect(page.locator("#history .tag", has_text="Waiting")).to_have_count(4)
    service.gate.set()
    expect(page.locator("#progress p")).to_have_text("5 of 6 inspected")
    expect(page.locator("#missed-count")).to_have_text("1 not inspected")
    assert service.max_running <= 2
    assert page.locator("#history .name").all_inner_texts() == [
        "broken.jpg",
        *(name for name, _ in parts),
        "good.png",
    ]
    inspected(page, "Defect: scratch")
    expect(page.locator("#name")).to_have_text("part 0.png")
    page.locator("#history button", has_text="good.png").click()
    inspected(page, "Good")
    expect(page.locator("#no-regions")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#name")).to_have_text("part 3.png")
    expect(page.locator("#reason")).to_have_text("Score 0.902 reaches the threshold 0.500.")
    assert user.asked("/predict") == 6


def test_a_broken_file_shows_its_reason(visit):
    user = visit()
    page = user.open()
    name = "<img src=x onerror=alert(1)>.png"
    user.drop((name, PART[:90]))
    inspected(page, "Not inspected")
    expect(page.locator("#reason")).to_contain_text(f"{name} is not a complete PNG file")
    expect(page.locator("#history .name")).to_have_text(name)
    expect(page.locator("#history .error")).to_contain_text("copy or take it again")
    expect(page.locator("#no-picture")).to_have_text("The file cannot be displayed.")
    expect(page.locator("#zoom")).to_be_hidden()
    expect(page.locator("#missed")).to_be_hidden()  # the decision says it
    expect(page.locator("#panel")).to_be_hidden()
    user.screenshot("error")


DOUBTFUL = encode_png(part_image(100))  # its highest score is 180 / 255 = 0.706


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_photograph_between_the_thresholds_is_for_review(visit, service, scheme):
    service.threshold, service.review = 0.75, 0.25
    user = visit(color_scheme=scheme)
    page = user.open()
    user.drop(("a.png", GOOD_PART), ("b.png", DOUBTFUL), ("c.png", PART), ("d.png", DOUBTFUL))
    expect(page.locator("#reviews p")).to_have_text("? 2 for review")
    tags = page.locator("#history .tag")
    expect(tags).to_have_text(["✓ Good", "? Review", "✕ Defect: scratch", "? Review"])
    expect(page.locator("#reason")).to_have_text("Score 0.118 is below the review threshold 0.250.")
    for name in ("b.png", "d.png", "b.png"):
        page.get_by_role("button", name="Show next for review").click()
        expect(page.locator("#name")).to_have_text(name)
        inspected(page, "Review")
    expect(page.locator("#reason")).to_have_text("Score 0.706 is between the thresholds 0.250 and 0.750.")
    expect(page.locator("#check")).to_be_visible()
    expect(page.locator("#decision svg.review")).to_be_visible()
    expect(page.locator("#scale")).to_have_attribute(
        "aria-label", "Score 0.706 of 1, review from 0.250, threshold 0.750"
    )
    expect(page.locator("#score-limits")).to_have_text("Review from 0.250, defect from 0.750")
    for part in (
        "#word",
        "#reason",
        "#check",
        "#reviews p",
        "#history [data-result=review] .tag",
        "#zone-review",
    ):
        assert contrast(page, part) >= 4.5, part
    user.screenshot(f"review-{scheme}", full_page=False)


def test_scale_is_even_in_log_odds(visit):
    page = visit().open()
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
    # ln(0.01 / 0.99) = −4.5951 and ln(1e5) = 11.5129: 0.5 − 4.5951 / 23.0259 = 0.3004
    assert places == pytest.approx([0, 0, 0, 0.3004, 0.5, 0.6996, 1, 1], abs=1e-4)
    # 1e5 ** ±0.4: 100 to 1, or 1 to 100
    assert scores == pytest.approx([0, 1 / 101, 0.5, 100 / 101, 1], abs=1e-9)
    assert texts == ["0", "0.5", "0.0912", "0.000123", "0.999877", "1"]


BROKEN = PART[:90]


def prominence(page: Page) -> tuple[float, float, float, float]:
    """Size and weight of the decision's word, width of its border, and its ground's distance from the page's.

    The distance is the sum of the differences in red, green and blue.
    """
    found = page.evaluate(
        """() => {
            const style = (selector) => getComputedStyle(document.querySelector(selector));
            const rgb = (color) => color.match(/[0-9.]+/g).slice(0, 3).map(Number);
            const [here, around] = ["#decision", "body"].map((part) => rgb(style(part).backgroundColor));
            const away = here.reduce((sum, value, index) => sum + Math.abs(value - around[index]), 0);
            const word = style("#word");
            return [word.fontSize, word.fontWeight, style("#decision").borderTopWidth, away].map(parseFloat);
        }"""
    )
    return tuple(found)


def contrast(page: Page, selector: str) -> float:
    """Of the text of what is seen there, with what is below it, as WCAG 2 defines it."""
    text, ground = page.locator(selector).first.evaluate(
        """part => {
            const rgb = (color) => color.match(/[0-9.]+/g).map(Number);
            let below = part;
            while (rgb(getComputedStyle(below).backgroundColor)[3] === 0) below = below.parentElement;
            return [getComputedStyle(part).color, getComputedStyle(below).backgroundColor].map(rgb);
        }"""
    )
    lights = []
    for color in (text, ground):
        shares = [value / 255 for value in color[:3]]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_not_inspected_is_the_most_prominent_state(visit, service, scheme):
    service.threshold, service.review = 0.75, 0.25
    user = visit(color_scheme=scheme)
    page = user.open()
    measured = {}
    for name, data, word in (
        ("good", GOOD_PART, "Good"),
        ("defect", PART, "Defect: scratch"),
        ("review", DOUBTFUL, "Review"),
        ("broken", BROKEN, "Not inspected"),
    ):
        user.drop((f"{name}.png", data))
        inspected(page, word)
        measured[name] = prominence(page)
        user.screenshot(f"{name}-{scheme}-alone", full_page=False)
    for other in ("defect", "review"):
        assert all(a >= b for a, b in zip(measured["broken"], measured[other], strict=True)), measured
        assert measured["broken"][3] > 2 * measured[other][3], measured
    expect(page.locator("#hold")).to_have_text("Hold the part: its condition is unknown.")
    expect(page.locator("#hold")).to_be_visible()
    grounds = [
        page.locator(f"#history [data-result={result}]").evaluate(
            "row => getComputedStyle(row).backgroundColor"
        )
        for result in ("good", "defect", "review", "failed")
    ]
    assert grounds[0] == grounds[1] == grounds[2] != grounds[3]


def test_photographs_that_were_not_inspected_are_tried_again_together(visit):
    user = visit()
    page = user.open()
    page.route("**/v1/predict*", lambda route: route.abort())
    user.drop(("a.png", PART), ("b.png", GOOD_PART), ("c.png", BROKEN))
    expect(page.locator("#missed-count")).to_have_text("3 not inspected")
    expect(page.locator("#missed")).to_have_attribute("role", "alert")
    expect(page).to_have_title("3 not inspected – Inspect")
    expect(page.locator("#reason")).to_contain_text("No response: the service is stopped or unreachable")
    page.get_by_role("button", name="Show next").click()
    page.get_by_role("button", name="Show next").click()
    expect(page.locator("#name")).to_have_text("b.png")
    expect(page.locator("#progress p")).to_have_text("0 of 3 inspected")
    expect(page.locator("#view")).to_be_visible()
    band = page.locator("#view").evaluate("view => getComputedStyle(view, '::before').content")
    assert band == '"Not inspected"'
    user.screenshot("not-inspected", full_page=False)
    page.unroute("**/v1/predict*")
    page.get_by_role("button", name="Retry all").click()
    expect(page.locator("#missed-count")).to_have_text("1 not inspected")
    expect(page.locator("#progress p")).to_have_text("2 of 3 inspected")
    expect(page.locator("#history .name")).to_have_text(["c.png", "a.png", "b.png"])
    page.locator("#history button", has_text="a.png").click()
    inspected(page, "Defect: scratch")
    expect(page.locator("#missed")).to_be_visible()


def test_requests_to_a_busy_service_are_retried(visit, service):
    user = visit()
    page = user.open()
    service.refusals = 3
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    assert user.asked("/predict") == 4
    service.refusals = 9
    user.drop(("late.png", PART))
    inspected(page, "Not inspected")
    expect(page.locator("#reason")).to_have_text("The queue is full.")
    assert user.asked("/predict") == 4 + 5
    service.refusals = 0
    page.locator("#retry").click()
    inspected(page, "Defect: scratch")


@pytest.mark.slow
def test_key_is_asked_for_once_and_kept_in_the_tab(visit, service):
    service.key = "open sesame"
    user = visit()
    page = user.open()
    expect(page.locator("#key-dialog")).to_be_visible()
    page.locator("#key-cancel").click()
    expect(page.locator("#model")).to_have_text("An API key is required.")
    user.drop(("a.png", PART), ("b.png", PART))
    page.locator("#key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#key-reason")).to_have_text(
        "The service does not accept this key. Check it, or ask the operator of the service."
    )
    page.locator("#key").fill("open sesame")
    page.keyboard.press("Enter")
    expect(page.locator("#progress p")).to_have_text("2 of 2 inspected")
    expect(page.locator("#model")).to_have_text("surface 3 (stable)")
    page.reload()
    expect(page.locator("#model")).to_have_text("surface 3 (stable)")
    assert page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
    page.locator("#forget-key").click()
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.slow
def test_decisions_at_the_users_threshold_say_so_until_photographs_or_model_change(visit, service):
    service.served = [("surface", "3", ["stable"]), ("surface", "4", ["canary"])]
    user = visit()
    page = user.open()
    tags = page.locator("#history .tag")
    user.drop(("spot.png", PART), ("clean.png", GOOD_PART), ("broken.png", PART[:90]))
    expect(tags).to_have_text(["! Not inspected", "✕ Defect: scratch", "✓ Good"])
    inspected(page, "Defect: scratch")
    page.locator("#score-number").fill("0.95")
    marked = ["✓ Good, at your threshold", "✓ Good, at your threshold"]
    expect(tags).to_have_text(["! Not inspected", *marked])
    service.gate.clear()
    user.drop(("new.png", PART))
    expect(tags).to_have_text(["! Not inspected", "Inspecting …", "✕ Defect: scratch", "✓ Good"])
    page.locator("#history button", has_text="clean.png").click()
    expect(page.locator("#score-number")).to_have_value("0.5")
    page.locator("#score-number").fill("0.95")
    service.gate.set()
    expect(page.locator("#announcement")).to_have_text("new.png: Good, at your threshold")
    expect(tags).to_have_text(["! Not inspected", "✓ Good, at your threshold", *marked])
    user.screenshot("your-threshold", full_page=False)
    page.locator("#history button", has_text="broken.png").click()  # no decision and no sliders in sight
    inspected(page, "Not inspected")
    page.get_by_label("Model").select_option("surface 4 (canary)")
    expect(tags).to_have_text(["! Not inspected", "✕ Defect: scratch", "✕ Defect: scratch", "✓ Good"])
    page.locator("#history button", has_text="new.png").click()
    inspected(page, "Defect: scratch")
    expect(page.locator("#changed")).to_be_hidden()


@pytest.mark.slow
def test_the_mask_of_a_file_that_browsers_cannot_decode_is_shown(visit):
    image = part_image().astype(np.uint16) * 257
    user = visit()
    page = user.open()
    user.drop(("part.tif", cv2.imencode(".tif", image)[1].tobytes()))
    inspected(page, "Defect: scratch")
    expect(page.locator("#note")).to_contain_text("cannot display TIFF")
    assert regions_of(page) == ["1 10, 8 7 × 5 25 0.80"]
    assert pixel(page, 40.5, 20.5) == [128, 128, 128]
    expect(page.locator("#history .thumbnail")).to_have_text("TIF")


@pytest.mark.slow
def test_photograph_is_turned_upright_as_the_service_does(visit):
    lying = np.ascontiguousarray(np.rot90(part_image()))  # [60, 40]: the camera was held upright
    jpeg = cv2.imencode(".jpg", lying, [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # orientation 6
    user = visit()
    page = user.open()
    user.drop(("part.jpg", jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:]))
    inspected(page, "Defect: scratch")
    expect(page.locator("#facts")).to_contain_text("60 × 40 px")
    expect(page.locator("#note")).to_be_hidden()
    set_slider(page, "opacity-slider", 0)
    assert min(pixel(page, 13.5, 10.5)) > 180
    assert max(pixel(page, 40.5, 20.5)) < 60


@pytest.mark.slow
def test_files_are_chosen_pasted_and_dropped(visit):
    user = visit()
    page = user.open()
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


@pytest.mark.slow
def test_page_fits_a_phone(visit, service, browser):  # noqa: ARG001
    user = visit(
        viewport={"width": 390, "height": 844}, device_scale_factor=2, has_touch=True, is_mobile=True
    )
    page = user.open()
    expect(page.locator("#camera")).to_be_visible()
    user.screenshot("phone-empty")
    user.drop(*[(f"IMG_2026{index:04d}_093512.jpg", toy_part(service, index)) for index in (1, 2, 3)])
    expect(page.locator("#progress p")).to_have_text("3 of 3 inspected")
    inspected(page, "Defect: scratch")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#regions button").first.tap()
    expect(page.locator("#regions button").first).to_have_attribute("aria-pressed", "true")
    user.screenshot("phone-region", full_page=False)
    page.evaluate("window.scrollTo(0, 0)")
    user.screenshot("phone", full_page=False)
    service.threshold, service.review = 0.091, 0.02
    user.drop(("IMG_20260004_093513.jpg", toy_part(service, 5, 14)))
    inspected(page, "Review")
    expect(page.locator("#reviews")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    user.screenshot("phone-review", full_page=False)
    page.locator("#scale").scroll_into_view_if_needed()
    user.screenshot("phone-scale", full_page=False)
    user.drop(("IMG_20260004_093512.jpg", BROKEN))
    inspected(page, "Not inspected")
    expect(page.locator("#missed")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    user.screenshot("phone-failed", full_page=False)


@pytest.mark.slow
def test_everything_is_reached_with_the_keyboard(visit):
    user = visit()
    page = user.open()
    user.drop(("part.png", PART))
    inspected(page, "Defect: scratch")
    reached = set()
    page.locator("header a").last.focus()
    for _ in range(18):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.closest('ol')?.id"))
    assert {
        "files",
        "history",
        "score-slider",
        "mask-slider",
        "opacity-slider",
        "regions",
        "save-mask",
    } <= reached


def test_the_page_and_the_real_service_agree(visit, real_service):
    user = visit(real_service)
    page = user.open()
    page.locator("#key").fill("open sesame")
    page.keyboard.press("Enter")
    expect(page.locator("#model")).to_have_text("unnamed 0 (stable)")
    user.drop(("part.png", PART), ("broken.png", PART[:90]))
    inspected(page, "Defect: scratch")
    with page.expect_download() as download:
        page.locator("#save-json").click()
    answer = json.loads(download.value.path().read_text())
    x, y, width, height = answer["regions"][0]["bbox"]
    area, score = answer["regions"][0]["area_px"], answer["regions"][0]["score_max"]
    assert regions_of(page) == [f"1 {x}, {y} {width} × {height} {area} {score:.2f}"]
    page.locator("#history button", has_text="broken.png").click()
    expect(page.locator("#reason")).to_contain_text("broken.png is not a complete PNG file")


@pytest.mark.slow
def test_api_pages_need_no_internet(visit, real_service):
    user = visit(real_service)
    page = user.open("docs")
    expect(page.locator(".opblock-summary-path[data-path='/v1/predict']")).to_be_visible()
    page.locator(".opblock-summary-path[data-path='/v1/predict']").click()
    expect(page.get_by_role("button", name="Try it out")).to_be_visible()
    expect(page.locator(".errors-wrapper")).to_have_count(0)  # where it names what it cannot read
    user.screenshot("docs", full_page=False)
