"""The texts in a JavaScript file, with the function that each is passed to."""

import re
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<text> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<pattern> (?<=[(,=:!&|?{};\[]) \s* /(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]* )
    | (?P<template> ` )
    | (?P<open> (?P<function>[\w#]*) \( | [{\[] )
    | (?P<close> [)\]}] )
    """,
    re.VERBOSE | re.DOTALL,
)
CHUNK = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
"""The part of a template before a value or its end."""


class Text(NamedTuple):
    """A text: its line, the function that has it as an argument (or ""), and the number of that call."""

    text: str
    line: int
    function: str
    call: int


def texts_of(source: str) -> Iterator[Text]:
    """Yields the string literals of a file, and the constant parts of its templates."""
    position, opened = 0, [("", 0)]
    while match := TOKEN.search(source, position):
        position = match.end()
        line = source.count("\n", 0, match.start()) + 1
        if match["text"] and source[position] == ":":  # the name of a property
            continue
        if match["text"]:
            yield Text(re.sub(r"\\(.)", r"\1", match["text"][1:-1]), line, *opened[-1])
        elif match["open"]:
            opened.append((match["function"] or "", match.start()))
        elif match["template"] or (match["close"] == "}" and opened[-1][0] == "`"):
            if match["close"]:
                opened.pop()
            chunk = CHUNK.match(source, position)
            assert chunk is not None
            yield Text(chunk[0], line, "", match.start())
            position = chunk.end() + 1  # the end of the template
            if source[chunk.end()] == "$":
                opened.append(("`", match.start()))
                position += 1
        elif match["close"]:
            opened.pop()
    assert opened == [("", 0)], f"{len(opened)} brackets are open at the end"
