import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from segdec.config import Thresholds
from training.metrics.evaluation import Evaluation, evaluate
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_histogram import PixelHistogram
from training.reporting import report
from training.reporting.gallery import read_and_predict, shrink_mask
from training.reporting.operating_points import OfferedPoint, OperatingPointTable
from training.reporting.report import choose_near_threshold, write_report

FACTS = {"Model": "compact", "Score threshold": "0.5, chosen on validation"}


@pytest.fixture(scope="module")
def evaluation(predictor, mixed):
    return evaluate([(predictor, mixed[0])], mixed[1], progress=False)


def write(path, evaluation, predictor, samples, **options):
    given = {
        "title": "toy",
        "facts": FACTS,
        "show": read_and_predict([(predictor, samples[0])], samples[1]),
        **options,
    }
    write_report(path, evaluation=evaluation, **given)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(evaluation, predictor, mixed, tmp_path_factory):
    return write(tmp_path_factory.mktemp("report") / "report.html", evaluation, predictor, mixed)


@pytest.fixture
def write_page(tmp_path):
    """Evaluates samples and writes the report; returns its text."""

    def write_page(predictor, samples, **options):
        evaluation = evaluate([(predictor, samples[0])], samples[1], progress=False)
        return write(tmp_path / "report.html", evaluation, predictor, samples, **options)

    return write_page


class Page(HTMLParser):
    """Checks that tags are closed in order and collects elements and ids."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.sources, self.scripts, self.policy = [], [], [], [], {}, ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        if tag == "script":
            self.scripts[values.get("type")] = ""
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        self.sources += [values[name] for name in ("src", "href", "xlink:href") if name in values]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts[[*self.scripts][-1]] += data

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_report_is_one_file_that_loads_nothing(page):
    parsed = Page(page)
    assert all(source.startswith(("data:image/jpeg;base64,", "#")) for source in parsed.sources)
    assert not {"link", "iframe", "object"} & set(parsed.tags)
    assert not re.search(r"https?:|url\((?!#)|@import", page)


def test_policy_allows_the_one_script_alone(page):
    parsed = Page(page)
    assert set(parsed.scripts) == {None, "application/json"}
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[None].encode()).digest()).decode()
    assert parsed.policy.endswith(f"script-src 'sha256-{digest}'")


def embedded(page):
    return json.loads(Page(page).scripts["application/json"])


def test_page_reads_without_script(page, evaluation):
    """Counts stand in the page for the model's threshold, the slider is hidden until a script shows it."""
    metrics = evaluation.metrics
    shown = dict(re.findall(r'data-count="(\w+)">([^<]*)<', page))
    assert shown["missed"] == str(metrics.false_negatives) == "1"
    assert shown["alarms"] == str(metrics.false_positives) == "1"
    assert (shown["found"], shown["passed"]) == ("2", "1")
    assert (shown["precision"], shown["recall"]) == ("0.667", "0.667")
    assert re.search(r'<div class="bar"[^>]* hidden>', page)
    assert "<noscript>" in page


def test_operating_points_are_beside_the_slider(evaluation, predictor, mixed, tmp_path):
    offered = (
        OfferedPoint("lowest cost", 0.091, "12 (9 to 16)", "1 (0.1 to 4)", None),
        OfferedPoint(
            "at most 1 % missed", 0.05, "40 (30 to 50)", "0.5 (0 to 3)", "calibrate --threshold.score 0.05"
        ),
    )
    points = OperatingPointTable("At this threshold 12 of 100.", offered, ("Too few parts.",))
    page = write(tmp_path / "report.html", evaluation, predictor, mixed, points=points)
    assert "<p>At this threshold 12 of 100. Too few parts.</p>" in page
    assert re.findall(r'class="link" type="button" data-threshold="([\d.]+)"', page) == ["0.091", "0.05"]
    assert page.count("<code>") == page.count("<td>in use</td>") == 1
    command = re.search(r'id="apply-command" data-command="([^"]*)"', page)
    assert html.unescape(command[1]) == f"python -m training calibrate {tmp_path} --threshold.score"


def test_report_pictures_every_error(page, evaluation):
    for number, result in enumerate(evaluation.errors(), start=1):
        card = re.search(
            rf'<article class="card \w+" id="error-{number}" data-row="(\d+)"[^>]*>(.*?)</article>',
            page,
            re.DOTALL,
        )
        assert evaluation.results[int(card[1])] == result
        assert result.name in card[2]
        assert f'href="#error-{number}"' in page
        # A good photograph has no truth to show.
        assert card[2].count("<img") == (4 if result.truth else 3)
    assert f'id="error-{len(evaluation.errors()) + 1}"' not in page


@pytest.mark.parametrize("entries", [(), (("a", 0, None, False),), (("a", 1, 220, True),)])
def test_report_of_degenerate_sets(predictor, make_samples, write_page, entries):
    page = write_page(predictor, make_samples(*entries))
    assert "nan" not in re.sub(r'src="[^"]*"', "", page).lower()
    assert page.count("<svg") == len(entries)
    Page(page)


def test_confusion_is_shown_for_more_than_two_classes(make_predictor, make_samples, write_page, page):
    samples = make_samples(("a", 0, None, False), ("b", 1, 220, True), ("c", 2, 220, True))
    several = write_page(make_predictor("scratch", "stain"), samples)
    assert 'class="confusion"' in several
    assert "1 wrong class." in several
    assert "wrong class</span>" in several
    assert 'class="confusion"' not in page


