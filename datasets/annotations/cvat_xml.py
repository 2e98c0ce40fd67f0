"""Streams the elements of CVAT's `annotations.xml` with their line numbers."""

from dataclasses import dataclass, field
from pathlib import Path

from datasets.annotations.xml_file import create_parser, parse, to_number

ROOT = "annotations"
IMAGE = "image"
TRACK = "track"


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


def read_images(path: Path) -> list[Element]:
    """Reads the image elements of the file at `path`, in order.

    Raises:
        ValueError: If the file cannot be read, is too large, has a document type, or is not XML of "CVAT for
            images"; names the line.
    """
    reader = _Reader()
    parse(path, reader.parser)
    return reader.images


class _Reader:
    """Collects images and their direct children."""

    def __init__(self) -> None:
        self.images: list[Element] = []
        self.parser = create_parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self._open: list[str] = []

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
