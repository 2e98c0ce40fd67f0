"""The models page in a real browser, with a service that serves stub models."""

import time
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from api.app import create_app
from api.settings import Settings
from segdec.artifact import (
    ExpectedOutcomes,
    ExpectedParts,
    Manifest,
    ModelRating,
    OperatingPoint,
    OperatingPoints,
    OutcomeCurve,
    PartShare,
    SelfTest,
)
from segdec.artifact.variants import Variant
from segdec.config import ModelConfig
from segdec.images import encode_png
from tests.api.live_server import served
from tests.api.models.stub_models import StubModels
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import KEY, part_image
from tests.browser.german_page import check_german
from tests.browser.test_empty_pages import open_as

NONE = PartShare(count=0, parts=120, low=0.0, high=0.0303)
SOME = PartShare(count=3, parts=40, low=0.0157, high=0.2039)
MANY = PartShare(count=20, parts=40, low=0.338, high=0.662)
FEW = "40 defective parts are too few to show 1 %: at least 300 are needed."
EXPECTED = ExpectedOutcomes(
    defect_rate=1 / 3,
    rejected=ExpectedParts(value=125, low=80, high=190),
    review=ExpectedParts(value=907, low=763.3, high=966.5),
    missed=ExpectedParts(value=125, low=80, high=190),
)
POINTS = OperatingPoints(
    measured_on="120 good and 40 defective photographs of validation",
    points=(
        OperatingPoint(goal="chosen", threshold=0.5, rejected=NONE, missed=SOME, expected=EXPECTED),
        OperatingPoint(goal="lowest cost", threshold=0.501, rejected=NONE, missed=SOME),
        OperatingPoint(goal="at most 1 % rejected", threshold=0.62, rejected=NONE, missed=MANY, note=FEW),
        OperatingPoint(goal="at most 1 % missed", threshold=0.00123, rejected=SOME, missed=None),
    ),
)


