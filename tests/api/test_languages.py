"""Each text of the pages and reports has a translation in each language; scripts show no other texts."""

import ast
import re
from collections.abc import Iterator

import pytest
from babel import Locale

from api.messages.catalogues import DEFAULT, read_catalogues
from api.messages.language import ENGLISH, find_language
from segdec.errors import ConfigError
from tests.api.javascript_texts import texts_of
from tests.api.page_texts import (
    API,
    FUNCTIONS,
    SCRIPTS,
    computed_texts,
    english_texts,
    name_of,
    texts_of_html,
    texts_of_module,
    texts_of_script,
)

LANGUAGES = [code for code in read_catalogues() if code != DEFAULT]
NAME = re.compile(r"\{(\w*)\}")

WORDS = re.compile(r"\b[A-Z][a-z]|[a-z]{2} | [a-z]{2}")
"""What a text for users has: a word with a capital letter, or two words."""
TECHNICAL = re.compile(
    r"Bearer |(Content|If|Retry|X)-[\w-]+|Escape|Enter|Arrow\w*"  # headers and keys
    r"|[ ,]*(px|bit|ms|min|s)[ ,]*"  # units
    r"|out |px system-ui, sans-serif|roll back|segdec "  # style, codes and names
)
ALWAYS_SEVERAL = {
    "A training needs at least {count} good photographs.",
    "For proposals from these labels, label {needed} good and {needed} defective parts. "
    "So far: {good} good, {defective} defective.",
    "The errors of each period are shown for up to {count} periods.",
}
"""Texts with a number that is never one."""
SELECTORS = {"querySelector", "querySelectorAll", "closest", "matches"}
TRANSLATES = {API / f"static/shared/{name}.js" for name in ("language", "role_text")}


def untranslated(source: str) -> Iterator[str]:
    """Yields the texts of a script that look like texts for users and are not translated."""
    for found in texts_of(source):
        is_translated = found.function in FUNCTIONS
        if found.text.lstrip().startswith("<") and "translateTree(" in source:
            continue
        if is_translated or found.function in SELECTORS or TECHNICAL.fullmatch(found.text):
            continue
        if WORDS.search(found.text) and not found.text.startswith(("#", ".")):
            yield f"line {found.line}: {found.text!r}"


# === The catalogues ===


@pytest.fixture(scope="module")
def texts():
    """Whether a text has a form for each number, by text."""
    plural: dict[str, bool] = {}
    for text, has_forms, place in english_texts():
        assert plural.setdefault(text, has_forms) == has_forms, (
            f"{place}: {text} is also used without a count"
        )
    return plural


def test_german_texts_name_defects_only_with_one_word():
    """A defect is a "Fehler", a part with one "fehlerhaft"; failures of the software have other names."""
    defects = re.compile(r"(?i)defect|missed|for review")
    wrong = []
    for english, german in read_catalogues()["de"].texts.items():
        for text in [german] if isinstance(german, str) else german.values():
            is_other = re.search(r"(?i)defekt|mangel|mängel|fehlerrate", text)
            if is_other or (re.search(r"Fehler(?!alarm)", text) and not defects.search(english)):
                wrong.append(text)
    assert wrong == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_text_has_a_translation_and_none_is_unused(texts, code):
    known = read_catalogues()[code].texts
    places = {text.text: text.place for text in english_texts()}
    missing = [f"{places[text]}: {text}" for text in texts if text not in known]
    unused = [text for text in known if text not in texts]
    assert (missing, unused) == ([], []), (
        f"Add them to, or remove them from, api/messages/languages/{code}.json."
    )


def test_numbers_of_things_have_plural_forms(texts):
    numbered = re.compile(
        r"\{\w+\} ((good|defective) )?(photographs|parts|labels|verdicts|inspections|periods|events)\b"
    )
    fixed = {text for text, has_forms in texts.items() if numbered.search(text) and not has_forms}
    assert fixed == ALWAYS_SEVERAL


