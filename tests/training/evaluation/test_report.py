import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from datasets.sample import Sample
from training.evaluation.evaluation import Evaluation, evaluate
from training.evaluation.gallery import frame_small_regions, make_cards, shrink_mask
from training.evaluation.metrics import measure
from training.evaluation.pixel_histogram import PixelHistogram
from training.evaluation.report import choose_near, picture_side, write_report
from training.evaluation.summary import describe

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


def test_embedded_rows_are_those_of_the_evaluation(page, evaluation):
    data = embedded(page)
    assert data["classes"] == ["good", "defect"]
    assert data["threshold"] == evaluation.metrics.threshold
    assert data["rows"] == [
        [result.name, result.truth, int(result.predicted_label == "defect"), result.score, result.regions]
        for result in evaluation.results
    ]


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


def test_report_holds_facts_figures_and_curves(page):
    for text in (
        "<title>toy",
        *FACTS.values(),
        "Average precision",
        "Precision and recall",
        "ROC",
        "Reliability",
    ):
        assert text in page
    assert page.count("<svg") == 4
    assert "Pixel AP" in page
    assert "AP, trapezoid" in page


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


def test_ids_of_the_page_are_unique(page):
    ids = [name for name in Page(page).ids if not re.fullmatch(r"[mp][0-9a-f]+", name)]
    assert len(ids) == len(set(ids))


def test_report_without_errors(predictor, make_samples, tmp_path):
    samples = make_samples(("a", 0, None, False), ("b", 1, 220, True))
    result = evaluate(predictor, *samples, progress=False)
    page = write(tmp_path / "report.html", result, make_show(predictor, samples))
    assert "All 2 images are labelled right." in page
    assert 'id="error-1"' not in page
    assert re.findall(r'id="near-\d" data-row="(\d)"', page) == ["1", "0"]
    Page(page)


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


def test_history_is_drawn_stage_by_stage(evaluation, show, tmp_path):
    history = [
        *({"stage": "segment", "step": step, "loss": 1 / (1 + step)} for step in range(500)),
        {"stage": "segment", "step": 500, "loss": None},
        {"stage": "segment", "step": 500, "loss": float("nan")},
        {"stage": "joint", "step": 1, "loss": 0.5},
        {"stage": "validation", "average_precision": 0.9},
    ]
    page = write(tmp_path / "report.html", evaluation, show, history=history)
    titles = re.findall(r"Loss, stage (\w+)", page)
    assert titles == ["segment", "joint"]


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
        tmp_path / "report.html",
        evaluate(predictor, *samples, progress=False),
        make_show(predictor, samples),
    )
    assert Page(page).tags.count("script") == 2
    assert embedded(page)["rows"][0][0] == name
    text = Page(page).scripts["application/json"]
    assert not set("<>&\u2028\u2029") & set(text)


def test_large_photographs_are_shrunk(make_samples, predictor, tmp_path):
    samples = make_samples(("a", 1, 100, True), side=1200)
    result = evaluate(predictor, *samples, progress=False)
    page = write(tmp_path / "report.html", result, make_show(predictor, samples))
    sources = [source for source in Page(page).sources if source.startswith("data:")]
    assert len(sources) == 4
    for source in sources:
        assert decode(source).shape == (512, 512, 3)


def test_gallery_keeps_small_photographs(evaluation, show):
    card = make_cards(evaluation.results[2:3], show, 512)[0]
    assert decode(card.pictures[0].source).shape == (32, 32, 3)
    assert [picture.caption for picture in card.pictures] == ["image", "truth", "prediction", "mask scores"]


