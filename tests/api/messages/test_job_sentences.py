"""What the service and the workers write about trainings, in German."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from api.messages.language import find_language
from api.messages.sentences import translate_sentences

ROOT = Path(__file__).parents[3]
MODULES = (
    *("api/training/job_events.py", "api/training/jobs.py", "api/training/leases.py"),
    *("api/training/model_deployment.py", "training/worker/job_run.py"),
)
POSITIONS = {
    "add_state_event": 2,
    "_request": 3,
    "_finish": 3,
    "_end_attempt": 2,
    "_queue_again": 2,
    "_end": 1,
}
"""Functions that store a sentence, with its position among their arguments."""
VALUES = {
    "why": "The worker stopped.",
    "follows": "starts again",
    "state": "done",
    "f' {reason}' if reason else ''": "",
}
"""Values in sentences by their expressions; others are numbers or names, for which "5" stands."""
ENGLISH = re.compile(r"\b([Tt]he|is|has|have|by|another|Another|person|ended|stopped|rejected|are|not)\b")


def text_of(node: ast.expr, values: Mapping[str, str] = VALUES) -> str:
    """Returns the text of a literal with its values; empty for another expression."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return values.get(ast.unparse(node.value), "5")
    return "".join(text_of(part, values) for part in node.values) if isinstance(node, ast.JoinedStr) else ""


def written_texts(source: str) -> Iterator[str]:
    """Yields the sentences that a module stores, as literals or as names of literals."""
    tree = ast.parse(source)
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    for node in ast.walk(tree):
        name = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
        if not isinstance(node, ast.Call) or name not in POSITIONS:
            continue
        for given in node.args[POSITIONS[name] :][:1]:
            name_of = ast.unparse(given)
            before = [one for one in assigned if one.lineno < node.lineno and target_of(one) == name_of]
            stored = max(before, key=lambda one: one.lineno).value if before else given
            if text := text_of(stored):
                yield text


def target_of(assignment: ast.Assign) -> str:
    """Returns the name to which a single value is assigned."""
    return ast.unparse(assignment.targets[0])


def test_texts_are_found():
    source = """text = f"The worker {name} stopped."
add_state_event(c, 1, text, now)
text = "It ended."
self._end("failed", text)
_finish(c, row, "done", reason)"""
    assert list(written_texts(source)) == ["The worker 5 stopped.", "It ended."]


def test_every_sentence_about_a_training_is_in_german():
    english = [text for name in MODULES for text in written_texts((ROOT / name).read_text("utf-8"))]
    assert len(english) > 15 and all(map(ENGLISH.search, english))
    shown = [translate_sentences(text, find_language("de")) for text in english]
    assert [text for text in shown if ENGLISH.search(text)] == [], (
        "Add them to api/messages/languages/de.json."
    )