@pytest.mark.parametrize("code", LANGUAGES)
def test_translations_have_the_values_and_plural_forms_of_their_texts(texts, code):
    forms = {*Locale.parse(code).plural_form.tags, "other"}
    for text, translated in read_catalogues()[code].texts.items():
        assert isinstance(translated, str) != texts[text], f"{text}: forms are for texts with a count"
        named = sorted(NAME.findall(text))
        if isinstance(translated, str):
            assert sorted(NAME.findall(translated)) == named, text
            continue
        assert set(translated) == forms, text
        assert sorted(NAME.findall(translated["other"])) == named, text
        assert all(set(NAME.findall(form)) <= {"count", *named} for form in translated.values()), text


# === The scripts ===


@pytest.mark.parametrize(
    "path",
    [path for path in SCRIPTS if path not in TRANSLATES],
    ids=lambda path: path.relative_to(API / "static").as_posix(),
)
def test_scripts_translate_the_texts_that_they_show(path):
    source = path.read_text("utf-8")
    assert list(untranslated(source)) == []
    assert computed_texts(source) == [], "functions that translate need literal texts"


def test_each_kind_of_change_has_a_sentence():
    made = {
        call.args[2].value
        for path in API.rglob("*.py")
        if "add_audit_entry" in (source := path.read_text("utf-8"))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and name_of(call.func) == "add_audit_entry"
        if isinstance(call.args[2], ast.Constant)
    }
    sentences = (API / "static/shared/change_text.js").read_text("utf-8")
    assert len(made) > 20
    assert [what for what in made if f'  "{what}": (' not in sentences] == []


@pytest.mark.parametrize(
    "source",
    [
        'setText(byId("none"), "No parts")',
        'byId("none").textContent = found ? "" : "Nothing";',
        'createElement("p", "hint", `${count} of ${all} parts`)',
        'image.alt = `Part ${name}`; // "Part"',
        "dialog.innerHTML = `<p>No <b>parts</b></p>`",
        'translate("{name} left", { name: known ? name : "An unknown person" })',
    ],
)
def test_a_text_that_is_not_translated_is_found(source):
    assert list(untranslated(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        'setText(byId("none"), translate("No parts"))',
        'const path = `v1/records/${id}`; // "No parts"',
        'main.querySelector("#tools button").className = "wide";',
        'element.style.width = `${width} px`; const names = { "No parts": 1 };',
        "const digits = /No parts [\"']/;",
    ],
)
def test_other_texts_are_not_reported(source):
    assert list(untranslated(source)) == []


def test_a_computed_text_is_found():
    assert computed_texts("translate(found ? one : other)") == [1]
    assert computed_texts('\ntranslateCount(count, "{count} parts")') == [2]
    assert computed_texts('translateCount(count, "{count} part", "{count} parts", { name })') == []


def test_texts_are_found_in_all_kinds_of_files():
    page = (
        '<p title="Two">One <b>three</b><i translate="no">PDF</i> – <kbd>K</kbd></p><noscript>Four</noscript>'
    )
    assert [text.text for text in texts_of_html(page, "")] == ["Two", "One", "three"]
    script = 'translate("One", { x: translate("Two") }) + translateCount(n, "{count} part", "{count} parts")'
    found = [(text.text, text.plural) for text in texts_of_script(script, "")]
    assert found == [("One", False), ("Two", False), ("{count} parts", True)]
    dialog = "const DIALOG = `<p>One <b>two</b></p>`;"
    assert [text.text for text in texts_of_script(dialog, "")] == ["One", "two"]
    module = 'language.translate("One", x=1); translate_count(n, "{count} part", "{count} parts")'
    assert [(text.text, text.plural) for text in texts_of_module(module, "")] == [
        ("One", False),
        ("{count} parts", True),
    ]


# === Languages in Python ===


def test_numbers_dates_and_plurals_follow_the_language():
    german = find_language("de")
    assert [language.count(12345) for language in (ENGLISH, german)] == ["12,345", "12.345"]
    assert [language.percent(0.0512) for language in (ENGLISH, german)] == ["5.12 %", "5,12 %"]
    forms = "{count} inspection", "{count} inspections"
    counted = [german.translate_count(count, *forms) for count in (0, 1, 2)]
    assert counted == ["0 Prüfungen", "1 Prüfung", "2 Prüfungen"]
    assert [ENGLISH.translate_count(count, *forms) for count in (1, 2000)] == [
        "1 inspection",
        "2,000 inspections",
    ]


def test_an_unknown_language_is_an_error_that_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"The language is xx\. Expected one of: en, de"):
        find_language("xx")
