"""Errors of the service in German."""

from collections.abc import Iterator

import pytest

from tests.browser.conftest import serving
from tests.browser.german_page import translate_sentences


@pytest.fixture
def address(tmp_path) -> Iterator[str]:
    with serving(tmp_path) as service:
        yield service.address


def test_errors_are_shown_in_german_and_keep_details_with_values(address, visit):
    page = visit(address, locale="de-DE").open("parts")
    problems = [
        {"code": "name_taken", "detail": "There is already a data set 'A'."},
        {"code": "body_too_large", "detail": "Over 2 GB."},
        {
            "code": "unlike_training",
            "detail": "The photograph is black or almost black (lamp off, lens cap).",
        },
        {"code": "of_another_version", "detail": "Unknown."},
    ]
    name_taken, too_large, black, unknown = translate_sentences(
        page, "problem_text.js", "problemText", problems
    )
    assert name_taken == "Es gibt schon einen Datensatz mit diesem Namen."
    assert too_large == "Die Datei ist zu groß. (Over 2 GB.)"
    assert black.startswith("Das Bild ist schwarz") and unknown == "Unknown."
