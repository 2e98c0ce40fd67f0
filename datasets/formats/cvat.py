"""CVAT: an export in the format "CVAT for images 1.1", with images.

    annotations.xml
    images/0001.jpg            the path in <image name="0001.jpg">, folders included
    images/train/0002.jpg      for an image of the subset `train`

An image without a shape or a tag is good. Polygons, masks, ellipses and boxes (supervision `box`) are drawn,
polylines 10 px wide. The tag of an image without shapes is its class (supervision `label`). Labels that
mean good mark no defect.

Reference:
    https://docs.cvat.ai/docs/other/xml_format
"""

from pathlib import Path
from typing import Any

from datasets.annotations.cvat_shapes import read_shape
from datasets.annotations.cvat_xml import ROOT, Element, read_images
from datasets.annotations.labelled_shape import read_annotated_size
from datasets.annotations.labels import read_label
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader

TAG = "tag"


def _matches(path: Path, content: Any) -> bool:
    return path.suffix.lower() == ".xml" and content == ROOT


def _read(reader: AnnotationReader, path: Path, _content: Any) -> None:
    with reader.problem_at(str(path), advice="Export the task again as 'CVAT for images 1.1'."):
        for image in read_images(path):
            _read_image(reader, path, image)


FORMAT = AnnotationFormat(
    "cvat", "annotations.xml of CVAT", "Correct it in CVAT and export again.", _matches, _read
)


def _read_image(reader: AnnotationReader, path: Path, image: Element) -> None:
    place = f"{path}, line {image.line}"
    with reader.problem_at(place, advice=""):
        subset = image.attributes.get("subset", "")
        annotation = reader.add(reader.photographs.find(image.text("name"), path.parent, [subset]), place)
        with reader.problem_at(place, annotation.name):
            tags = [element for element in image.children if element.tag == TAG]
            annotation.labels = [read_label(element.text("label")) for element in tags]
            size = read_annotated_size(image.attributes.get("height"), image.attributes.get("width"))
            annotation.height, annotation.width = size
            for element in image.children:
                if element.tag != TAG:
                    place = f"{path}, line {element.line}"
                    with reader.drop_at(place, annotation):
                        reader.add_shape(annotation, place, read_shape(element, *size))
