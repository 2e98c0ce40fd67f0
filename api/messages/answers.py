"""Answers of the service in another language: the members that are texts are translated."""

from collections.abc import Mapping
from typing import Any

from api.messages.language import Language
from api.messages.sentences import translate_sentences

TEXT_MEMBERS = {
    "advice",
    "content",
    "detail",
    "error",
    "measured_on",
    "note",
    "position",
    "problem",
    "reason",
    "text",
    "warnings",
}
"""Names of members, at any depth, that are sentences of the product or lists of them."""
WRITTEN_BY_PEOPLE = {"note": "created_by", "reason": "reviewer"}
"""Names of members that people write, if their object has the other member: notes of versions, reviews."""
PERSON_MEMBERS = {
    "added_by",
    "changed_by",
    "created_by",
    "deleted_by",
    "ordered_by",
    "removed_by",
    "started_by",
    "who",
}
"""Names of members with names of people, or with sentences if nobody has logged in."""
PERSON_SENTENCES = ("unknown person ", "the command line")
"""How names of people begin that are sentences of the product."""
UNTRANSLATED_MEMBERS = {"after", "before", "machine", "metadata"}
"""Names of members with data of people and other systems, which stay as they are."""
ROW_NUMBERS = {"job"}
"""Names of values that are numbers of rows."""
LABEL_VALUES = {"label", "other_label"}
"""Names of values that are labels of photographs."""


def translate_answer(answer: Any, language: Language, **values: str) -> Any:
    """Returns an answer, as JSON values, in a language.

    The text of an error is that of its code, with its values, if the language has one.

    Args:
        answer: In English.
        language: Not English.
        values: Further values of the errors.
    """
    if isinstance(answer, list):
        return [translate_answer(item, language, **values) for item in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        name: member if name in UNTRANSLATED_MEMBERS else _translate_member(answer, name, language, values)
        for name, member in answer.items()
    }


def _translate_member(
    answer: dict[str, Any], name: str, language: Language, values: Mapping[str, str]
) -> Any:
    member = answer[name]
    if name in PERSON_MEMBERS and isinstance(member, str):
        return translate_sentences(member, language) if member.startswith(PERSON_SENTENCES) else member
    if WRITTEN_BY_PEOPLE.get(name) in answer or (name == "content" and answer.get("kind") == "output"):
        return member
    if name not in TEXT_MEMBERS or not isinstance(member, str | list):
        return translate_answer(member, language, **values)
    if isinstance(member, list):
        texts = (translate_sentences(item, language) if isinstance(item, str) else item for item in member)
        return [translate_answer(item, language, **values) for item in texts]
    is_problem = name == "detail" or (name == "error" and "detail" in answer)
    cause = answer if is_problem else answer.get("cause" if name == "text" else f"{name}_cause")
    if not isinstance(cause, dict) or not isinstance(cause.get("code"), str):
        return translate_sentences(member, language)
    given = cause.get("values") or {}
    translated = translate_error(member, cause["code"], {**given, **values}, language)
    photograph = {"text": answer.get("name"), "problem": given.get("name")}.get(name)
    return f"{photograph}: {translated}" if photograph else translated


def translate_error(detail: str, code: str, values: Mapping[str, Any], language: Language) -> str:
    """Returns the text of an error in a language, from its code and values.

    A value `detail`, or else the English text, is translated by its sentences.
    """
    detail = translate_sentences(str(values.get("detail", detail)), language)
    if code not in language.catalogue.codes:
        return detail
    shown = {name: _translate_value(name, value, language) for name, value in values.items()}
    try:
        return language.catalogue.codes[code].format(**{**shown, "detail": detail})
    except KeyError:  # stored without the values
        return detail


def _translate_value(name: str, value: Any, language: Language) -> str:
    if name in LABEL_VALUES and value == "good":
        return language.translate(value)
    is_number = isinstance(value, int | float) and name not in ROW_NUMBERS
    return language.number(value) if is_number else str(value)
