"""Label Studio: an export in the format "JSON" in the folder of the photographs.

    project-1-at-2024-05-01.json    any name; several files are merged
    images/part.png                 anywhere below the root

The photograph of a task is found by the file name in its data: `/data/upload/1/ab12cd34-part.png` is the file
with this name, otherwise `part.png`; `/tasks/1/resolve/?fileuri=…` names one in a cloud storage, in base64.
Photographs without a task or without a finished annotation are ignored. An annotation without results means
good.

Of several annotations of a task, the ground truth is used. Without one they must agree whether the photograph
is good; the latest is used. Otherwise the setting `annotator` decides: `any` (defective if one annotation
marks a defect; all their defects are drawn), `all` (defective if all do), `latest`, or the number, e-mail
address or name of an annotator.

Polygons, brush strokes, bitmasks, ellipses and rectangles (supervision `box`) are drawn. The choice for a
photograph without shapes is its class (supervision `label`). Labels that mean good mark no defect.

Reference:
    https://labelstud.io/guide/export, section "Label Studio JSON format of annotated tasks"
"""

import base64
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from datasets.annotations.label_studio_shapes import (
    drawn_results,
    marks_defect,
    read_choices,
    read_shape,
    result_size,
)
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader, FileAnnotation
from datasets.reading_options import ReadingOptions
from segdec.images import SUFFIXES

ANY, ALL, LATEST = "any", "all", "latest"

_STANDARD_BASE64 = str.maketrans("-_ ", "+/+")
"""Other spellings of base64 in addresses."""

Values = dict[str, Any]


def _matches(_path: Path, content: Any) -> bool:
    return (
        isinstance(content, list) and bool(content) and isinstance(content[0], dict) and "data" in content[0]
    )


def _read(reader: AnnotationReader, path: Path, content: Any) -> None:
    for number, task in enumerate(content, start=1):
        key = task["id"] if isinstance(task, dict) and isinstance(task.get("id"), int) else f"number {number}"
        place = f"{path}, task {key}"
        with reader.problem_at(place, advice=""):
            _read_task(reader, path, place, task)


FORMAT = AnnotationFormat(
    "label_studio",
    "a JSON file of Label Studio's tasks",
    "Correct it in Label Studio and export again.",
    _matches,
    _read,
)


def _read_task(reader: AnnotationReader, path: Path, place: str, task: Any) -> None:
    given = task.get("annotations", task.get("completions")) if isinstance(task, dict) else None
    if not isinstance(given, list) or not isinstance(task.get("data"), dict):
        raise ValueError(
            "the entry is not a task with 'data' and 'annotations'. In Label Studio, export in the format "
            "'JSON' (not 'JSON-MIN')"
        )
    finished = [each for each in given if isinstance(each, dict) and not each.get("was_cancelled")]
    if not finished:
        return
    annotation = reader.add(reader.photographs.find(_address(task["data"]), path.parent), place)
    with reader.problem_at(place, annotation.name, advice=""):
        _check_one_picture(task["data"], finished)
        for chosen in _choose(finished, reader.reading):
            _read_results(reader, annotation, chosen.get("result"))


def _read_results(reader: AnnotationReader, annotation: FileAnnotation, given: object) -> None:
    results = given if isinstance(given, list) else []
    place, sizes = annotation.place, set()
    for number, result in drawn_results(results):
        with reader.drop_at(f"{place}, result {number}", annotation):
            shape = read_shape(result)
            annotation.height, annotation.width = result_size(result)
            sizes.add((annotation.height, annotation.width))
            reader.add_shape(annotation, f"{place}, result {number}", shape)
    with reader.problem_at(place, annotation.name):
        annotation.labels += [label for result in results for label in read_choices(result)]
        if len(sizes) > 1:
            several = " and ".join(f"{width}×{height}" for height, width in sorted(sizes))
            raise ValueError(f"the results refer to pictures of {several} pixels")


# === Several annotators ===


