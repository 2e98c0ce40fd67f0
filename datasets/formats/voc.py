"""Pascal VOC: an XML file for each photograph, and masks of classes.

    Annotations/0001.xml              or beside the photograph, as LabelImg and Roboflow write it
    SegmentationClass/0001.png        as LabelMe and CVAT write it
    class_names.txt, labelmap.txt     names of the classes in these masks
    ImageSets/Main/train.txt          names of the photographs of a split (optional)
    JPEGImages/0001.jpg

An XML file belongs to the photograph in its `filename`, otherwise to the one with its stem. Boxes
(supervision `box`) and polygons are drawn; without objects a photograph is good. In masks each pixel has the
index of its class, or its colour in `labelmap.txt`; 0 is good, and 255 is ignored: it has no weight. Masks
have priority over boxes. Without names the classes are `class_1`, `class_2`, ….

Reference:
    http://host.robots.ox.ac.uk/pascal/VOC/voc2012/htmldoc
"""

from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from datasets.annotations.class_mask import LABEL_MAP, NAME_LISTS, MaskLabels, read_class_mask, read_labels
from datasets.annotations.voc_shapes import read_shape
from datasets.annotations.xml_file import read_tree
from datasets.causes import Cause
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader, problem
from datasets.splitting import split_of_folder
from segdec.errors import ImageError
from segdec.images import read_file, read_header

ROOT = "annotation"
IMAGE_SETS = "ImageSets"
MASKS = ("SegmentationClass", "SegmentationClassPNG")
SEGMENTATION_FOLDERS = ("SegmentationClass", "SegmentationObject")
"""Beginnings of the names of folders of masks, their visualisations and masks of objects."""

_MASKED = "photographs with a mask"


def is_class_mask(path: Path) -> bool:
    """Returns whether a picture is in a folder of masks of Pascal VOC, or in one that repeats them."""
    return path.parent.name.startswith(SEGMENTATION_FOLDERS)


def _matches(path: Path, content: Any) -> bool:
    if path.suffix.lower() == ".xml":
        return bool(content == ROOT)
    return is_class_mask(path) or (path.suffix == ".txt" and path.parent.parent.name == IMAGE_SETS)


def _read(reader: AnnotationReader, path: Path, content: Any) -> None:
    if path.suffix == ".txt":
        _read_split(reader, path, content)
    elif path.suffix.lower() == ".xml":
        with reader.problem_at(str(path), *reader.related_names(path), advice=""):
            _read_objects(reader, path)
    elif path.parent.name in MASKS:
        with reader.problem_at(str(path), *reader.related_names(path), advice=""):
            _read_mask(reader, path)


FORMAT = AnnotationFormat(
    "voc",
    "XML files or SegmentationClass masks of Pascal VOC",
    "Correct it in the labelling tool and export again.",
    _matches,
    _read,
    lists_photographs=False,
)


# === XML ===


def _read_objects(reader: AnnotationReader, path: Path) -> None:
    root, encoding = read_tree(path)
    photograph = _photograph(reader, path, root)
    if reader.name_of(photograph) in reader.cache.get(_MASKED, set()):
        return
    if not encoding.lower().startswith("utf-8"):
        reader.notes.append(f"{path} is not UTF-8; it was read as {encoding}.")
    annotation = reader.add(photograph, str(path))
    objects = [each for each in root.findall("object") if each.findtext("deleted", "0").strip() != "1"]
    if not objects:
        return
    with reader.problem_at(str(path), annotation.name):
        reader.set_size(annotation, root.findtext("size/height"), root.findtext("size/width"))
        for number, each in enumerate(objects, start=1):
            place = f"{path}, object {number}"
            with reader.drop_at(place, annotation):
                reader.add_shape(annotation, place, read_shape(each))


def _photograph(reader: AnnotationReader, path: Path, root: Element) -> Path:
    """The photograph of an XML file; ValueError if there is none, or its names contradict each other."""
    own = reader.photographs.beside(path)
    try:
        named = reader.photographs.find(root.findtext("filename"), path.parent)
    except ValueError as error:
        if len(own) == 1:
            return own[0]
        try:
            return reader.photographs.find(path.stem, path.parent, is_stem=True)
        except ValueError:
            raise error from None
    if own and named not in own:
        raise ValueError(
            f"the file belongs to {own[0]} by its name and to {named} by its filename. Rename the file, or "
            "correct filename"
        )
    return named


# === Splits ===


def _read_split(reader: AnnotationReader, path: Path, content: str) -> None:
    """Reads the photographs of a split; those in two lists keep the first split."""
    split = split_of_folder(path.stem)
    for line in content.splitlines():
        if split is None or not line.strip():
            continue
        with suppress(ValueError):  # the photograph is not part of the data set
            photograph = reader.photographs.find(line.split()[0], path.parent, is_stem=True)
            reader.splits.setdefault(reader.name_of(photograph), split)


# === Masks ===


def _read_mask(reader: AnnotationReader, path: Path) -> None:
    if path.suffix.lower() != ".png":
        raise ValueError("the mask is not PNG. Export it as PNG: other types change the values")
    annotation = reader.add(reader.photographs.find(path.stem, path.parent, is_stem=True), str(path))
    reader.cache.setdefault(_MASKED, set()).add(annotation.name)
    with reader.problem_at(str(path), annotation.name):
        try:
            (annotation.height, annotation.width), shapes = read_class_mask(
                path, _labels(reader, path.parent)
            )
        except ImageError as error:
            raise ValueError(str(error)) from error
        annotation.shapes += shapes
        if read_header(read_file(path), str(path)).has_further_pictures:
            text = "The mask has several pictures; the first one is used. Save the mask as a file of its own."
            reader.dropped.append(problem(str(path), text, annotation.name, Cause("several_pictures")))


def _labels(reader: AnnotationReader, masks: Path) -> MaskLabels | None:
    """The names of the classes in a folder of masks."""
    if masks not in reader.cache:
        lists = [masks.parent / name for name in (LABEL_MAP, *NAME_LISTS)]
        reader.cache[masks] = next((read_labels(path) for path in lists if path.is_file()), None)
        if reader.cache[masks] is None:
            reader.notes.append(
                f"No file names the classes in {masks}, so they are called class_1, class_2, …. Add a "
                f"{NAME_LISTS[0]} with a name in each line, the background first, to {masks.parent}."
            )
    labels: MaskLabels | None = reader.cache[masks]
    return labels
