"""The report of an evaluation in a real browser; every number is worked out here from the results."""

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from datasets.layouts.toy import make_sample
from segdec.inference.postprocessing import Prediction, find_regions
from tests.training.log_odds import score_log_odds
from training.formatting import format_figure
from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import count_pixels
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.regions import measure_overlaps
from training.reporting.report import write_report
from training.reporting.threshold_slider import count_at

THRESHOLD, REVIEW = 0.3, 0.05
CLASSES = ("good", "scratch", "spot", "stain")
SCORES = (
    *(0.0, 0.9, 0.02, 0.25, 1e-7, 1 - 1e-7, 0.35, 0.31, 0.7, 0.99, 2e-4, 0.05, 0.29, 1.0),
    *(0.6, 0.9999, 0.1, 0.8, 0.3, 0.4, 1e-5, 0.97, 0.2, 0.5, 0.01, 0.95, 0.003, 0.85, 0.15, 0.33),
)
"""Of toy parts in turn good and defective; two are as sure as can be, one is the threshold itself."""


def decide(place: int, review: float | None = None):
    """A toy part and what is said about it."""
    sample = make_sample(place, size=96, classes=4)
    score = SCORES[place]
    scores = sample.mask.astype(np.float32) / 255 * score
    mask = np.where(scores >= 0.5, np.uint8(255), np.uint8(0))
    # One of the found defects gets another class than its own.
    wrong = 1 + sample.label % 3 if place == 9 else max(sample.label, 1)
    label = CLASSES[wrong] if score >= THRESHOLD else "good" if review is None or score < review else "review"
    regions = find_regions(mask, scores)
    odds = score_log_odds(score)
    return sample, Prediction(label, score, odds, THRESHOLD, review, {}, mask, scores, scores, 0.5, regions)


def evaluate_parts(review: float | None) -> Evaluation:
    results, histogram = [], PixelHistogram()
    for place in range(len(SCORES)):
        sample, prediction = decide(place, review)
        mask = sample.mask if sample.label else None
        histogram.add(prediction.mask_scores, sample.mask)
        results.append(
            PhotographResult(
                name=f"part </script> {place}",
                split="test",
                group=str(place),
                truth=sample.label,
                true_label=CLASSES[sample.label],
                predicted_label=prediction.label,
                score=prediction.score,
                log_odds=prediction.log_odds,
                threshold=THRESHOLD,
                regions=len(prediction.regions),
                pixels=count_pixels(prediction.mask, mask),
                overlaps=measure_overlaps(prediction.mask, mask),
                review_threshold=review,
            )
        )
    metrics = compute_metrics(results, CLASSES, histogram, threshold=THRESHOLD, resamples=100)
    return Evaluation(CLASSES, tuple(results), metrics, histogram)


@pytest.fixture(scope="module")
def evaluations() -> dict[str, Evaluation]:
    """Without and with a review threshold."""
    return {"report": evaluate_parts(None), "review": evaluate_parts(REVIEW)}


