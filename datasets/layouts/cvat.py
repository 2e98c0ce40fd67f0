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
from datasets.annotations.labelled_shape import read_annotated_size
from datasets.annotations.labels import read_label
from datasets.layouts.annotation_records import AnnotationReader
from datasets.layouts.listing import photographs_below
from datasets.sample import Dataset
from segdec.errors import DatasetError

FILE = "annotations.xml"
IMAGES = "images"
TAG = "tag"


def index(root: Path) -> Dataset:
    """Lists the photographs that `annotations.xml` names, with their annotations.

    Raises:
        DatasetError: If a folder cannot be listed, photographs or `annotations.xml` are missing, or the split
            file is invalid.
    """
    photographs = set(photographs_below(root))
    source = root / FILE
    if not photographs or not source.is_file():
        raise DatasetError(
            f"The folder {root} holds {len(photographs)} photographs and "
            f"{'the' if source.is_file() else 'no'} file {FILE}. Expected both: in CVAT, export the task as "
            "'CVAT for images 1.1' with 'Save images', and unpack the archive."
        )
    found = AnnotationReader(root, "Correct it in CVAT and export again.")
    with found.problem_at(str(source), advice="Export the task again as 'CVAT for images 1.1'."):
        for image in read_images(source):
            _read_image(found, image, photographs)
    return found.dataset()


def _read_image(found: AnnotationReader, image: Element, photographs: set[Path]) -> None:
    place = _place(found, image)
    with found.problem_at(place, advice=""):
        annotation = found.add(_photograph(found.root, image, photographs), place)
        with found.problem_at(place, annotation.name):
            tags = [element for element in image.children if element.tag == TAG]
            annotation.labels = [read_label(element.text("label")) for element in tags]
            size = read_annotated_size(image.attributes.get("height"), image.attributes.get("width"))
            annotation.height, annotation.width = size
            for element in image.children:
                if element.tag != TAG:
                    with found.problem_at(_place(found, element), annotation.name):
                        annotation.shapes.append(read_shape(element, *size))


def _photograph(root: Path, image: Element, known: set[Path]) -> Path:
    """The file of an image; ValueError if it does not exist."""
    name, subset = image.text("name").replace("\\", "/"), image.attributes.get("subset", "")
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in (*parts, *PurePosixPath(subset).parts):
        raise ValueError(f"the name {name[:80]!r} is outside the data set. Expected a path below {IMAGES}")
    for path in (root / IMAGES / name, root / IMAGES / subset / name, root / name):
        if path in known:
            return path
    raise ValueError(
        f"the photograph {name!r} is missing. Expected it in {root / IMAGES}: copy it there, or export again "
        "with 'Save images'"
    )


def _place(found: AnnotationReader, element: Element) -> str:
    return f"{found.root / FILE}, line {element.line}"
