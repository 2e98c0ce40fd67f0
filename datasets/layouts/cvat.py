"""CVAT: an export in the format "CVAT for images 1.1", with images.

    root/annotations.xml
    root/images/0001.jpg            the path in <image name="0001.jpg">, folders included
    root/images/train/0002.jpg      for an image of the subset `train`
    root/splits.txt                 optional; without it 60 % train, 20 % val and 20 % test

An image without a shape or a tag is good; photographs that the file does not name are ignored. Polygons,
masks, ellipses and boxes (supervision `box`) are drawn, polylines 10 px wide. The tag of an image without
shapes is its class (supervision `label`). The labels `good` and `ok` mark no defect.

Reference:
    https://docs.cvat.ai/docs/other/xml_format
"""

from pathlib import Path, PurePosixPath

from datasets.annotations.cvat_shapes import read_shape
from datasets.annotations.cvat_xml import Element, read_images
from datasets.annotations.labelled_shape import LabelledShape, read_annotated_size
from datasets.annotations.labels import read_label
from datasets.layouts.annotation_records import AnnotationRecord, build_dataset, problem, read_shapes
from datasets.layouts.photograph_tree import photographs_below, record_name
from datasets.sample import Dataset, Problem
from segdec.errors import DatasetError

TOOL = "CVAT"
FILE = "annotations.xml"
IMAGES = "images"
TAG = "tag"


def index(root: Path) -> Dataset:
    """Lists the photographs that `annotations.xml` names, with their annotations.

    Raises:
        DatasetError: If a folder cannot be listed, photographs or `annotations.xml` are missing, or the split
            file is invalid.
    """
    photographs = photographs_below(root)
    source = root / FILE
    if not photographs or not source.is_file():
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and "
            f"{'the' if source.is_file() else 'no'} file {FILE}. Expected both: in CVAT, export the task as "
            "'CVAT for images 1.1' with 'Save images', and unpack the archive."
        )
    try:
        images = read_images(source)
    except ValueError as error:
        broken = problem(str(source), f"{error}. Export the task again as 'CVAT for images 1.1'.")
        return build_dataset(root, [], [broken])
    return _read_images(root, images, set(photographs))


def _read_images(root: Path, images: list[Element], known: set[Path]) -> Dataset:
    annotations: list[AnnotationRecord] = []
    problems: list[Problem] = []
    for image in images:
        place = _place(root, image)
        try:
            photograph = _photograph(root, image, known)
        except ValueError as error:
            problems.append(problem(place, f"{error}."))
            continue
        annotation, found = _annotation(root, photograph, image)
        annotations.append(annotation)
        problems += found
    return build_dataset(root, annotations, problems)


def _photograph(root: Path, image: Element, known: set[Path]) -> Path:
    """The file of an image; ValueError if it does not exist."""
    name, subset = image.text("name").replace("\\", "/"), image.attributes.get("subset", "")
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in (*parts, *PurePosixPath(subset).parts):
        raise ValueError(f"the name {name[:80]!r} is outside the data set. Expected a path below {IMAGES}")
    places = [root / IMAGES / name, root / IMAGES / subset / name, root / name]
    for path in places:
        if path in known:
            return path
    raise ValueError(
        f"the photograph {name!r} is missing. Expected it in {root / IMAGES}: copy it there, or export again "
        "with 'Save images'"
    )


def _annotation(root: Path, photograph: Path, image: Element) -> tuple[AnnotationRecord, list[Problem]]:
    place, name = _place(root, image), record_name(root, photograph)
    problems: list[Problem] = []
    tags = [element for element in image.children if element.tag == TAG]
    shapes = [element for element in image.children if element.tag != TAG]
    labels: list[str] = []
    drawn: tuple[LabelledShape, ...] = ()
    height = width = 0
    try:
        labels = [read_label(element.text("label")) for element in tags]
        height, width = read_annotated_size(image.attributes.get("height"), image.attributes.get("width"))
    except ValueError as error:
        problems.append(problem(place, f"{error}. Export it again.", name))
    else:
        entries = [(_place(root, element), element) for element in shapes]
        drawn, problems = read_shapes(entries, lambda element: read_shape(element, height, width), name, TOOL)
    return AnnotationRecord(photograph, place, height, width, drawn, tuple(labels)), problems


def _place(root: Path, element: Element) -> str:
    return f"{root / FILE}, line {element.line}"
