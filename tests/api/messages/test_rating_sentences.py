"""What the training writes about a model, in German: its rating and what to do next."""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

from api.messages.language import find_language
from api.messages.sentences import translate_sentences
from training.metrics import rating
from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import PixelCounts
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.rating import TrainingFacts, rate
from training.metrics.thresholds import choose_mask_threshold

CLASSES = "good", "dent", "spot"
TRAINED = TrainingFacts(steps=2000, defective=60, unlocalized=0)
GERMAN = find_language("de")
TWO_WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
ENGLISH_WORDS = re.compile(r"\b(the|of|it|ones|misses|rejects|by|evaluated|undefined)\b|[{}]")


def photographs(
    found: int = 0,
    missed: int = 0,
    passed: int = 0,
    rejected: int = 0,
    *,
    split: str = "test",
    score: float = 0.9,
    reviews: int = 0,
    pixels: PixelCounts | None = None,
    parts: int = 999,
) -> list[PhotographResult]:
    """Results by what the model did, of `parts` parts; `score`: of the defects that it found."""
    kinds = [(1, score, found), (1, 0.1, missed), (0, 0.1, passed), (0, 0.9, rejected), (0, 0.4, reviews)]
    rows = [(truth, score) for truth, score, number in kinds for _ in range(number)]
    results = []
    for number, (truth, given) in enumerate(rows):
        predicted = "review" if given == 0.4 else CLASSES[given >= 0.5]
        names = str(number), split, str(number % parts), truth, CLASSES[truth], predicted
        results.append(PhotographResult(*names, given, 0.0, 0.5, 0, pixels, review_threshold=0.3))
    return results


def spots(number: int, predicted: str) -> list[PhotographResult]:
    """Photographs of the class `spot` with another prediction."""
    score = 0.1 if predicted == "good" else 0.9
    return [
        PhotographResult(f"s{n}", "test", f"s{n}", 2, "spot", predicted, score, 0.0, 0.5, 0, None)
        for n in range(number)
    ]


CASES = [
    ([], TRAINED),
    (photographs(35, 5, 40), TRAINED),  # too many errors, without a known cause
    (photographs(35, 5, 40, pixels=PixelCounts(1, 50, 50)), TRAINED),
    (photographs(35, 5, 40, split="val"), TrainingFacts(1, 60, 45)),
    (photographs(35, 5, 40, split="train"), TrainingFacts(30, 1, 1)),
    (photographs(35, 5, 40), TrainingFacts(30, 8, 0, decision_trained=False)),
    (photographs(5, 0, 40), TRAINED),  # the interval of the miss rate is wide
    (photographs(40, 0, 5), TRAINED),
    (photographs(8, 0, 8, parts=4), TRAINED),  # no interval
    (photographs(1, 0, 40, reviews=1), TRAINED),
    (photographs(20, 20, 20, 20), TRAINED),
    (photographs(4, 1, 3, 1), TRAINED),  # may be by chance
    (photographs(0, 0, 40), TRAINED),
    (photographs(0, 0, 40), TrainingFacts(2, 0, 0)),
    (photographs(0, 0, 4, 36), TRAINED),
    (photographs(40), TRAINED),
    (photographs(1, split="fold_1"), TRAINED),
    (photographs(1, split=""), TRAINED),
    (photographs(2, 0, 3), TRAINED),
    (photographs(40, 0, 40, score=0.2), TRAINED),  # another threshold would separate them
    (photographs(40, 0, 2, reviews=38), TRAINED),
    ([*photographs(38, 0, 40), *spots(2, "good")], TRAINED),
    ([*photographs(38, 0, 40), *spots(2, "dent")], TRAINED),
    ([*photographs(38, 0, 40), *spots(6, "good")], TRAINED),  # not by chance
    ([*photographs(38, 0, 40), *spots(1, "dent"), *photographs(1, split="val")], TRAINED),
]
"""Results and trainings that together have every sentence of a rating."""


def ratings() -> Iterator[str]:
    """Yields the texts of the ratings of `CASES`."""
    for results, training in CASES:
        names = CLASSES if any(result.truth == 2 for result in results) else CLASSES[:2]
        metrics = compute_metrics(results, names, None, threshold=0.5, resamples=200)
        rated = rate(Evaluation(names, tuple(results), metrics, PixelHistogram()), training)
        yield from (rated.reason, *rated.advice)


def written_texts() -> set[str]:
    """Returns the parts of the sentences in the source of the rating that have two words."""
    tree = ast.parse(inspect.getsource(rating))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = (node.value for node in constants if isinstance(node.value, str) and id(node) not in docstrings)
    levels = {"not measurable"}
    return {text for text in texts if TWO_WORDS.search(text)} - levels


@pytest.fixture(scope="module")
def english() -> list[str]:
    return list(ratings())


def test_the_cases_have_every_sentence_of_a_rating(english):
    missing = [part for part in written_texts() if not any(part in text for text in english)]
    assert missing == [], "Add a case to CASES, and the sentence to api/messages/languages/de.json."


def test_every_sentence_of_a_rating_is_in_german(english):
    shown, written = [translate_sentences(text, GERMAN) for text in english], written_texts()
    wrong = [(text, part) for text in shown for part in written if part in text]
    assert wrong == [], "Add the sentences to api/messages/languages/de.json."
    assert [text for text in shown if ENGLISH_WORDS.search(text)] == []


def test_approximate_regions_are_explained_in_german():
    _, note = choose_mask_threshold(PixelHistogram())
    shown = translate_sentences(note or "", GERMAN)
    assert "0,5" in shown and "ungefähr" in shown and not ENGLISH_WORDS.search(shown)
