import base64
import re
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from training.evaluation import evaluate
from training.gallery import frame_small_regions, make_cards, shrink_mask
from training.report import describe, format_figure, format_score, write_report

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

    VOID = frozenset({"meta", "img", "br", "link"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.sources = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.sources += [values[name] for name in ("src", "href", "xlink:href") if name in values]
        if tag not in self.VOID:
            self.open.append(tag)

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
    assert not {"script", "link", "iframe", "object"} & set(parsed.tags)
    assert not re.search(r"https?:|url\((?!#)|@import", page)


def test_report_holds_facts_figures_and_curves(page):
    for text in ("<title>toy", *FACTS.values(), "Average precision", "Precision and recall", "ROC"):
        assert text in page
    assert page.count("<svg") == 3


def test_report_pictures_every_error(page, evaluation):
    for number, row in enumerate(evaluation.errors(), start=1):
        card = re.search(rf'<article class="card \w+" id="error-{number}">(.*?)</article>', page, re.DOTALL)
        assert row.name in card[1]
        assert f'href="#error-{number}"' in page
        # A good photograph has no truth to show.
        assert card[1].count("<img") == (4 if row.truth else 3)
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
    assert 'id="correct-1"' in page
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
        title="<b>bold",
        facts={"<i>": "<u>"},
        warnings=["<s>"],
    )
    assert not {"script", "b", "i", "u", "s"} & set(Page(page).tags)


def test_large_photographs_are_shrunk(make_samples, predictor, tmp_path):
    samples = make_samples(("a", 1, 100, True), side=1200)
    result = evaluate(predictor, *samples, progress=False)
    page = write(tmp_path / "report.html", result, make_show(predictor, samples))
    sources = [source for source in Page(page).sources if source.startswith("data:")]
    assert len(sources) == 4
    for source in sources:
        assert decode(source).shape == (512, 512, 3)


def test_gallery_keeps_small_photographs(evaluation, show):
    card = make_cards(evaluation.rows[2:3], show, 512)[0]
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


def test_verdict_counts_errors(evaluation):
    assert describe(evaluation) == "2 of 5 images are labelled wrong: 1 missed defect, 1 false alarm."


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.98512, "0.985"), (0.99999, "0.999"), (1.0, "1.000"), (0, "0.000")]
)
def test_figures_never_round_up_to_one(value, text):
    assert format_figure(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.250"), (0.0, "0.000"), (1.0, "1.000"), (2e-7, "2e-07"), (1 - 2e-7, "1 − 2e-07")],
)
def test_scores_near_the_ends_stay_readable(value, text):
    assert format_score(value) == text
