"""Label Studio: an export in the format "JSON" in the folder of the photographs.

    root/project-1-at-2024-05-01.json    any name; several files are merged
    root/images/part.png                 anywhere below the root
    root/splits.txt                      optional; without it 60 % train, 20 % val and 20 % test

The photograph of a task is found by the file name in its data: `/data/upload/1/ab12cd34-part.png` is the file
with this name, otherwise `part.png`; of several files, the one whose folders match the address best.
Photographs without a task or without a finished annotation are left out. Of several annotations, the ground
truth is used, otherwise the latest. An annotation without results means good.

Polygons, brush strokes, ellipses and rectangles (supervision `box`) are drawn. The choice for a photograph
without shapes is its class (supervision `label`). The labels `good` and `ok` mark no defect.

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
"""Label Studio adds this prefix to the name of an uploaded file."""

Task = dict[str, Any]


def index(root: Path) -> Dataset:
    """Lists the photographs of the exported tasks, with their annotations.

    Raises:
        DatasetError: If a folder cannot be listed, photographs or exports are missing, or the split file is
            invalid.
    """
    photographs = photographs_below(root)
    sources = [path for path in files(root) if path.suffix.lower() == ".json"]
    if not photographs or not sources:
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and, at its top level, {len(sources)} "
            "JSON files. Expected photographs and a Label Studio export in the format 'JSON'."
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
    """The tasks of an export; DatasetError if it is invalid."""
    if isinstance(content, list) and all(_is_task(task) for task in content):
        return content
    raise DatasetError(
        f"The file {source} is not a list of tasks with 'data' and 'annotations'. In Label Studio, export in "
        "the format 'JSON' (not 'JSON-MIN' or 'COCO'), and move other JSON files out of the folder."
    )


def _is_task(task: object) -> bool:
    return isinstance(task, dict) and isinstance(task.get("data"), dict) and isinstance(_given(task), list)


def _given(task: Task) -> Any:
    return task.get("annotations", task.get("completions"))  # the key of versions before 1.0


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
    """The ground truth or the latest annotation that was not cancelled."""
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
        text = f"The results refer to pictures of {several} pixels. Annotate the photograph again."
        problems.append(problem(place, text, name))
    height, width = sizes.pop() if len(sizes) == 1 else (0, 0)
    return AnnotationRecord(photograph, place, height, width, drawn, tuple(labels)), problems


# === Photographs ===


@dataclass(frozen=True)
class _Address:
    """The folders and the file name in the data of a task."""

    folders: tuple[str, ...]
    file_name: str


def _address(data: dict[str, Any]) -> _Address:
    """The address of the photograph in Label Studio; ValueError if there is none, or several."""
    found = {key: _split(value) for key, value in data.items() if isinstance(value, str)}
    pictures = {
        key: each for key, each in found.items() if PurePosixPath(each.file_name).suffix.lower() in SUFFIXES
    }
    if "image" in pictures:
        return pictures["image"]
    if len(pictures) != 1:
        raise ValueError(
            f"the data of the task name {len(pictures)} pictures. Expected one, preferably under the key "
            "'image'"
        )
    return next(iter(pictures.values()))


def _split(text: str) -> _Address:
    """Parses an upload, a local file (`/data/local-files/?d=…`), or a web or bucket URL."""
    try:
        parts = urlsplit(text.replace("\\", "/"))
        local = parse_qs(parts.query).get("d", [])
    except ValueError:  # for example an unmatched bracket
        return _Address((), "")
    path = PurePosixPath(local[0] if local else unquote(parts.path))
    return _Address(path.parts[:-1], path.name)


class _Finder:
    """Finds photographs by name."""

    def __init__(self, photographs: list[Path]) -> None:
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for path in photographs:
            self._by_name[path.name].append(path)

    def find(self, address: _Address) -> Path:
        """Returns the photograph at `address`; ValueError if there is none, or more than one."""
        plain = _UPLOAD_PREFIX.sub("", address.file_name, count=1)
        found = self._by_name.get(address.file_name) or self._by_name.get(plain, [])
        if not found:
            raise ValueError(
                f"the photograph {address.file_name[:80]!r} is missing. Copy it to a folder below the root, "
                f"with this name or as {plain[:80]!r}"
            )
        agreeing = [_common_end(path.parent.parts, address.folders) for path in found]
        best = [path for path, count in zip(found, agreeing, strict=True) if count == max(agreeing)]
        if len(best) > 1:
            raise ValueError(
                f"the photograph {plain!r} may be {' or '.join(map(str, best))}. Rename or remove the others"
            )
        return best[0]


def _common_end(parts: tuple[str, ...], others: tuple[str, ...]) -> int:
    """Returns the number of equal parts at the end."""
    pairs = list(zip(reversed(parts), reversed(others), strict=False))
    return next((count for count, (a, b) in enumerate(pairs) if a != b), len(pairs))
