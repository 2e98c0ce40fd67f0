import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from datasets.sample import Sample
from segdec.config import Thresholds
from training.metrics.evaluation import Evaluation, evaluate
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_histogram import PixelHistogram
from training.reporting.gallery import shrink_mask
from training.reporting.report import choose_near, write_report

FACTS = {"Model": "compact", "Score threshold": "0.5, chosen on validation"}


@pytest.fixture(scope="module")
def show(predictor, mixed):
    return make_show(predictor, mixed)


def make_show(predictor, samples):
    records, read = samples
    by_name = {record.name: record for record in records}

    def show(name):
        sample = read(by_name[name])
        return sample, predictor.predict([sample.image])[0]

    return show


@pytest.fixture(scope="module")
def evaluation(predictor, mixed):
    return evaluate(predictor, *mixed, progress=False)


def write(path, evaluation, show, **options):
    write_report(path, **{"title": "toy", "facts": FACTS, "evaluation": evaluation, "show": show, **options})
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(evaluation, show, tmp_path_factory):
    return write(tmp_path_factory.mktemp("report") / "report.html", evaluation, show)


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


def decode(source):
    data = base64.b64decode(source.removeprefix("data:image/jpeg;base64,"))
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)


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
def test_report_of_degenerate_sets(predictor, make_samples, tmp_path, entries):
    samples = make_samples(*entries)
    result = evaluate(predictor, *samples, progress=False)
    page = write(tmp_path / "report.html", result, make_show(predictor, samples))
    assert "nan" not in re.sub(r'src="[^"]*"', "", page).lower()
    assert page.count("<svg") == len(entries)
    Page(page)


def test_confusion_is_shown_for_more_than_two_classes(make_predictor, make_samples, tmp_path, page):
    predictor = make_predictor("scratch", "stain")
    samples = make_samples(("a", 0, None, False), ("b", 1, 220, True), ("c", 2, 220, True))
    result = evaluate(predictor, *samples, progress=False)
    several = write(tmp_path / "report.html", result, make_show(predictor, samples))
    assert 'class="confusion"' in several
    assert "1 wrong class." in several
    assert "wrong class</span>" in several
    assert 'class="confusion"' not in page


def test_text_from_outside_is_escaped(make_samples, predictor, tmp_path):
    samples = make_samples(("<script>x</script>", 0, 220, False))
    result = evaluate(predictor, *samples, progress=False)
    page = write(
        tmp_path / "report.html",
        result,
        make_show(predictor, samples),
        title="<em>bold",
        facts={"<i>": "<u>"},
        warnings=["<s>"],
    )
    parsed = Page(page)
    assert not {"em", "i", "u", "s"} & set(parsed.tags)
    assert parsed.tags.count("script") == 2


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<!--<script>", "a&b;\u2028\u2029", 'quo"te\\']
)
def test_names_cannot_leave_the_embedded_rows(make_samples, predictor, tmp_path, name):
    samples = make_samples((name, 0, 220, False))
    page = write(
        tmp_path / "report.html", evaluate(predictor, *samples, progress=False), make_show(predictor, samples)
    )
    assert Page(page).tags.count("script") == 2
    assert embedded(page)["rows"][0][0] == name
    text = Page(page).scripts["application/json"]
    assert not set("<>&\u2028\u2029") & set(text)


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
    assert [result.score for result in choose_near(results)] == expected


# === Review ===


@pytest.fixture(scope="module")
def reviewing(make_predictor):
    """Says review from 0.1 to 0.9; of the mixed photographs one good and one defective one lie there."""
    predictor = make_predictor("defect")
    limits = Thresholds(score=0.9, mask=0.5, review=0.1)
    config = predictor.config.model_copy(update={"thresholds": limits})
    return type(predictor)(predictor.engine, config)


@pytest.fixture(scope="module")
def some_for_review(make_samples):
    """Scores 1/(1 + exp(−(b − 128) / 16)): 0.5 of b = 128, 0.27 of 112, 0.018 of 64, 0.997 of 220."""
    return make_samples(
        ("good/unsure", 0, 128, False),
        ("good/right", 0, None, False),
        ("defect/found", 1, 220, True),
        ("defect/unsure", 1, 112, True),
        ("defect/missed", 1, 64, True),
    )


def test_photographs_for_review_have_a_section_of_their_own(reviewing, some_for_review, tmp_path):
    found = evaluate(reviewing, *some_for_review, progress=False)
    page = write(tmp_path / "report.html", found, make_show(reviewing, some_for_review))
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


# === Calibration ===


def calibrated(make_result, defect_rate):
    """Scores of 0.2 and 0.8, of which one in five and four in five are defective; 0.5 before."""
    kinds = [(0.2, 1), *[(0.2, 0)] * 4, (0.8, 0), *[(0.8, 1)] * 4]
    results = [make_result(str(n), truth, score, log_odds=0.0) for n, (score, truth) in enumerate(kinds)]
    metrics = compute_metrics(results, ("good", "defect"), defect_rate=defect_rate)
    return Evaluation(("good", "defect"), tuple(results), metrics, PixelHistogram(), defect_rate)


def write_made_up(evaluation, predictor, tmp_path):
    sample = Sample("any", np.zeros((32, 32, 1), np.uint8), None, 0)
    prediction = predictor.predict([sample.image])[0]
    return write(tmp_path / "report.html", evaluation, lambda _: (sample, prediction))


def test_calibration_is_told_with_what_was_before(make_result, predictor, tmp_path):
    page = write_made_up(calibrated(make_result, 0.5), predictor, tmp_path)
    Page(page)
    assert "<h2>Calibration</h2>" in page
    assert "where 50\N{NO-BREAK SPACE}% of the photographs are defective" in page
    tiles = re.findall(r'<div class="figure">([\d.]+) <span class="interval">before: ([\d.]+)<', page)
    # Brier: 0.2 · 0.8² + 0.8 · 0.2² = 0.16 in both bins. Half of them are defective: 0.5 was right, and dull.
    assert tiles == [("0.000", "0.000"), ("0.160", "0.250")]
    assert "before calibration</text>" in page
    assert "calibrated</text>" in page
