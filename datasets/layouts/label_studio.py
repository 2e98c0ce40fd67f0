"""Label Studio: an export in the format "JSON", beside the photographs.

    root/project-1-at-2024-05-01.json    any name; several are read as one
    root/images/part.png                 anywhere below the root
    root/splits.txt                      optional; without it 60 % train, 20 % validate and 20 % test

A task's photograph is found by the file name in its data: `/data/upload/1/ab12cd34-part.png` is the file
of that name, else `part.png`; of several files, the one whose folders agree with the address too. A task
without an annotation was not looked at yet, so its photograph is left out, as is one without a task;
cancelled annotations do not count. Of several annotations the one marked as ground truth is used, else
the latest. An annotation without results says: good.

Polygons, brush strokes, ellipses and rectangles (supervision `box`) are drawn as they are. A choice for a
photograph without shapes is its class (supervision `label`). Labels named `good` or `ok` mark nothing.

Reference:
    https://labelstud.io/guide/export, section "Label Studio JSON format of annotated tasks"
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from datasets.annotations.label_studio_shapes import drawn_results, read_choices, read_shape, result_size
from datasets.layouts.annotation_records import AnnotationRecord, build_dataset, problem, read_shapes
from datasets.layouts.listing import files
from datasets.layouts.photograph_tree import photographs_below, record_name
from datasets.sample import Dataset, Problem
from datasets.text_file import read_json
from segdec.errors import DatasetError
from segdec.images import SUFFIXES

TOOL = "Label Studio"

_UPLOAD_PREFIX = re.compile(r"[0-9a-f]{8}-")
"""Put before the name of an uploaded file."""

Task = dict[str, Any]


def index(root: Path) -> Dataset:
    """Lists the photographs that the exported tasks name, with what their annotations say.

    Raises:
        DatasetError: If a folder cannot be listed, there is no photograph or no export, or the split file
            cannot be used.
    """
    photographs = photographs_below(root)
    sources = [path for path in files(root) if path.suffix.lower() == ".json"]
    if not photographs or not sources:
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and, at its top, {len(sources)} JSON "
            "files. Expected photographs and the file that Label Studio exports in the format 'JSON'."
        )
    annotations: list[AnnotationRecord] = []
    problems: list[Problem] = []
    finder = _Finder(photographs)
    for source in sources:
        try:
            tasks = _tasks(source, read_json(source))
        except DatasetError as error:
            problems.append(Problem(str(source), str(error)))
            continue
        for number, task in enumerate(tasks, start=1):
            found, wrong = _read_task(root, _place(source, number, task), task, finder)
            annotations += [found] if found else []
            problems += wrong
    return build_dataset(root, annotations, problems)


def _tasks(source: Path, content: object) -> list[Task]:
    """The tasks of an export; DatasetError if it is none."""
    if isinstance(content, list) and all(_is_task(task) for task in content):
        return content
    raise DatasetError(
        f"The file {source} is no list of tasks with 'data' and 'annotations'. In Label Studio, export in "
        "the format 'JSON' (not 'JSON-MIN' or 'COCO'), and move other JSON files out of the folder."
    )


def _is_task(task: object) -> bool:
    return isinstance(task, dict) and isinstance(task.get("data"), dict) and isinstance(_given(task), list)


def _given(task: Task) -> Any:
    return task.get("annotations", task.get("completions"))  # the word of versions before 1.0


def _place(source: Path, number: int, task: Task) -> str:
    return f"{source}, task {task['id'] if isinstance(task.get('id'), int) else f'number {number}'}"


def _read_task(
    root: Path, place: str, task: Task, finder: "_Finder"
) -> tuple[AnnotationRecord | None, list[Problem]]:
    annotation = _choose([given for given in _given(task) if isinstance(given, dict)])
    if annotation is None:
        return None, []
    try:
        photograph = finder.find(_address(task["data"]))
    except ValueError as error:
        return None, [problem(place, f"{error}.")]
    results = annotation.get("result")
    return _read_results(root, place, photograph, results if isinstance(results, list) else [])


def _choose(annotations: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The ground truth, else the latest, of those that were not cancelled."""
    finished = [each for each in annotations if not each.get("was_cancelled")]

    def rank(number: int) -> tuple[bool, str, int]:
        each = finished[number]
        time = str(each.get("updated_at") or each.get("created_at") or "")  # ISO 8601 sorts as text
        return each.get("ground_truth") is True, time, number

    return finished[max(range(len(finished)), key=rank)] if finished else None


