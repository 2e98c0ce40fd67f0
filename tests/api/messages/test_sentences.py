"""Stored sentences in another language; the templates of the catalogues."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from babel import Locale
from pydantic_core._pydantic_core import list_all_errors

from api.messages.catalogues import DEFAULT, read_catalogues
from api.messages.language import find_language
from api.messages.sentences import translate_sentences
from tests.api.page_texts import API

GERMAN = find_language("de")
LANGUAGES = [code for code in read_catalogues() if code != DEFAULT]
VALUE = re.compile(r"\{\w+\}")


def test_other_sentences_stay_as_they_are():
    known, other = "With so few photographs this may be by chance.", "Of a later version. "
    german = "Bei so wenigen Bildern kann das Zufall sein."
    texts = [f"{other}{known}\n{known} {other}", "It misses 1 of 2 photographs of 'a. b'.", "", known * 99]
    shown = [translate_sentences(text, GERMAN) for text in texts]
    assert shown == [f"{other}{german}\n{german} {other}", *texts[1:]]


def test_a_text_with_many_ends_of_values_is_read_once():
    """A pattern with backtracking would need hours."""
    text = "x. size: the photograph has " + " × 1 px, in training 1" * 80
    assert translate_sentences(text, GERMAN) == text


def test_values_are_translated_with_their_sentence():
    english = "On 80 val/test photographs it misses 5 of 40 defective ones and leaves 2 for review; "
    misses = "5 von 40 fehlerhaften übersehen und 2 zur Nachprüfung; "
    german = f"80 Bilder (Validierungsbilder und Testbilder): {misses}"
    assert translate_sentences(f"{english}AP 0.91, by chance 0.50.", GERMAN).startswith(german)
    assert translate_sentences("Ordered by unknown person at 10.0.0.1.", GERMAN) == (
        "Beauftragt von Unbekannt (10.0.0.1)."
    )
    few = "The validation split has 0 good and 1 defective image, too few to choose a score threshold: "
    german = "Die Validierungsmenge hat 0 gute Bilder und 1 fehlerhaftes, zu wenige, um einen Schwellwert zu "
    assert translate_sentences(f"{few}0.5 is used.", GERMAN) == f"{german}wählen: 0,5 wird verwendet."
    used = translate_sentences("unknown person at 10.0.0.1 put the model into use, as stable.", GERMAN)
    assert used == "Unbekannt (10.0.0.1) hat das Modell übernommen, als stable."


# === Templates ===


def sources() -> Iterator[str]:
    """Yields errors of pydantic, and the modules; texts that continue on the next line are joined."""
    yield from (error["message_template_python"] for error in list_all_errors())
    for package in ("api", "segdec", "training"):
        for path in (API.parent / package).rglob("*.py"):
            yield re.sub(r'"\s+f?"', "", path.read_text("utf-8")).replace('"', " ")


@pytest.mark.parametrize("code", LANGUAGES)
def test_translations_have_the_values_and_plural_forms_of_their_templates(code):
    plurals = {*Locale.parse(code).plural_form.tags, "other"}
    for template, translation in read_catalogues()[code].sentences.items():
        if not isinstance(translation, str):
            assert set(translation) == plurals, template
        for form in [translation] if isinstance(translation, str) else translation.values():
            assert sorted(VALUE.findall(form)) == sorted(VALUE.findall(template)), template


def word_pairs(text: str) -> set[str]:
    """Returns all two words in a row."""
    return {" ".join(pair) for pair in pairwise(text.split())}


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_template_has_words_of_a_text_in_the_packages(code):
    written = set().union(*map(word_pairs, sources()))
    sentences = [text.removeprefix("split ") for text in read_catalogues()[code].sentences]
    longest = {text: word_pairs(max(VALUE.split(text), key=len).strip()) for text in sentences}
    assert [text for text, pairs in longest.items() if len(pairs & written) < len(pairs) // 3] == []