@pytest.fixture(scope="module")
def folder(evaluations, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for name, review in (("report", None), ("review", REVIEW)):
        write_report(
            folder / f"{name}.html",
            title="toy",
            facts={"Data": "toy"},
            evaluation=evaluations[name],
            show=lambda name, review=review: decide(int(name.split()[-1]), review),
        )
    return folder


@pytest.fixture
def open_report(visit, folder):
    def open_it(name="report", **window):
        user = visit(f"file://{folder}/", **window)
        user.open(f"{name}.html")
        return user

    return open_it


def shown(page: Page) -> dict[str, set[str]]:
    """What stands at each count: it is the same wherever it stands."""
    found: dict[str, set[str]] = {}
    for name, text in page.locator("[data-count]").evaluate_all(
        "places => places.map((place) => [place.dataset.count, place.textContent])"
    ):
        found.setdefault(name, set()).add(text)
    return found


def now(page: Page) -> float:
    return float(page.locator("#threshold-value").get_attribute("title"))


def slide(page: Page, position: int) -> float:
    """Moves the slider as the pointer does and waits for what follows; gives the threshold."""
    page.locator("#threshold").evaluate(
        """(slider, value) => {
            slider.value = value;
            slider.dispatchEvent(new Event('input'));
            return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        }""",
        position,
    )
    return now(page)


def outcomes(page: Page) -> dict[str, str]:
    return dict(
        page.locator(".card").evaluate_all(
            """cards => cards.map((card) => [
                card.querySelector("h3").textContent, card.querySelector(".kind").textContent])"""
        )
    )


def expected_outcome(result: PhotographResult, threshold: float) -> str:
    limit = result.review_threshold
    if limit is not None and limit <= result.score < threshold:
        return "for review"
    if result.score < threshold:
        return "missed defect" if result.truth else "correct"
    if not result.truth:
        return "false alarm"
    return "wrong class" if result.outcome == "wrong class" else "correct"


def check_command(page: Page, threshold: float, results) -> None:
    """The command sets a threshold that decides as the slider does."""
    expect(page.locator("#apply")).to_be_visible(visible=0 < threshold < 1)
    command, _, written = page.locator("#apply-command").text_content().rpartition(" ")
    assert command.startswith("python -m training calibrate ") and command.endswith(" --threshold.score")
    assert count_at(results, float(written)) == count_at(results, threshold)
    assert threshold != THRESHOLD or float(written) == THRESHOLD


@pytest.mark.parametrize("name", ["report", "review"])
def test_slider_counts_as_python_does_and_keeps_the_review_threshold(open_report, evaluations, name):
    page, results = open_report(name).page, evaluations[name].results
    expect(page.locator("#bar")).to_be_visible()
    pictured = set(outcomes(page))
    for position in (None, 0, 60, 185, 215, 255, 300, 431, 500):
        threshold = THRESHOLD if position is None else slide(page, position)
        counts = count_at(results, threshold)
        expected_counts = {
            **{key: str(getattr(counts, key)) for key in ("found", "missed", "alarms", "passed")},
            "precision": format_figure(counts.precision),
            "recall": format_figure(counts.recall),
        }
        if name == "review":
            reviews = {"goodReviews": counts.good_reviews, "defectiveReviews": counts.defective_reviews}
            reviews["reviews"] = counts.reviews
            expected_counts |= {key: str(count) for key, count in reviews.items()}
            assert (counts.reviews > 0) == (threshold > REVIEW)
            label = page.locator("#threshold").get_attribute("aria-valuetext")
            assert position is None or f", {counts.reviews} for review" in label
        assert shown(page) == {key: {text} for key, text in expected_counts.items()}
        expected = {result.name: expected_outcome(result, threshold) for result in results}
        assert outcomes(page) == {name: expected[name] for name in pictured}
        check_command(page, threshold, results)
        listed = page.locator("#errors tr td:first-child").all_inner_texts()
        wrong = [name for name, outcome in expected.items() if outcome not in ("correct", "for review")]
        assert sorted(listed) == sorted(wrong)
    assert now(page) == 1.0  # the right end: no threshold is above a score of 1
    assert {result.name for result in evaluations[name].reviews()} <= pictured
    if name == "review":
        expect(page.locator(".mark.review")).to_have_text("review from 0.050")


def test_line_and_points_of_the_charts_move_along(open_report, evaluations):
    page = open_report().page

    def middle(selector: str) -> tuple[float, float]:
        box = page.locator(selector).first.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def axes_point(curve: str, x: float, y: float) -> tuple[float, float]:
        """Where a point of the unit square is on the page, from where the operating point was drawn."""
        scale = page.locator(f"svg:has(.{curve})").evaluate(
            "svg => [svg.dataset.scaleX, svg.dataset.scaleY, svg.getScreenCTM().a].map(Number)"
        )
        (x0, y0), start = began[curve], at_start[curve]
        return x0 + (x - start[0]) * scale[0] * scale[2], y0 - (y - start[1]) * scale[1] * scale[2]

    def operating_points(threshold: float) -> dict[str, tuple[float, float]]:
        counts = count_at(evaluations["report"].results, threshold)
        alarm_rate = counts.alarms / (counts.alarms + counts.passed)
        return {"precision-recall": (counts.recall, counts.precision), "roc": (alarm_rate, counts.recall)}

    began = {curve: middle(f".{curve}") for curve in ("precision-recall", "roc")}
    at_start = operating_points(THRESHOLD)
    line = middle("svg .line")
    threshold = slide(page, 330)
    for curve, point in operating_points(threshold).items():
        assert middle(f".{curve}") == pytest.approx(axes_point(curve, *point), abs=0.6)
    scale = page.locator("svg:has(.line)").evaluate(
        "svg => Number(svg.dataset.scaleX) * svg.getScreenCTM().a"
    )
    odds = np.log10(threshold / (1 - threshold)) - np.log10(THRESHOLD / (1 - THRESHOLD))
    assert middle("svg .line")[0] - line[0] == pytest.approx(odds * scale, abs=0.6)


def test_keyboard_moves_the_threshold(open_report):
    page = open_report().page
    page.locator("#threshold").focus()
    page.keyboard.press("ArrowRight")
    assert now(page) > THRESHOLD
    page.keyboard.press("Home")
    assert now(page) == 0.0
    reached = set()
    page.locator("#lower").focus()
    for _ in range(4):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert reached == {"mark chosen", "mark hindsight", "threshold", "higher"}


@pytest.mark.parametrize(("name", "width", "scheme"), [("report", 1280, "light"), ("review", 400, "dark")])
def test_report_fits_its_window(open_report, name, width, scheme):
    user = open_report(name, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert user.page.evaluate("document.documentElement.scrollWidth") == width
    user.screenshot(f"{name}-{scheme}", full_page=True)


def test_report_reads_without_scripts(open_report, evaluations):
    page = open_report(java_script_enabled=False).page
    expect(page.locator("#bar")).to_be_hidden()
    expect(page.locator("#filter")).to_be_hidden()
    expect(page.locator("noscript p")).to_contain_text("needs JavaScript")
    assert page.locator("#errors tr").count() == len(evaluations["report"].errors())
    expect(page.locator(".headline")).to_have_text(re.compile(r"images are labelled wrong"))