def test_text_from_outside_is_escaped(make_samples, predictor, write_page):
    names = ["</script><script>alert(1)</script>", "<!--<script>", "a&b;\u2028\u2029", 'quote"\\']
    samples = make_samples(*[(name, 0, 220, False) for name in names])
    page = write_page(predictor, samples, title="<em>bold", facts={"<i>": "<u>"}, warnings=["<s>"])
    parsed = Page(page)
    assert not {"em", "i", "u", "s"} & set(parsed.tags)
    assert parsed.tags.count("script") == 2
    assert [row[0] for row in embedded(page)["rows"]] == names
    assert not set("<>&\u2028\u2029") & set(parsed.scripts["application/json"])


def test_shrinking_keeps_single_defect_pixels():
    mask = np.zeros((1000, 3000), np.uint8)
    mask[500, 700] = 255
    small = shrink_mask(mask, 100)
    assert small.shape == (33, 100)
    assert 1 <= np.count_nonzero(small) <= 4


def test_near_misses_are_the_nearest_right_ones_in_log_odds(make_result):
    good, defective = (0.49, 0.2, 0.01, 0.001, 1e-9, 0.6), (0.51, 0.9, 0.99, 0.999, 1 - 1e-9, 0.4)
    results = [make_result(f"good {score}", 0, score) for score in good]
    results += [make_result(f"bad {score}", 1, score) for score in defective]
    expected = [0.51, 0.9, 0.99, 0.999, 0.49, 0.2, 0.01, 0.001]
    assert [result.score for result in choose_near_threshold(results)] == expected


# === Review ===


def test_photographs_for_review_have_a_section_of_their_own(predictor, make_samples, write_page):
    limits = Thresholds(score=0.9, mask=0.5, review=0.1)
    config = predictor.config.model_copy(update={"thresholds": limits})
    # Scores 1/(1 + exp(−(b − 128) / 16)): 0.5 of b = 128, 0.27 of 112, 0.018 of 64, 0.997 of 220.
    samples = make_samples(
        ("good/unsure", 0, 128, False),
        ("good/right", 0, None, False),
        ("defect/found", 1, 220, True),
        ("defect/unsure", 1, 112, True),
        ("defect/missed", 1, 64, True),
    )
    page = write_page(type(predictor)(predictor.engine, config), samples)
    Page(page)
    assert "1 of 5 images is labelled wrong: 1 missed defect; 2 are left for review." in page
    assert re.findall(r'id="review-\d+" data-row="(\d)" data-wrong="(\w+)"', page) == [
        ("3", "no"),
        ("0", "no"),
    ]
    assert re.findall(r'id="error-\d+" data-row="(\d)"', page) == ["4"]
    assert page.count('<span class="kind for-review">for review</span>') == 2
    assert "<dt>Review threshold</dt><dd>0.100: for review from there on</dd>" in page
    assert "called good of 3 defective" in page
    tile = re.search(r'For review</div><div class="figure">2</div><div class="note">([^<]*)<', page)
    assert tile[1] == "of 5 images: 40\N{NO-BREAK SPACE}%; 1 of them defective"
    shown = dict(re.findall(r'data-count="(\w+)">([^<]*)<', page))
    assert shown == {
        "found": "1",
        "missed": "1",
        "alarms": "0",
        "passed": "1",
        "reviews": "2",
        "goodReviews": "1",
        "defectiveReviews": "1",
        "precision": "1.000",
        "recall": "0.333",
    }
    assert embedded(page)["review"] == 0.1
    assert [row[2] for row in embedded(page)["rows"]] == [0, 0, 1, 0, 0]


def test_of_many_photographs_for_review_a_few_are_shown(monkeypatch, predictor, make_samples, write_page):
    monkeypatch.setattr(report, "MAX_REVIEWS_SHOWN", 3)
    limits = Thresholds(score=0.9, mask=0.5, review=0.1)
    config = predictor.config.model_copy(update={"thresholds": limits})
    samples = make_samples(*((f"good/{number}", 0, 110 + 5 * number, False) for number in range(6)))
    page = write_page(type(predictor)(predictor.engine, config), samples)
    assert re.findall(r'id="review-\d+" data-row="(\d)"', page) == ["5", "3", "0"]
    assert "6 at the model's own thresholds" in page and "; 3 of them are shown, evenly chosen." in page


# === Calibration ===


def test_calibration_is_reported_with_the_former_one(make_result, make_samples, predictor, tmp_path):
    """Scores of 0.2 and 0.8, of which one in five and four in five are defective; 0.5 before."""
    kinds = [(0.2, 1), *[(0.2, 0)] * 4, (0.8, 0), *[(0.8, 1)] * 4]
    results = [make_result(str(n), truth, score, log_odds=0.0) for n, (score, truth) in enumerate(kinds)]
    metrics = compute_metrics(results, ("good", "defect"), defect_rate=0.5)
    evaluation = Evaluation(("good", "defect"), tuple(results), metrics, PixelHistogram(), 0.5)
    samples = make_samples(*[(str(n), truth, None, False) for n, (_, truth) in enumerate(kinds)])
    page = write(tmp_path / "report.html", evaluation, predictor, samples)
    Page(page)
    assert "<h2>Calibration</h2>" in page
    assert "where 50\N{NO-BREAK SPACE}% of the photographs are defective" in page
    tiles = re.findall(r'<div class="figure">([\d.]+) <span class="interval">before: ([\d.]+)<', page)
    # Brier: 0.2 · 0.8² + 0.8 · 0.2² = 0.16 in both bins. Half of them are defective: 0.5 was calibrated too.
    assert tiles == [("0.000", "0.000"), ("0.160", "0.250")]
    assert "before calibration</text>" in page
    assert "calibrated</text>" in page
