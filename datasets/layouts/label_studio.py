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
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from datasets.annotations.label_studio_shapes import drawn_results, read_choices, read_shape, result_size
from datasets.layouts.annotation_records import AnnotationReader
from datasets.layouts.listing import files, photographs_below
from datasets.sample import Dataset
from datasets.text_file import read_json
from segdec.errors import DatasetError
from segdec.images import SUFFIXES

_UPLOAD_PREFIX = re.compile(r"[0-9a-f]{8}-")
"""Label Studio adds this prefix to the name of an uploaded file."""

Task = dict[str, Any]


def index(root: Path) -> Dataset:
    """Lists the photographs of the exported tasks, with their annotations.

    Raises:
        DatasetError: If a folder cannot be listed, photographs or exports are missing, or the split file is
            invalid.
    """
    photographs, sources = photographs_below(root), files(root, ".json")
    if not photographs or not sources:
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and, at its top level, {len(sources)} "
            "JSON files. Expected photographs and a Label Studio export in the format 'JSON'."
        )
    found = AnnotationReader(root, "Correct it in Label Studio and export again.")
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in photographs:
        by_name[path.name].append(path)
    for source in sources:
        with found.problem_at(str(source), advice=""):
            for number, task in enumerate(_tasks(source), start=1):
                key = task["id"] if isinstance(task.get("id"), int) else f"number {number}"
                _read_task(found, f"{source}, task {key}", task, by_name)
    return found.dataset()


def _tasks(source: Path) -> list[Task]:
    """The tasks of an export; DatasetError if it is invalid."""
    content = read_json(source)
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


def _read_task(found: AnnotationReader, place: str, task: Task, by_name: dict[str, list[Path]]) -> None:
    chosen = _choose([given for given in _given(task) if isinstance(given, dict)])
    if chosen is None:
        return
    with found.problem_at(place, advice=""):
        annotation = found.add(_find(by_name, _address(task["data"])), place)
        results = chosen["result"] if isinstance(chosen.get("result"), list) else []
        sizes = set()
        for number, result in drawn_results(results):
            with found.problem_at(f"{place}, result {number}", annotation.name):
                annotation.shapes.append(read_shape(result))
                sizes.add(result_size(result))
        with found.problem_at(place, annotation.name):
            annotation.labels = [label for result in results for label in read_choices(result)]
            if len(sizes) > 1:
                several = " and ".join(f"{width}×{height}" for height, width in sorted(sizes))
                raise ValueError(f"the results refer to pictures of {several} pixels")
        annotation.height, annotation.width = next(iter(sizes), (0, 0))


def _choose(annotations: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The ground truth or the latest annotation that was not cancelled."""
    finished = [each for each in annotations if not each.get("was_cancelled")]

    def rank(each: dict[str, Any]) -> tuple[bool, str]:
        time = each.get("updated_at") or each.get("created_at") or ""  # ISO 8601 sorts as text
        return each.get("ground_truth") is True, str(time)

    return max(reversed(finished), key=rank, default=None)  # the last one of equal ones


# === Photographs ===


class _Address(NamedTuple):
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


def _find(by_name: dict[str, list[Path]], address: _Address) -> Path:
    """Returns the photograph at `address`; ValueError if there is none, or more than one."""
    plain = _UPLOAD_PREFIX.sub("", address.file_name, count=1)
    found = by_name.get(address.file_name) or by_name.get(plain, [])
    if not found:
        raise ValueError(
            f"the photograph {address.file_name[:80]!r} is missing. Copy it to a folder below the root, with "
            f"this name or as {plain[:80]!r}"
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
