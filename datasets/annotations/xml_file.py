"""Reads XML files of labelling tools without document types.

The entities of a document type could read other files or expand without limit.
"""

import re
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from datasets.text_file import guess_encoding

MAX_BYTES = 2**30
"""Larger files are rejected unread, to limit memory."""

HEAD_BYTES = 2**16
"""Part of a file in which its first element is searched."""

_DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]{0,100}encoding=["']([A-Za-z0-9._-]+)["']""")


def create_parser() -> expat.XMLParserType:
    """Returns a parser that raises ValueError for a document type."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError(
            f"line {parser.CurrentLineNumber}: the file has a document type (<!DOCTYPE …>), which labelling "
            "tools never write"
        )

    parser.StartDoctypeDeclHandler = refuse
    return parser


def parse(path: Path, parser: expat.XMLParserType) -> str:
    """Parses the file at `path` with the handlers of `parser`; returns its encoding, which may be a guess.

    Raises:
        ValueError: If the file cannot be read, is too large or is not XML; names the line.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ValueError(f"the file has {size} bytes, expected at most {MAX_BYTES}")
        data = path.read_bytes()
        encoding = _encoding(data)
        parser.Parse(data.decode(encoding, errors="replace"), True)
    except OSError as error:
        raise ValueError(f"the file cannot be read ({error.strerror})") from error
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno}: invalid XML ({expat.ErrorString(error.code)})") from error
    except LookupError as error:  # an encoding that Python does not know
        raise ValueError(f"line {parser.CurrentLineNumber}: {error}") from error
    return encoding


def _encoding(data: bytes) -> str:
    """The declared encoding, or a guess if there is none or it is wrong."""
    declared = _DECLARATION.match(data)
    encoding = declared[1].decode() if declared else ""
    try:
        data.decode(encoding or "ascii")
    except UnicodeDecodeError:
        return guess_encoding(data)
    return encoding or "utf-8"


def read_tree(path: Path) -> tuple[Element, str]:
    """Returns the root element of an XML file and the encoding; raises ValueError like `parse`."""
    parser, builder = create_parser(), TreeBuilder()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    encoding = parse(path, parser)
    return builder.close(), encoding


def read_root_tag(path: Path) -> str:
    """Returns the tag of the first element of an XML file; an empty string if it is not XML."""
    tags: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: tags.append(tag)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        parser.Parse(head.decode(_encoding(head), errors="replace"))
    except (OSError, expat.ExpatError, LookupError):
        pass
    return tags[0] if tags else ""


def to_number(text: str) -> float:
    """Parses a number, finite or not; ValueError if `text` is not a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text:.40}' is not a number") from None
