"""COCO's annotations → labelled shapes."""

from typing import Any

from datasets.annotations.drawn_mask import Shape
from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.run_length_shape import RunLengthShape
from datasets.annotations.shapes import Box, Polygon, check_inside


def read_shapes(annotation: dict[str, Any], label: str, height: int, width: int) -> list[LabelledShape]:
    """Reads the segmentation of one annotation, or its box if it has no segmentation.

    A crowd (`iscrowd`) is drawn like any other annotation. `height` and `width` are those of the photograph,
    px.

    Raises:
        ValueError: If it has neither, or cannot be drawn.
    """
    segmentation, box = annotation.get("segmentation"), annotation.get("bbox")
    shapes: list[Shape]
    if segmentation:
        shapes = _segmented(segmentation, height, width)
    elif box:
        shapes = [Box.from_list(box)]
    else:
        raise ValueError("the annotation has neither a segmentation nor a box")
    for shape in shapes:
        check_inside(shape, height, width)
    return [LabelledShape(label, shape, is_box=not segmentation) for shape in shapes]


def _segmented(segmentation: object, height: int, width: int) -> list[Shape]:
    if isinstance(segmentation, list):
        return [Polygon.from_flat(points) for points in segmentation]
    if not isinstance(segmentation, dict):
        raise ValueError(f"the segmentation {segmentation!r:.40} is neither polygons nor run lengths")
    if segmentation.get("size") != [height, width]:
        raise ValueError(
            f"the run lengths have the size {segmentation.get('size')!r:.40}, the photograph has "
            f"{[height, width]} (height, width)"
        )
    return [RunLengthShape.from_coco(segmentation.get("counts"), height, width)]
