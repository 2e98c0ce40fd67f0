"""Identifiers and texts use standard technical English: no word of the two tables below.

`python tests/test_plain_words.py [PATH …]` prints every place, with what to write instead, and fails if
there is one. `make lint` runs it.
"""

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("segdec", "api", "training", "datasets", "benchmarks", "deploy", "examples", "docs", "tests")
TRACKED = (*FOLDERS, "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
TEXT_SUFFIXES = (".md", ".js", ".html", ".css", ".j2")

IDENTIFIERS = {
    r"(MOST|LEAST|FEWEST)": "MAX_… or MIN_… with a noun",
    r"(put_up|take_down|let_go)": "enqueue, dequeue, expire",
    r"(give_up|go_on|look_at|look)": "fail, resume, inspect",
    r"(reckon|hurry|settle|deal)": "compute, run_now, drain, split",
    r"(mend|mended|forsaken|tell|told)": "correct, abandoned, notify",
    r"(kin|twin|twins|(?<!dead_)letters?|heap|ballast)": "related, duplicate, message, backlog",
    r"(made_up|stand_in|untold|breath|bite)": "synthetic, placeholder, none, interval, batch",
}
"""Parts of identifiers, between underscores or at the ends: what to write instead."""

TEXTS = {
    r"\b(reckon\w*|whereupon|hitherto|forsaken|kin|wherewithal)\b": "compute; then; so far; related",
    r"\bfor ever\b|\bin vain\b|\bof late\b": "forever, permanently; unsuccessfully; recently",
    r"\b(is|are|was|were|be) told\b|\btold (of|by|that|to)\b": "is notified, reported, sent",
    r"\btells (of|whether)\b": "reports, states",
    r"\b(is|are|was) no (JSON|PNG|file|folder|number|image|photograph|key)\b": "is not a …",
    r"\b(is|are|was) no (model|directory|integer|mask|text|date)\b": "is not a …",
    r"\b(puts?|putting) up\b|\b(takes?|taken) down\b": "queue; remove from the queue",
    r"\blet(s|ting)? go\b|\bgives? back\b|\bgiven back\b": "expire, release; return",
    r"\b(said|say) again\b|\bwithout a word\b|\ba word (to|of)\b": "reproduce; silently; in shadow mode",
    r"\b\d+ letters\b|\bletters (long|of)\b": "characters",
    r"\b(mend(s|ed|ing)?)\b": "fix, correct",
    r"(?<!-)\btwins?\b": "near duplicate",  # --twins and --group-twins are flags
    r"\bmade-up\b": "synthetic",
    r"\b(must|may|can|shall|will) go on\b|\bgo(es)? on\b|\bwent on\b": "continue, resume",
    r"\bshall\b": "must, will",
    r"\buntaught\b|\bunlearnt\b|\bunkept\b": "never used in training; not stored",
    r"\bthat befalls\b|\bbefalls\b|\bbefell\b": "happens to",
    r"\bthe hall\b": "the production floor",
    r"\b(lies|lie|lay) (in|on|at|beside|there)\b": "is in, is at",
    r"\bnobody (waits|knows|looks|asks|told)\b": "say which component does not …",
    r"\bin words\b|\bby hand of\b": "as text",
}
"""Phrases in docstrings, comments, messages and pages: what to write instead."""

_part = "|".join(IDENTIFIERS)
_IDENTIFIER = re.compile(rf"(?:^|_)(?:{_part})(?:_|$)")
_TEXT = {re.compile(key.replace(" ", r"\s+"), re.IGNORECASE): instead for key, instead in TEXTS.items()}
_ANY_TEXT = re.compile("|".join(pattern.pattern for pattern in _TEXT), re.IGNORECASE)


def tracked(paths):
    listed = subprocess.run(["git", "ls-files", "-z", *paths], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def instead_of(name):
    return next(instead for part, instead in IDENTIFIERS.items() if re.search(rf"(?:^|_){part}(?:_|$)", name))


def banned_in_text(text, first_line=1):
    """Line, phrase and replacement of everything in a text that TEXTS has; line breaks count as spaces."""
    joined = re.sub(r"\n[ \t]*(?:#+ |\* |// )?", lambda found: "\n".ljust(len(found.group())), text)
    if not _ANY_TEXT.search(joined):
        return
    for pattern, instead in _TEXT.items():
        for found in pattern.finditer(joined):
            yield first_line + joined.count("\n", 0, found.start()), " ".join(found.group().split()), instead


def banned_in_python(source):
    """As `banned_in_text`, for the strings and comments of Python code, and its identifiers."""
    seen = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield from banned_in_text(token.string, token.start[0])
        elif token.type == tokenize.NAME and token.string not in seen:
            seen.add(token.string)
            if _IDENTIFIER.search(token.string):
                yield token.start[0], token.string, instead_of(token.string)


def banned_words(paths):
    for path in tracked(paths):
        if path.suffix in (".py", *TEXT_SUFFIXES) and path != Path(__file__):
            source = re.sub(r"\| not \| but \|.*?\n\n", "\n\n", path.read_text("utf-8"), flags=re.DOTALL)
            found = banned_in_python(source) if path.suffix == ".py" else banned_in_text(source)
            for line, words, instead in found:
                yield f"{path.relative_to(ROOT)}:{line}: {words!r}: write {instead}"


def test_what_is_banned_is_found():
    source = 'MOST_ROWS = 3\n\n\ndef put_up(row):\n    """Is told of each row, and is\n    no file."""\n'
    found = [(line, words) for line, words, _ in banned_in_python(source)]
    assert found == [(1, "MOST_ROWS"), (4, "put_up"), (5, "Is told"), (5, "is no file")]


if __name__ == "__main__":
    places = list(banned_words(sys.argv[1:] or TRACKED))
    sys.exit("\n".join(places) or 0)
