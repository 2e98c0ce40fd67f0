"""LabelMe (versions 3 to 5) and X-AnyLabeling: one JSON file for each photograph.

    0001.jpg
    0001.json                beside it; embedded pictures (imageData) are ignored

A JSON file belongs to the photograph with its stem in the same folder, otherwise to the one in its
`imagePath`. Polygons, rectangles (supervision `box`), rotated rectangles, circles and masks are drawn, lines
and points 10 px wide as in LabelMe. A flag that is set on a photograph without shapes is its class
(supervision `label`). Those that mean good, and `_background_`, mark no defect.

Reference:
    https://github.com/wkentaro/labelme
"""

from pathlib import Path
from typing import Any

from datasets.annotations.labelme_shapes import read_shape
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader


def _matches(_path: Path, content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("shapes"), list)


def _read(reader: AnnotationReader, path: Path, content: Any) -> None:
    with reader.problem_at(str(path), *reader.related_names(path), advice=""):
        photograph = _photograph(reader, path, content.get("imagePath"))
        _annotate(reader, path, photograph, content)


FORMAT = AnnotationFormat(
    "labelme",
    "JSON files of LabelMe beside the photographs",
    "Correct it in the labelling tool and save it again.",
    _matches,
    _read,
    lists_photographs=False,
)


def _photograph(reader: AnnotationReader, source: Path, image_path: object) -> Path:
    """Returns the photograph of `source`; ValueError if there is none, or more than one."""
    beside = reader.photographs.beside(source)
    try:
        named = reader.photographs.find(image_path, source.parent)
    except ValueError:
        if len(beside) != 1:
            raise
        return beside[0]
    if beside and named not in beside:
        raise ValueError(
            f"the file belongs to {beside[0]} by its name and to {named} by its imagePath. Rename the file, "
            "or correct imagePath"
        )
    return named


def _annotate(reader: AnnotationReader, source: Path, photograph: Path, content: dict[str, Any]) -> None:
    annotation = reader.add(photograph, str(source))
    flags = content.get("flags")
    if isinstance(flags, dict):  # LabelMe's own flags are such as `__ignore__`
        annotation.labels = [flag for flag, value in flags.items() if value is True and flag[:2] != "__"]
    if not content["shapes"]:
        return
    with reader.problem_at(str(source), annotation.name):
        reader.set_size(annotation, content.get("imageHeight"), content.get("imageWidth"))
        for number, entry in enumerate(content["shapes"], start=1):
            place = f"{source}, shape {number}"
            with reader.drop_at(place, annotation):
                if (shape := read_shape(entry)) is not None:
                    reader.add_shape(annotation, place, shape)
