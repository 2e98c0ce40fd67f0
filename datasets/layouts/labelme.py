"""LabelMe (versions 3 to 5): one JSON file for each photograph.

    root/0001.jpg
    root/0001.json           written by LabelMe; embedded pictures (imageData) are ignored
    root/line-2/0002.jpg     folders of any depth; good without a JSON file or without shapes
    root/splits.txt          optional; without it 60 % train, 20 % val and 20 % test

A JSON file belongs to the photograph with its stem in the same folder, otherwise to the one in its
`imagePath`. Polygons, rectangles (supervision `box`), circles and masks are drawn, lines and points 10 px
wide as in LabelMe. A flag that is set on a photograph without shapes is its class (supervision `label`). The
labels and flags `good`, `ok` and `_background_` mark no defect. JSON files of other programs without a
photograph are ignored.

Reference:
    https://github.com/wkentaro/labelme
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from datasets.annotations.labelled_shape import read_annotated_size
from datasets.annotations.labelme_shapes import read_shape
from datasets.layouts.annotation_records import AnnotationReader
from datasets.layouts.listing import files_below, photographs_below, record_name
from datasets.sample import Dataset
from datasets.text_file import read_json
from segdec.errors import DatasetError


def index(root: Path) -> Dataset:
    """Lists the photographs below `root` with their annotations.

    Raises:
        DatasetError: If a folder cannot be listed, photographs or LabelMe files are missing, or the split
            file is invalid.
    """
    photographs, sources = photographs_below(root), files_below(root, ".json")
    if not photographs or not sources:
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and {len(sources)} JSON files. "
            "Expected photographs, and a LabelMe file for each defective one, such as "
            f"{root / '0001.json'}."
        )
    found = AnnotationReader(root, "Correct it in LabelMe and export again.")
    known, of_stem = set(photographs), defaultdict(list)
    for path in photographs:
        of_stem[path.stem].append(path)
    if not sum(_read_file(found, source, of_stem, known) for source in sources):
        raise DatasetError(
            f"None of the {len(sources)} JSON files below {root} is from LabelMe: they have no 'shapes'. "
            "Give the folder in which the photographs were annotated."
        )
    annotated = {annotation.photograph for annotation in found.annotations}
    for path in photographs:
        if path not in annotated:
            found.add(path, str(path))
    return found.dataset()


def _read_file(
    found: AnnotationReader, source: Path, of_stem: Mapping[str, list[Path]], known: set[Path]
) -> bool:
    """Returns whether `source` is a LabelMe file, or should be one."""
    namesakes = of_stem.get(source.stem, [])
    beside = [path for path in namesakes if path.parent == source.parent]
    names = {record_name(found.root, path): None for path in beside or namesakes}
    with found.problem_at(str(source), *names, advice=""):
        content = read_json(source)
        if not isinstance(content, dict) or not isinstance(content.get("shapes"), list):
            if not beside:
                return False
            raise ValueError("the file has no list 'shapes', so it is not from LabelMe. Remove it")
        photograph = _photograph(found.root, source, beside, content.get("imagePath"), known)
        _annotate(found, source, photograph, content)
    return True


def _photograph(root: Path, source: Path, beside: list[Path], image_path: object, known: set[Path]) -> Path:
    """Returns the photograph of `source`; ValueError if there is none, or more than one."""
    text = image_path.replace("\\", "/") if isinstance(image_path, str) else ""
    named = _below(root, source.parent, text)
    if len(beside) > 1 and named not in beside:
        raise ValueError(f"the file may belong to {' or '.join(map(str, beside))}. Rename one of them")
    if named in known and beside and named not in beside:
        raise ValueError(
            f"the file belongs to {beside[0]} by its name and to {named} by its imagePath. Rename the file, "
            "or correct imagePath"
        )
    if named in known:
        return named
    if beside:
        return beside[0]
    raise ValueError(
        f"the photograph is missing: there is no picture '{source.stem}' in the folder of the file, and its "
        f"imagePath {text[:80]!r} is not below {root}. Copy the photograph, or remove the file"
    )


def _below(root: Path, folder: Path, text: str) -> Path:
    """The path `text` relative to `folder`; `root` itself if it is outside `root`."""
    path = folder
    for part in PurePosixPath(text).parts:
        if part == "/" or (part == ".." and path == root):
            return root
        path = path.parent if part == ".." else path / part
    return path


def _annotate(found: AnnotationReader, source: Path, photograph: Path, content: dict[str, Any]) -> None:
    annotation = found.add(photograph, str(source))
    flags = content.get("flags")
    if isinstance(flags, dict):  # LabelMe's own flags are such as `__ignore__`
        annotation.labels = [flag for flag, value in flags.items() if value is True and flag[:2] != "__"]
    if not content["shapes"]:
        return
    with found.problem_at(str(source), annotation.name):
        size = read_annotated_size(content.get("imageHeight"), content.get("imageWidth"))
        annotation.height, annotation.width = size
        for number, shape in enumerate(content["shapes"], start=1):
            with found.problem_at(f"{source}, shape {number}", annotation.name):
                annotation.shapes += read_shape(shape, *size)
