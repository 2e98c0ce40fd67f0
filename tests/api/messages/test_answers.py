"""Answers in German."""

import re

import pytest

from api.accounts.users import COMMAND_LINE
from api.messages.answers import TEXT_MEMBERS, UNTRANSLATED_MEMBERS, translate_answer
from api.messages.language import find_language
from tests.api.page_texts import API
from training.worker.file_sets import describe_position

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
    assert translate_answer(problem, GERMAN)["detail"] == "Wait."


@pytest.mark.parametrize(
    "answer",
    [
        {"versions": [{"number": 1, "created_by": "Ada", "note": BLACK}]},
        {"review": {"label": "good", "reviewer": "Ada", "reason": BLACK}},
        {"before": {"note": BLACK}, "after": {"note": BLACK}, "who": BLACK},
        {"events": [{"kind": "output", "content": [BLACK]}]},
    ],
)
def test_texts_of_people_and_programs_stay(answer):
    assert translate_answer(answer, GERMAN) == answer


def test_numbers_of_rows_have_no_separators():
    values = {"worker": "gpu-1", "job": 12345, "seconds": 5}
    problem = {"code": "worker_has_job", "detail": "It has one.", "values": values}
    assert "Training 12345," in translate_answer(problem, GERMAN)["detail"]


def test_texts_are_translated_at_any_depth_and_other_members_stay():
    answer = {"models": [{"manifest": {"warnings": [BLACK], "name": BLACK}}], "problem": {"warnings": []}}
    translated = translate_answer(answer, GERMAN)
    assert translated["models"][0]["manifest"]["warnings"][0].startswith("Das Bild ist schwarz")
    assert translated["models"][0]["manifest"]["name"] == BLACK
    assert translated["problem"] == {"warnings": []}


def test_unknown_people_are_named_in_german():
    translated = translate_answer({"created_by": "unknown person at 10.0.0.1"}, GERMAN)
    assert translated == {"created_by": "Unbekannt (10.0.0.1)"}


def test_the_command_line_is_named_in_german():
    assert translate_answer({"who": COMMAND_LINE}, GERMAN) == {"who": "Die Befehlszeile"}


@pytest.mark.parametrize(
    ("stages", "english", "german"),
    [
        ({}, "start of the training", "Anfang des Trainings"),
        ({0: "segment", 1: "joint"}, "stage joint, step 7", "Stufe joint, Schritt 7"),
        ({0: "segment"}, "end of stage segment", "Ende der Stufe segment"),
    ],
)
def test_the_position_of_a_checkpoint_is_in_german(stages, english, german):
    position = describe_position("ckpt-1-7", stages)
    assert position == english
    assert (
        translate_answer({"checkpoint": {"position": position}}, GERMAN)["checkpoint"]["position"] == german
    )


def test_data_of_other_systems_stay_as_they_are():
    answer = {"metadata": {"code": [], "detail": BLACK, "values": 1}, "outcome": {"detail": "a", "code": []}}
    assert translate_answer(answer, GERMAN) == answer


def test_each_translated_member_is_a_field_of_an_answer():
    paths = [path for name in ("api", "segdec") for path in (API.parent / name).rglob("*.py")]
    fields = {name for path in paths for name in re.findall(r"(?m)^ +(\w+): ", path.read_text("utf-8"))}
    assert (TEXT_MEMBERS | UNTRANSLATED_MEMBERS) - fields == set()
