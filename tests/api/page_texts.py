"""The texts of the pages and of the modules in Python that a language file translates."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import api
from api import page_routes as pages
from api.http import page_list
from api.roles import USER_ROLES
from tests.api.javascript_texts import texts_of

ATTRIBUTES = ("title", "placeholder", "aria-label", "alt", "data-text")
"""As in `language.js`."""
WORD = re.compile(r"[^\W\d_]{2}")
PAGES = (
    *(page_list.INSPECTION, page_list.LINE, page_list.REVIEW, page_list.PARTS),
    *(
        page_list.TRENDS,
        page_list.PLAN,
        page_list.DATA_SETS,
        page_list.MODELS,
        page_list.CHANGES,
        page_list.PART,
        page_list.SETTINGS,
    ),
    page_list.LABEL,
    page_list.NOT_FOUND,
    page_list.TRAIN,
)
FUNCTIONS = {"translate": 1, "translateCount": 2, "translate_count": 2}
"""Functions that translate, with the number of texts that they are passed."""
API = Path(api.__file__).parent
SCRIPTS = tuple(
    path for path in sorted(pages.STATIC.rglob("*.js")) if not {"vendor", "docs"} & set(path.parts)
)


class EnglishText(NamedTuple):
    """A text in English, and the place where it is written; `plural`: it has a form for each number."""

    text: str
    plural: bool
    place: str


@cache
def english_texts() -> list[EnglishText]:
    """Returns all texts that are translated."""
    return list(_english_texts())


def _english_texts() -> Iterator[EnglishText]:
    for role in USER_ROLES:
        yield EnglishText(role, False, "roles.py")
    for page in PAGES:
        yield from texts_of_html(
            pages.render(page, [*PAGES, page_list.API], pages.ZONE_AND_ACCOUNT), page.folder
        )
    for path in SCRIPTS:
        yield from texts_of_script(path.read_text("utf-8"), str(path.relative_to(API)))
    for path in sorted(API.rglob("*.py")):
        if "translate" in (source := path.read_text("utf-8")):
            yield from texts_of_module(source, str(path.relative_to(API)))


# === Pages ===


class _Texts(HTMLParser):
    """Collects the texts and attributes that `language.js` translates."""

    EMPTY = ("base", "br", "img", "input", "link", "meta")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.hidden: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ATTRIBUTES and value]
        if tag not in self.EMPTY:
            skips = ("translate", "no") in attrs or tag == "noscript"
            self.hidden.append(skips or bool(self.hidden and self.hidden[-1]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.hidden.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if self.hidden and not self.hidden[-1]:
            self.found.append(data.strip())


def texts_of_html(source: str, place: str) -> Iterator[EnglishText]:
    """Yields the texts of a page that are translated when it is opened."""
    parser = _Texts()
    parser.feed(source)
    assert not parser.hidden, f"{place}: not all elements are closed"
    for text in parser.found:
        if WORD.search(text):
            yield EnglishText(text, False, place)


# === Code ===


def texts_of_script(source: str, place: str) -> Iterator[EnglishText]:
    """Yields the texts that a script passes to functions that translate."""
    calls: dict[tuple[str, int], list[str]] = {}
    for found in texts_of(source):
        if found.function in FUNCTIONS:
            calls.setdefault((found.function, found.call), []).append(found.text)
        elif found.text.lstrip().startswith("<"):  # HTML, for translateTree
            yield from texts_of_html(found.text, place)
    for (function, _), texts in calls.items():
        yield EnglishText(texts[-1], FUNCTIONS[function] == 2, place)


def texts_of_module(source: str, place: str) -> Iterator[EnglishText]:
    """Yields the texts that a Python module passes to `translate` or `translate_count`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and name_of(node.func) in FUNCTIONS:
            values = [getattr(argument, "value", None) for argument in node.args]
            texts = [value for value in values if isinstance(value, str)]
            if texts:
                yield EnglishText(texts[-1], FUNCTIONS[name_of(node.func)] == 2, place)


def name_of(function: ast.expr) -> str:
    """Returns the name of a called function or method."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def computed_texts(source: str) -> list[int]:
    """Returns the lines of a script where `translate` is passed a text that is not a literal."""
    literals = Counter(found.call for found in texts_of(source) if found.function in FUNCTIONS)
    calls = re.finditer(r"(?<!function )\b(translate|translateCount)\(", source)
    wrong = (call for call in calls if literals[call.start()] != FUNCTIONS[call[1]])
    return [source.count("\n", 0, call.start()) + 1 for call in wrong]
