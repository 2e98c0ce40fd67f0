"""Sentences that are stored, or come from other packages, in English: recognised and translated.

A catalogue has a template for each, in which `{name}` stands for a value.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from babel.lists import format_list
from babel.numbers import get_decimal_symbol

from api.messages.language import Language

SENTENCE_VALUES = {"who", "reason", "name"}
"""Names of values that are sentences, or names as "The file"."""
LIST_PREFIXES = {"findings": "", "split": "split "}
"""Names of values that are lists, and what their items begin with in the catalogues."""
DECIMAL_VALUES = {"ap", "chance", "f1", "score", "former", "share", "confidence", "bound", "ratio", "ratios"}
COUNT_VALUES = {"count", "limit", "number", "total"}
VALUES_WITHOUT_SPACES = {"address"}
"""Names of values without spaces."""
ITEM_END = re.compile(r", | and |/")
MAX_CHARACTERS = 2000
"""Longer texts are output of programs."""
MAX_CACHED = 1024
"""Number of texts whose translations are kept."""


class Template(NamedTuple):
    """The pattern of a sentence and its translation, which may have a form for each number."""

    pattern: re.Pattern[str]
    translation: str | Mapping[str, str]


def translate_sentences(text: str, language: Language) -> str:
    """Returns a text in a language. Sentences without a template, and long texts, stay as they are."""
    return text if len(text) > MAX_CHARACTERS else _translate_known(text, language)


@lru_cache(MAX_CACHED)
def _translate_known(text: str, language: Language) -> str:
    shown, start = "", 0
    while start < len(text):
        end, translated = _translate_first(text, start, language)
        shown += translated + text[end : end + 1]  # the space after it
        start = end + 1
    return shown


@cache
def _templates(language: Language) -> tuple[Template, ...]:
    """Returns the templates of a language, first those with most text: their values are shortest."""
    sentences = language.catalogue.sentences
    texts = sorted(sentences, key=lambda text: len(re.sub(r"\{\w+\}", "", text)), reverse=True)
    return tuple(Template(_pattern_of(text), sentences[text]) for text in texts)


def _pattern_of(template: str) -> re.Pattern[str]:
    """Returns a pattern without backtracking: a value ends before the text after it."""
    first, *rest = re.split(r"\{(\w+)\}", template)  # names of values and the texts after them in turn
    end = r"(?=\s|$)" if template.endswith((".", ":")) else "$"
    pattern = re.escape(first)
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        after = re.escape(text) + (end if text is rest[-1] else "")
        character = r"\S" if name in VALUES_WITHOUT_SPACES else "."
        value = r"\d+(?:[.,]\d+)*" if name in COUNT_VALUES else rf"(?:(?!\. )(?!{after}){character})+"
        pattern += f"(?P<{name}>(?>{value})){re.escape(text)}"
    return re.compile(pattern + end)


def _translate_first(text: str, start: int, language: Language) -> tuple[int, str]:
    """Returns the end of the sentence at `start`, and its translation."""
    for pattern, translation in _templates(language):
        if match := pattern.match(text, start):
            given = match.groupdict()
            values = {name: _translate(name, value, language) for name, value in given.items()}
            if isinstance(translation, str):
                return match.end(), translation.format(**values)
            form = language.locale.plural_form(int(given["count"].replace(",", "")))
            return match.end(), translation[form].format(**values)
    stop = text.find(". ", start)
    end = len(text) if stop < 0 else stop + 1
    return end, text[start:end]


def _translate(name: str, value: str, language: Language) -> str:
    if name in SENTENCE_VALUES:
        return translate_sentences(value, language)
    if name in LIST_PREFIXES:
        begin = LIST_PREFIXES[name]
        items = [translate_sentences(begin + item, language) for item in ITEM_END.split(value)]
        return format_list([item.removeprefix(begin) for item in items], locale=language.locale)
    if name in DECIMAL_VALUES:
        return re.sub(r"(?<=\d)\.(?=\d)", get_decimal_symbol(language.locale), value)
    return value
