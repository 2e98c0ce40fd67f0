"""The languages of pages, answers and reports: a JSON file for each, from English texts to translated ones.

English has no file. `docs/extending.md` describes how to add a language.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "languages"
DEFAULT = "en"

Texts = Mapping[str, str | Mapping[str, str]]
"""Translations by English text. That of a text with a count is a mapping from plural forms (`one`, `other`
and others) to texts; its key is the English plural.
"""


class Catalogue(NamedTuple):
    """A language: its own name, and its translations.

    Attributes:
        texts: Of the pages and the reports.
        codes: Texts of errors by their codes, with the names of their values in braces.
        sentences: Of templates of sentences that are stored, or come from other packages.
    """

    name: str
    texts: Texts
    codes: Mapping[str, str]
    sentences: Texts


@cache
def read_catalogues() -> Mapping[str, Catalogue]:
    """Returns the known languages by their codes, English first."""
    catalogues = {DEFAULT: Catalogue("English", {}, {}, {})}
    for path in sorted(FOLDER.glob("*.json")):
        catalogues[path.stem] = Catalogue(**json.loads(path.read_text("utf-8")))
    return catalogues