CURVE = OutcomeCurve(
    scores=(0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
    rejected=(100, 60, 30, 10, 1, 0),
    missed=(0, 0, 1, 5, 15, 30),
    good=100,
    defective=50,
)
WITH_CURVE = POINTS.model_copy(update={"curve": CURVE})


WEAK = ModelRating(
    level="weak",
    reason="It misses 3 of 40 photographs of 'scratch'.",
    advice=("Add photographs of 'scratch', or check their labels.",),
)


def manifest_of(config: ModelConfig, **given: object) -> Manifest:
    """A manifest as an export writes it."""
    return Manifest(
        **config.model_dump(),
        name="parts",
        version="2",
        segdec_version="0.1.0",
        metrics={"average_precision": 0.98765, "auroc": 0.99, "missed": 1},
        metrics_split="test",
        self_test=SelfTest(height=8, width=8, label="good", score=0.25),
        variants={"tensorflow": Variant()},
        **given,
    )


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Version 1, stable, and 2, its candidate, with a manifest."""
    shelf = StubModels(tmp_path / "models", monkeypatch)
    shelf.put("1")
    candidate = shelf.put("2")
    candidate.config = manifest_of(candidate.config, operating_points=POINTS, rating=WEAK)
    shelf.set_aliases(stable="1", candidate="2")
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


def enter_key(page, button="Use key"):
    page.locator("#key").fill(KEY)
    page.locator("#log-in-dialog").get_by_role("button", name=button).click()


def test_a_candidate_is_promoted_and_rolled_back(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("h3")).to_have_text(["Version 1 answers", "Version 2 candidate"])
    expect(page.locator("article").nth(1)).to_contain_text("Compared with the version that answers")
    expect(page.locator("article").first).not_to_contain_text("Inspection plan")
    page.get_by_role("button", name="Promote 2").click()
    expect(page.locator("#confirm-text")).to_contain_text(
        "Version 2 answers from now on instead of version 1"
    )
    check_accessibility(page)
    page.locator("#confirm").get_by_role("button", name="Cancel").click()
    assert shelf.aliases == {"stable": "1", "candidate": "2"}
    page.get_by_role("button", name="Promote 2").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_have_text("Promote 2: done.")
    assert shelf.aliases == {"stable": "2", "previous": "1"}
    page.get_by_role("button", name="Roll back to 1").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_have_text("Roll back to 1: done.")
    assert shelf.aliases == {"stable": "1"}


def test_the_address_chooses_the_model_that_inspects(visit, address):
    page = visit(address).open("?model=parts")
    expect(page.locator("#models option:checked")).to_have_text("parts 1 (stable)")


def test_a_weak_model_is_not_served_without_a_note(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    notes = page.locator(".rating")
    expect(notes).to_have_count(1)
    expect(notes.locator("strong")).to_have_text("Rated weak.")
    expect(notes.locator("p")).to_have_text([WEAK.reason, f"→ {WEAK.advice[0]}"])
    expect(page.locator("article").first).to_contain_text("Ratingunknown")
    page.get_by_role("button", name="Promote 2").click()
    expect(page.locator("#confirm-text")).to_contain_text(f"Version 2 is rated weak: {WEAK.reason}")
    page.locator("#confirm").get_by_role("button", name="Cancel").click()
    stub = shelf.predictors["1"]
    stub.config = manifest_of(
        stub.config, rating=ModelRating(level="usable", reason="All found."), warnings=("<b>Few</b> parts.",)
    )
    page.reload()
    expect(page.locator("article").first.locator(".rating")).to_have_text(
        "The training warned.<b>Few</b> parts."
    )
    expect(page.locator("article").first).to_contain_text("Ratingusable")


def test_a_refused_change_is_explained(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    expect(page.get_by_role("button", name="Stop the comparison")).to_be_visible()
    shelf.set_aliases(stable="1")
    page.get_by_role("button", name="Promote 2").click()
    page.locator("#confirm-yes").click()
    expect(page.get_by_role("alert")).to_contain_text("candidate")
    expect(page.locator("#done")).to_be_hidden()


def inspect(address, brightness):
    picture, headers = encode_png(part_image(brightness)), {"Content-Type": "image/png"}
    path = f"{address}v1/inspect?part_id=bright-{brightness}"
    httpx.post(path, content=picture, headers=headers).raise_for_status()


def wait_for_candidate(address, answered):
    """Waits until the candidate has processed this many photographs."""
    for _ in range(600):
        answer = httpx.get(f"{address}v1/review/candidates", headers={"X-API-Key": KEY}).json()
        if answer["candidates"][0]["answered"] >= answered:
            return
        time.sleep(0.05)
    pytest.fail("the candidate did not run")


def test_the_report_is_opened_without_a_key_and_saved_with_one(visit, shelf):
    """A link cannot send a key; the report itself runs its script, but cannot reach the service."""
    script = "document.title = (() => { try { return sessionStorage.length; } catch { return 'apart'; } })()"
    page_text = f"<!doctype html><p>Ready</p><script>{script}</script>".encode()
    files = {"report.html": sha256(page_text).hexdigest()}
    shelf.predictors["1"].config = manifest_of(shelf.predictors["1"].config, files=files)
    (shelf.folder / "parts" / "1" / "report.html").write_bytes(page_text)
    with served(create_app(Settings(models=shelf.folder, batch_sizes=(1,)))) as (host, port):
        user = visit(f"http://{host}:{port}/")
        page = user.open("models")
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Report of the evaluation").click()
        expect(opened.value.locator("p")).to_have_text("Ready")
        expect(opened.value).to_have_title("apart")
        opened.value.close()
        page.evaluate("sessionStorage.setItem('segdec.key', 'any')")
        with page.expect_download() as saved:
            page.get_by_role("link", name="Report of the evaluation").click()
        assert saved.value.suggested_filename == "parts-1-report.html"
        assert Path(saved.value.path()).read_bytes() == page_text


def test_differing_photographs_are_shown_with_links(visit, address):
    body = {"version": "2", "score": 0.85, "review": None}
    path, headers = f"{address}v1/admin/models/parts/thresholds", {"X-API-Key": KEY}
    httpx.post(path, json=body, headers=headers).raise_for_status()
    for brightness in (200, 240):
        inspect(address, brightness)
    wait_for_candidate(address, 3)
    user = visit(address)
    page = user.open("models")
    enter_key(page)
    page.locator(".differences summary").click()
    items = page.locator(".contact-sheet li")
    expect(items.filter(has_text="bright-240")).to_have_count(0)
    newest = items.first
    expect(newest).to_contain_text("bright-200")
    expect(newest.locator(".verdict")).to_have_text(["Version 1: scratch", "Version 2: Good", "Not reviewed"])
    expect(newest.locator("img")).to_be_visible()
    assert newest.locator("a").get_attribute("href") == "parts/2"
    user.screenshot("models-differences", full_page=True)


def press(page, name):
    """Presses a button outside of the dialog, and confirms."""
    page.locator("main").get_by_role("button", name=name, exact=True).click()
    page.locator("#confirm-yes").click()


def test_each_change_of_aliases_is_undone_after_it(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    done = page.locator("#done p")
    start = {"stable": "1", "candidate": "2"}
    for name, changed in (
        ("Promote 2", {"stable": "2", "previous": "1"}),
        ("Stop the comparison", {"stable": "1"}),
    ):
        press(page, name)
        expect(done).to_have_text(f"{name}: done.")
        assert shelf.aliases == changed
        page.locator("#done").get_by_role("button", name="Undo").click()
        expect(page.locator("#confirm-text")).to_have_text(
            "As before, version 1 answers, and version 2 is the candidate."
        )
        page.locator("#confirm-yes").click()
        expect(done).to_have_text("Undone.")
        assert shelf.aliases == start
        expect(page.locator("#done button")).to_have_count(0)
    press(page, "Promote 2")
    press(page, "Roll back to 1")
    expect(done).to_have_text("Roll back to 1: done.")
    assert shelf.aliases == {"stable": "1"}
    page.locator("#done").get_by_role("button", name="Undo").click()
    page.locator("#confirm-yes").click()
    expect(done).to_have_text("Undone.")
    assert shelf.aliases == {"stable": "2", "previous": "1"}


def test_the_latest_changes_are_undone(visit, address, shelf):
    headers = {"X-API-Key": KEY}

    def post(action, **body):
        path = f"{address}v1/admin/models/parts/{action}"
        httpx.post(path, json=body, headers=headers).raise_for_status()

    post("thresholds", version="2", score=0.3, review=0.2)
    post("thresholds", version="2", score=0.4, review=None)
    post("promote")
    page = visit(address).open("models")
    enter_key(page)
    items = page.locator("#latest li")
    expect(items).to_have_count(3)
    expect(items.locator("button")).to_have_count(2)  # only the newest of each kind
    expect(items.nth(0)).to_contain_text("office promoted a model: parts, stable 1, candidate 2")
    items.nth(1).get_by_role("button").click()
    expect(page.locator("#confirm-text")).to_have_text(
        "Version 2 decides again as before: review from 0.2, defect from 0.3."
    )
    page.locator("#confirm-yes").click()
    expect(items).to_have_count(4)
    expect(page.locator("article").nth(1)).to_contain_text("review from 0.2, defect from 0.3")
    items.nth(1).get_by_role("button").click()
    page.locator("#confirm-yes").click()
    expect(items).to_have_count(6)  # a rollback, and the candidate
    assert shelf.aliases == {"stable": "1", "candidate": "2"}
    shelf.set_aliases(stable="1")
    httpx.post(f"{address}v1/admin/models/parts/reload", headers=headers).raise_for_status()
    page.reload()
    expect(items).to_have_count(6)
    expect(items.locator("button")).to_have_count(0)  # version 2 is not served, its aliases have changed


def test_an_undo_that_fails_halfway_is_explained(visit, address, shelf):
    page = visit(address).open("models")
    enter_key(page)
    press(page, "Promote 2")
    expect(page.locator("#done p")).to_have_text("Promote 2: done.")
    shelf.broken.add("2")
    (shelf.folder / "parts" / "2" / "manifest.json").write_text('{"version": "2", "trained": "again"}')
    page.locator("#done").get_by_role("button", name="Undo").click()
    page.locator("#confirm-yes").click()
    expect(page.get_by_role("alert").first).to_contain_text("self-test of 2 failed")
    expect(page.locator("#done")).to_be_hidden()
    expect(page.locator("h3")).to_have_text(["Version 1 answers"])


def test_thresholds_are_changed_and_restored(visit, address):
    page = visit(address).open("models")
    enter_key(page)
    card = page.locator("article").first
    expect(card.locator("dl").first).to_contain_text("defect from 0.5")
    card.get_by_text("Change the thresholds").click()
    card.get_by_label("Defect from").fill("0.4")
    card.get_by_label("Review from").fill("0.5")
    card.get_by_role("button", name="Apply").click()
    expect(card.get_by_role("alert")).to_contain_text("must be below")
    card.get_by_label("Defect from").fill("1.5")
    card.get_by_role("button", name="Apply").click()
    expect(card.get_by_role("alert")).to_contain_text("above 0 and below 1")
    card.get_by_label("Defect from").fill("0.4")
    card.get_by_label("Review from").fill("0.25")
    card.get_by_role("button", name="Apply").click()
    expect(page.locator("#confirm-text")).to_contain_text("review from 0.25, defect from 0.4. Until now")
    page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_have_text("Apply thresholds of version 1: done.")
    expect(card.locator("dl").first).to_contain_text("review from 0.25, defect from 0.4")
    expect(card.locator("dl").first).to_contain_text("defect from 0.5; not in use")
    card.get_by_text("Change the thresholds").click()
    card.get_by_role("button", name="Restore those of the model").click()
    page.locator("#confirm-yes").click()
    expect(card.locator("dl").first).not_to_contain_text("not in use")
    page = visit(address).open("changes")
    enter_key(page)
    expect(page.locator("#changes li")).to_contain_text(
        [
            "office restored the thresholds of the model: parts 1, review from 0.25, defect from 0.4 → "
            "defect from 0.5.",
            "office changed the thresholds: parts 1, defect from 0.5 → review from 0.25, defect from 0.4.",
        ]
    )


def test_who_may_not_change_the_thresholds_reads_who_may(visit, address):
    page = open_as(visit, address, "models", "quality", extra_http_headers={"X-API-Key": KEY}).page
    card = page.locator("article").first
    card.get_by_text("Change the thresholds").click()
    note = card.get_by_text("Somebody with the role engineer can do this: Apply thresholds.")
    expect(note).to_be_visible()
    expect(card.get_by_label("Defect from")).to_be_hidden()


def test_an_operating_point_is_applied(visit, address):
    page = visit(address).open("models")
    enter_key(page)
    card = page.locator("article").nth(1)
    rows = card.locator(".points tbody tr")
    texts = ["in use", "the same decisions", "Apply", "Apply"]
    expect(rows.locator("td:last-child")).to_have_text(texts)
    expect(rows.nth(0)).to_contain_text("of the model")
    cells = rows.nth(2).locator("td")
    expect(cells).to_have_text(
        ["at most 1 % rejecteddefect from 0.62", "0 %0 to 3 %", "50 %34 to 66 %", "Apply"]
    )
    review = "for review: 91 % of the parts, 76 to 97 %"
    expect(rows.get_by_text("for review")).to_have_text([review])  # of the model
    expect(card.locator(".hint").filter(has_text=f"{POINTS.measured_on}. {FEW}")).to_be_visible()
    rows.nth(3).get_by_role("button").click()
    expect(page.locator("#confirm-text")).to_contain_text("defect from 0.00123. Until now: defect from 0.5.")
    page.locator("#confirm-yes").click()
    expect(rows.locator("td:last-child")).to_have_text(["Apply", "Apply", "Apply", "in use"])
    card.get_by_role("button", name="Apply the thresholds of the model").click()
    page.locator("#confirm-yes").click()
    expect(rows.locator("td:last-child")).to_have_text(texts)
    expect(card.locator("dl").first).not_to_contain_text("not in use")
    expect(page.locator("article").first.locator(".points")).to_have_count(0)


@pytest.fixture
def with_curve(shelf):
    candidate = shelf.predictors["2"]
    candidate.config = candidate.config.model_copy(update={"operating_points": WITH_CURVE})


@pytest.mark.usefixtures("with_curve")
def test_both_limits_are_moved_with_the_keyboard(visit, address):
    page = visit(address).open("models")
    enter_key(page)
    area = page.locator(".outcome-curve")
    expect(area).to_have_count(1)  # version 1 has no curve
    legend = ["good parts rejected", "defective parts missed", "good", "for review", "defective"]
    expect(area.locator(".legend span")).to_have_text(legend)
    lower, upper = (area.get_by_label(name) for name in ("Review from", "Defect from"))
    expect(upper).to_have_attribute("aria-valuetext", "0.5")
    expect(lower).to_have_attribute("aria-valuetext", "none")
    # 333 are defective: 667 · 10/100 + 333 · 45/50, and 333 · 5/50.
    start = "366 are rejected (67 of them good), 0 are for review and 33 defective ones are missed"
    expect(area.get_by_role("status")).to_contain_text(start)
    send = area.get_by_role("button")
    expect(send).to_be_disabled()
    upper.press("ArrowRight")
    lower.press("ArrowLeft")
    area.get_by_label("Defective parts of 1,000").fill("100")
    # 0.9 · 1/100 + 0.1 · 35/50; 0.9 · 29/100 + 0.1 · 14/50; 0.1 · 1/50.
    expected = "Of 1,000 parts, 79 are rejected (9 of them good), 289 are for review and 2 defective ones"
    expect(area.get_by_role("status")).to_contain_text(expected)
    area.get_by_label("Defective parts of 1,000").fill("1001")
    expect(area.get_by_role("status")).to_have_text("Enter a number from 0 to 1,000.")
    check_accessibility(page)
    send.click()
    text = "review from 0.3, defect from 0.7. Until now: defect from 0.5."
    expect(page.locator("#confirm-text")).to_contain_text(text)
    page.locator("#confirm-yes").click()
    expect(page.locator("article").nth(1).locator("dl").first).to_contain_text(
        "review from 0.3, defect from 0.7"
    )
    expect(lower).to_have_attribute("aria-valuetext", "0.3")
    expect(send).to_be_disabled()
    lower.press("End")  # takes the other limit along
    expect(upper).to_have_attribute("aria-valuetext", "0.9")
    expect(lower).to_have_attribute("aria-valuetext", "none")


@pytest.mark.usefixtures("with_curve")
def test_both_limits_are_dragged_on_the_curve(visit, address):
    page = visit(address).open("models")
    enter_key(page)
    area = page.locator(".outcome-curve")
    area.locator("svg").scroll_into_view_if_needed()
    box = area.locator("svg").bounding_box()

    def point(place):
        return box["x"] + place * box["width"] / 5, box["y"] + box["height"] / 2

    for start, end, name, score in ((2.8, 1, "Review from", "0.2"), (3.1, 4, "Defect from", "0.7")):
        page.mouse.move(*point(start))
        page.mouse.down()
        page.mouse.move(*point(end))
        page.mouse.up()
        expect(area.get_by_label(name)).to_have_attribute("aria-valuetext", score)


@pytest.mark.usefixtures("with_curve")
def test_the_page_is_in_german_and_fits_on_screens(visit, address):
    user = visit(address, locale="de-DE")
    page = user.open("models")
    enter_key(page, "Schlüssel verwenden")
    page.get_by_role("button", name="2 in Betrieb nehmen").click()
    weak = "Es übersieht 3 von 40 Bildern mit „scratch“."
    expect(page.locator("#confirm-text")).to_contain_text(f"Version 2 ist als schwach bewertet: {weak}")
    expect(page.locator(".rating p")).to_have_text(
        [weak, "→ Bilder mit „scratch“ hinzufügen oder ihre Annotationen prüfen."]
    )
    page.locator("#confirm-yes").click()
    expect(page.locator("#done p")).to_have_text("2 in Betrieb nehmen: erledigt.")
    for summary in page.locator("summary").all():
        summary.click()
    page.locator("article form [name=review]").first.fill("0.9")
    page.locator("article form .primary").first.click()
    expect(page.locator("article form [role=alert]").first).to_contain_text("muss unter „Fehler ab“ liegen")
    check_german(user, "models")


def test_the_key_that_signed_a_version_is_shown(visit, address):
    page = visit(address).open("models")
    enter_key(page)
    expect(page.locator("article").first).to_contain_text("Signed with the key")
    expect(page.locator("article").first).to_contain_text("a1b2")
