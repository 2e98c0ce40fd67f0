"""Streams the elements of CVAT's `annotations.xml` with their line numbers.

Rejects document types: their XML entities could read other files or expand without limit.
"""

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

ROOT = "annotations"
IMAGE = "image"
TRACK = "track"

MAX_BYTES = 2**30
"""Larger files are rejected unread, to limit memory."""


@dataclass(frozen=True)
class Element:
    """One element: name, attributes, line, and the children of an image."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)

    def text(self, name: str) -> str:
        """Returns an attribute; ValueError if it is missing."""
        if name not in self.attributes:
            raise ValueError(f"the {self.tag} has no attribute '{name}'")
        return self.attributes[name]

    def number(self, name: str, default: float | None = None) -> float:
        """Returns an attribute as a number; ValueError if it is invalid, or missing without a default."""
        if default is not None and name not in self.attributes:
            return default
        return to_number(self.text(name))


def to_number(text: str) -> float:
    """Parses a number, finite or not; ValueError if `text` is not a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text:.40}' is not a number") from None


def read_images(path: Path) -> list[Element]:
    """Reads the image elements of the file at `path`, in order.

    Raises:
        ValueError: If the file cannot be read, is too large, has a document type, or is not XML of "CVAT for
            images"; names the line.
    """
    reader = _Reader()
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ValueError(f"the file has {size} bytes, expected at most {MAX_BYTES}")
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except OSError as error:
        raise ValueError(f"the file cannot be read ({error.strerror})") from error
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno}: invalid XML ({expat.ErrorString(error.code)})") from error
    except LookupError as error:  # an encoding that Python does not know
        raise ValueError(f"line {reader.parser.CurrentLineNumber}: {error}") from error
    return reader.images


def read_root_tag(path: Path) -> str:
    """Returns the tag of the first element of an XML file; an empty string if it is not XML."""
    tags: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: tags.append(tag)
    try:
        with path.open("rb") as file:
            while not tags and (block := file.read(4096)):
                parser.Parse(block)
    except (OSError, expat.ExpatError, LookupError):
        pass
    return tags[0] if tags else ""


class _Reader:
    """Collects images and their direct children."""

    def __init__(self) -> None:
        self.images: list[Element] = []
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self._open: list[str] = []

    def _refuse_doctype(self, *_: object) -> None:
        raise ValueError(
            f"line {self.parser.CurrentLineNumber}: the file has a document type (<!DOCTYPE …>), which CVAT "
            "never writes"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if not self._open and tag != ROOT:
            raise ValueError(f"line {line}: the file starts with <{tag:.40}>, expected <{ROOT}>")
        if self._open == [ROOT]:
            if tag == TRACK:
                raise ValueError(f"line {line}: the file is 'CVAT for video'")
            if tag == IMAGE:
                self.images.append(Element(tag, attributes, line))
        elif self._open == [ROOT, IMAGE]:
            self.images[-1].children.append(Element(tag, attributes, line))
        self._open.append(tag)

    def _end(self, _: str) -> None:
        self._open.pop()
