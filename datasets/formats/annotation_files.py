"""Finds the annotation files of a folder, recognises their formats and reads them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets.annotations.xml_file import read_root_tag
from datasets.formats import coco, cvat, label_studio, labelme, unreadable, voc, yolo
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.text_file import UTF8, parse_json, read_annotation_text

FORMATS: dict[str, AnnotationFormat] = {
    each.name: each
    for each in (coco.FORMAT, cvat.FORMAT, label_studio.FORMAT, labelme.FORMAT, voc.FORMAT, yolo.FORMAT)
}
"""All formats by name; the first one that matches a file reads it."""

SUFFIXES = frozenset({".json", ".xml", ".yaml", ".yml", ".txt", ".names"}) | unreadable.TEXT_SUFFIXES
"""Types of annotation files, and of some that cannot be read."""

UNKNOWN = "unknown"
"""Name of the reader that collects files without a known format."""

Readers = dict[str, AnnotationReader]


def read_annotation_files(
    root: Path,
    sources: Sequence[Path],
    photographs: Sequence[Path],
    formats: Sequence[str],
    reading: ReadingOptions = DEFAULTS,
) -> Readers:
    """Reads the annotation files of a data set.

    `sources` may be annotation files, and masks of Pascal VOC before them; files of other `formats` are
    ignored.

    Returns:
        A reader for each format that was found, by its name, and one under `UNKNOWN` with the problems of
        files beside photographs that have no known format.
    """
    readers: Readers = {UNKNOWN: AnnotationReader(root, "", photographs, reading)}
    for path in sources:
        with readers[UNKNOWN].problem_at(str(path), *readers[UNKNOWN].related_names(path), advice=""):
            content, note = _read_content(path)
            if formats:
                unreadable.check_readable(path, content)
            file_format = next((each for each in FORMATS.values() if each.matches(path, content)), None)
            if file_format is None:
                _report_unknown(readers[UNKNOWN], path)
            elif file_format.name in formats:
                if file_format.name not in readers:
                    readers[file_format.name] = AnnotationReader(
                        root, file_format.advice, photographs, reading
                    )
                readers[file_format.name].notes += [note] * bool(note)
                readers[file_format.name].files.append(path)
                file_format.read(readers[file_format.name], path, content)
    return readers


def _read_content(path: Path) -> tuple[Any, str]:
    """The content as `AnnotationFormat.matches` expects it, and a note about its encoding."""
    suffix = path.suffix.lower()
    if suffix == ".xml":
        return read_root_tag(path), ""
    if suffix in yolo.YAML_SUFFIXES:
        return yolo.read_yaml(path), ""
    if suffix in unreadable.TEXT_SUFFIXES:
        return unreadable.read_head(path), ""
    if suffix not in SUFFIXES:  # a mask
        return None, ""
    text, encoding = read_annotation_text(path)
    note = "" if encoding == UTF8 else f"{path} is not UTF-8; it was read as {encoding}."
    return parse_json(text, path) if suffix == ".json" else text, note


def _report_unknown(reader: AnnotationReader, path: Path) -> None:
    """Raises ValueError for a JSON or XML file beside a photograph; notes others."""
    if path.suffix.lower() not in {".json", ".xml"}:
        return
    known = "; ".join(each.files for each in FORMATS.values())
    if reader.photographs.beside(path):
        raise ValueError(f"the format of the file is unknown. Expected {known}: convert or remove it")
    reader.notes.append(f"{path} was ignored, because its format is unknown.")
