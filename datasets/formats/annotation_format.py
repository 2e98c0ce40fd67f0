"""The interface of an annotation format."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets.formats.annotation_reader import AnnotationReader


@dataclass(frozen=True)
class AnnotationFormat:
    """How the annotation files of one labelling tool are recognised and read.

    Attributes:
        name: Name of the layout that reads only this format.
        files: Description for messages, such as "JSON files of LabelMe".
        advice: Sentence that ends each problem of an annotation.
        matches: Returns whether the annotation file at a path, with this content, has the format. The
            content is parsed JSON or YAML, the tag of the root element of XML, or the text of another file.
        read: Adds the annotations of a file to the reader; takes the same path and content.
        lists_photographs: Whether each photograph has an entry, so that others are ignored. Otherwise a
            photograph without an annotation file is good.
    """

    name: str
    files: str
    advice: str
    matches: Callable[[Path, Any], bool]
    read: Callable[[AnnotationReader, Path, Any], None]
    lists_photographs: bool = True