def _read_results(
    root: Path, place: str, photograph: Path, results: list[Any]
) -> tuple[AnnotationRecord, list[Problem]]:
    name = record_name(root, photograph)
    entries = [(f"{place}, result {number}", result) for number, result in drawn_results(results)]
    drawn, problems = read_shapes(entries, read_shape, name, TOOL)
    labels: list[str] = []
    sizes = set()
    try:
        labels = [label for result in results for label in read_choices(result)]
        sizes = {result_size(result) for _, result in entries} if not problems else set()
    except ValueError as error:
        problems.append(problem(place, f"{error}. Export it again.", name))
    if len(sizes) > 1:
        several = " and ".join(f"{width}×{height}" for height, width in sorted(sizes))
        problems.append(
            problem(place, f"Its results are of pictures of {several} pixels. Annotate anew.", name)
        )
    height, width = sizes.pop() if len(sizes) == 1 else (0, 0)
    return AnnotationRecord(photograph, place, height, width, drawn, tuple(labels)), problems


# === Photographs ===


@dataclass(frozen=True)
class _Address:
    """The folders and the file name that a task's data name."""

    folders: tuple[str, ...]
    file_name: str


def _address(data: dict[str, Any]) -> _Address:
    """Where the photograph lay for Label Studio; ValueError if the data name none, or several."""
    found = {key: _split(value) for key, value in data.items() if isinstance(value, str)}
    pictures = {
        key: each for key, each in found.items() if PurePosixPath(each.file_name).suffix.lower() in SUFFIXES
    }
    if "image" in pictures:
        return pictures["image"]
    if len(pictures) != 1:
        raise ValueError(
            f"the data of the task name {len(pictures)} pictures. Expected one, best under the key 'image'"
        )
    return next(iter(pictures.values()))


def _split(text: str) -> _Address:
    """An upload, a local file (`/data/local-files/?d=…`), or an address of the web or of a bucket."""
    try:
        parts = urlsplit(text.replace("\\", "/"))
        local = parse_qs(parts.query).get("d", [])
    except ValueError:  # such as an open bracket
        return _Address((), "")
    path = PurePosixPath(local[0] if local else unquote(parts.path))
    return _Address(path.parts[:-1], path.name)


class _Finder:
    """Finds photographs by their names."""

    def __init__(self, photographs: list[Path]) -> None:
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for path in photographs:
            self._by_name[path.name].append(path)

    def find(self, address: _Address) -> Path:
        """The one photograph at `address`; ValueError if there is none, or more than one."""
        plain = _UPLOAD_PREFIX.sub("", address.file_name, count=1)
        found = self._by_name.get(address.file_name) or self._by_name.get(plain, [])
        if not found:
            raise ValueError(
                f"the photograph {address.file_name[:80]!r} is missing. Copy it below the root, under this "
                f"name or as {plain[:80]!r}"
            )
        agreeing = [_common_end(path.parent.parts, address.folders) for path in found]
        best = [path for path, count in zip(found, agreeing, strict=True) if count == max(agreeing)]
        if len(best) > 1:
            raise ValueError(
                f"the photograph {plain!r} may be {' or '.join(map(str, best))}. Rename or remove the others"
            )
        return best[0]


def _common_end(parts: tuple[str, ...], others: tuple[str, ...]) -> int:
    """How many of the last parts agree."""
    pairs = list(zip(reversed(parts), reversed(others), strict=False))
    return next((count for count, (a, b) in enumerate(pairs) if a != b), len(pairs))