def test_regions_lost_in_a_large_photograph_get_a_frame(predictor, make_samples):
    records, read = make_samples(("a", 1, 220, True), side=800)
    sample = read(records[0])
    prediction = predictor.predict([sample.image])[0]
    small = np.zeros((400, 400, 3), np.uint8)
    framed = frame_small_regions(small, prediction).any(axis=2)
    (x, y, width, height) = (side // 2 for side in prediction.regions[0].bbox)
    rows, columns = np.flatnonzero(framed.any(axis=1)), np.flatnonzero(framed.any(axis=0))
    assert rows[0] < y < y + height < rows[-1] < y + 20
    assert columns[0] < x < x + width < columns[-1] < x + 20


def test_shrinking_keeps_single_defect_pixels():
    mask = np.zeros((1000, 3000), np.uint8)
    mask[500, 700] = 255
    small = shrink_mask(mask, 100)
    assert small.shape == (33, 100)
    assert 1 <= np.count_nonzero(small) <= 4


def test_failure_leaves_the_former_report(evaluation, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(KeyError):
        write(path, evaluation, lambda name: {}[name])
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_headline_counts_errors(evaluation):
    assert describe(evaluation) == "2 of 5 images are labelled wrong: 1 missed defect, 1 false alarm."


def made_up(results, classes=("good", "defect")):
    histogram = PixelHistogram()
    return Evaluation(classes, tuple(results), measure(results, classes, histogram, threshold=0.5), histogram)


def test_hundreds_of_errors_have_small_cards_each(predictor, make_result, tmp_path):
    results = [make_result(f"part {place}", place % 2, (place * 7 % 100) / 100) for place in range(640)]
    evaluation = made_up(results)
    assert len(evaluation.errors()) > 300
    image = np.random.default_rng(0).integers(0, 256, (300, 600, 1), np.uint8)
    sample = Sample("any", image, None, 0)
    prediction = predictor.predict([np.zeros((300, 600, 1), np.uint8)])[0]
    page = write(tmp_path / "report.html", evaluation, lambda _: (sample, prediction))
    cards = re.findall(r'id="error-\d+" data-row="(\d+)"', page)
    assert [results[int(place)] for place in cards] == list(evaluation.errors())
    # Noise is the worst for JPEG: a report of real photographs is smaller.
    assert len(page) / len(cards) < 50_000
    assert max(decode(source).shape for source in Page(page).sources[:2000] if source.startswith("data")) == (
        80,
        160,
        3,
    )


@pytest.mark.parametrize(("errors", "side"), [(0, 512), (60, 512), (61, 256), (300, 256), (301, 160)])
def test_pictures_shrink_with_their_number(errors, side):
    assert picture_side(errors) == side


def test_near_misses_are_the_nearest_right_ones_in_log_odds(make_result):
    good, defective = (0.49, 0.2, 0.01, 0.001, 1e-9, 0.6), (0.51, 0.9, 0.99, 0.999, 1 - 1e-9, 0.4)
    results = [make_result(f"good {score}", 0, score) for score in good]
    results += [make_result(f"bad {score}", 1, score) for score in defective]
    assert [result.score for result in choose_near(results)] == [
        0.51,
        0.9,
        0.99,
        0.999,
        0.49,
        0.2,
        0.01,
        0.001,
    ]


@pytest.mark.parametrize(
    ("supervision", "words"), [("box", "boxes only"), ("label", "label only"), ("mask", "no mask")]
)
def test_photographs_without_defect_pixels_are_named(predictor, make_result, supervision, words):
    mask = np.full((32, 32), 255, np.uint8) if supervision == "box" else None
    sample = Sample("a", np.zeros((32, 32, 1), np.uint8), mask, 1, supervision)
    prediction = predictor.predict([sample.image])[0]
    card = make_cards([make_result("a", 1, 0.2, pixels=None)], lambda _: (sample, prediction), 512)[0]
    assert card.unmasked == f"{words}, not counted for pixels"
    captions = [picture.caption for picture in card.pictures]
    assert ("truth (boxes)" in captions) == (supervision == "box")


@pytest.mark.parametrize(
    ("split", "words"), [("train", "was trained on these"), ("val", "chosen on these photographs")]
)
def test_figures_of_photographs_known_before_are_warned_of(predictor, make_samples, tmp_path, split, words):
    records, read = make_samples(("a", 0, None, False), ("b", 1, 220, True))
    records = tuple(record.assigned(split) for record in records)
    result = evaluate(predictor, records, read, progress=False)
    assert words in write(tmp_path / "report.html", result, make_show(predictor, (records, read)))
