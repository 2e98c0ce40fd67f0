"""Answers in German."""

import pytest

from api.messages.answers import translate_answer
from api.messages.language import find_language

GERMAN = find_language("de")
BLACK = "The photograph is black or almost black (lamp off, lens cap)."


@pytest.mark.parametrize(
    ("problem", "german"),
    [
        (
            {"code": "too_many_data_sets", "detail": "There are …", "values": {"limit": 1000}},
            "Es gibt schon 1.000 Datensätze. Verwenden Sie einen davon.",
        ),
        ({"code": "bad_click", "detail": "a is 1."}, "Der Klick ist ungültig. (a is 1.)"),
        (
            {"code": "unlike_training", "detail": BLACK},
            "Das Bild ist schwarz oder fast schwarz (Lampe aus, Objektivdeckel).",
        ),
        ({"code": "of_another_version", "detail": "Unknown."}, "Unknown."),
    ],
)
def test_errors_have_the_text_of_their_code_or_their_sentences(problem, german):
    assert translate_answer(problem, GERMAN) == {**problem, "detail": german}


def test_errors_say_how_long_to_wait():
    problem = {"code": "log_in_locked", "detail": "Wait."}
    assert "in 30 s" in translate_answer(problem, GERMAN, seconds="30")["detail"]
    assert "in ? s" in translate_answer(problem, GERMAN)["detail"]


def test_texts_are_translated_at_any_depth_and_other_members_stay():
    answer = {"models": [{"manifest": {"warnings": [BLACK], "name": BLACK}}], "problem": {"warnings": []}}
    translated = translate_answer(answer, GERMAN)
    assert translated["models"][0]["manifest"]["warnings"][0].startswith("Das Bild ist schwarz")
    assert translated["models"][0]["manifest"]["name"] == BLACK
    assert translated["problem"] == {"warnings": []}
