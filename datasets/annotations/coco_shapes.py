"""COCO's annotations → labelled shapes."""

from typing import Any

from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.run_length_shape import RunLengthShape
from datasets.annotations.shapes import Box, Polygon


def segments(annotation: dict[str, Any]) -> list[Any]:
    """Returns the parts of the segmentation of an annotation: polygons, or run lengths."""
    segmentation = annotation.get("segmentation") or []
    return [part for part in segmentation if part] if isinstance(segmentation, list) else [segmentation]


def read_shape(segment: object, label: str, height: int, width: int) -> LabelledShape:
    """Reads one polygon or the run lengths of a photograph of `height` × `width` px.

    Raises:
        ValueError: If it cannot be drawn.
    """
    if isinstance(segment, list):
        return LabelledShape(label, Polygon.from_flat(segment))
    if not isinstance(segment, dict):
        raise ValueError(f"the segmentation {segment!r:.40} is neither polygons nor run lengths")
    if segment.get("size") != [height, width]:
        raise ValueError(
            f"the run lengths have the size {segment.get('size')!r:.40}, the photograph has "
            f"{[height, width]} (height, width)"
        )
    return LabelledShape(label, RunLengthShape.from_coco(segment.get("counts"), height, width))


def read_box(box: object, label: str) -> LabelledShape:
    """Reads the box of an annotation without a segmentation; ValueError if it cannot be drawn."""
    if not box:
        raise ValueError("the annotation has neither a segmentation nor a box")
    return LabelledShape(label, Box.from_list(box), is_box=True)