def _choose(finished: list[Values], reading: ReadingOptions) -> list[Values]:
    """Returns the annotations that are used.

    Raises:
        ValueError: If annotations disagree whether the photograph is good, and no setting decides.
    """
    ordered = sorted(finished, key=lambda each: str(each.get("updated_at") or each.get("created_at") or ""))
    annotator = reading.annotator
    truths = [each for each in ordered if each.get("ground_truth") is True]
    defective = [each for each in ordered if marks_defect(each.get("result"), reading)]
    if truths:
        return truths[-1:]
    if own := [each for each in ordered if annotator and annotator.casefold() in _names(each)]:
        return own[-1:]
    if annotator == ANY and defective:
        return defective
    if annotator == ALL and len(defective) < len(ordered):
        return [each for each in ordered if each not in defective][-1:]
    if annotator != LATEST and 0 < len(defective) < len(ordered):
        people = ", ".join(sorted({_names(each)[0] for each in ordered}))
        raise ValueError(
            f"{len(defective)} of {len(ordered)} annotations mark a defect, the others none. Choose with "
            f"--annotator (data.annotator): {ANY} (one is enough), {ALL} (all must), {LATEST}, or the "
            f"number, e-mail address or name of one annotator ({people})"
        )
    return ordered[-1:]


def _names(annotation: Values) -> list[str]:
    """E-mail address, number and full name of the annotator, as far as they are known, in lower case."""
    person = annotation.get("completed_by")
    if not isinstance(person, dict):
        return [str(person)]
    full = " ".join(str(person[key]) for key in ("first_name", "last_name") if person.get(key))
    names = [str(name).casefold() for name in (person.get("email"), person.get("id"), full) if name]
    return names or ["unknown"]


# === Photographs ===


def _address(data: Values) -> str:
    """The address of the photograph in Label Studio; ValueError if there is none, or several."""
    pictures = _pictures(data)
    if "image" in pictures:
        return pictures["image"]
    if len(pictures) != 1:
        given = data.get("image", next((value for value in data.values() if isinstance(value, str)), None))
        named = f"; {given!r:.160} holds no file name" if isinstance(given, str) and not pictures else ""
        raise ValueError(
            f"the data of the task name {len(pictures)} pictures{named}. Expected one, preferably under the "
            "key 'image'"
        )
    return next(iter(pictures.values()))


def _check_one_picture(data: Values, finished: list[Values]) -> None:
    """Raises ValueError if the task shows several pictures and a result may belong to another one."""
    pictures = _pictures(data)
    results = [result for each in finished for result in each.get("result") or [] if isinstance(result, dict)]
    shown = {str(result["to_name"]) for result in results if result.get("to_name")}
    if len(pictures) > 1 and (len(shown) > 1 or (not shown <= {"image"} and shown & {*pictures})):
        raise ValueError(
            f"the task shows several pictures ({', '.join(pictures)}), with results of "
            f"{', '.join(sorted(shown))}. Make a task for each picture"
        )


def _pictures(data: Values) -> dict[str, str]:
    """The addresses of pictures among the data, by their keys."""
    strings = {key: value for key, value in data.items() if isinstance(value, str)}
    resolved = {key: _resolve(value) for key, value in strings.items()}
    return {key: address for key, address in resolved.items() if _names_picture(address)}


def _resolve(address: str) -> str:
    """The address in a cloud storage if `fileuri` of the query holds one, mostly in base64."""
    with suppress(ValueError):  # for example an unmatched bracket
        for written in parse_qs(urlsplit(address).query).get("fileuri", []):
            if _names_picture(written):
                return written
            plain = written.translate(_STANDARD_BASE64).rstrip("=")
            return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    return address


def _names_picture(address: str) -> bool:
    try:
        path = unquote(urlsplit(address).path)
    except ValueError:  # for example an unmatched bracket
        path = ""
    return any(PurePosixPath(text).suffix.lower() in SUFFIXES for text in (address, path))
