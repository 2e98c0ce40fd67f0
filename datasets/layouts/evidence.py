"""Combines what the folder, the mask files and the annotation of a photograph state."""

from collections.abc import Sequence
from dataclasses import replace

from datasets.annotations.labels import DEFECT, GOOD
from datasets.formats.annotation_reader import FileAnnotation
from datasets.layouts.mask_pairing import MaskFile
from segdec.runtime.label_names import is_any_defect, is_good


def combine(annotation: FileAnnotation, stated: str | None, masks: Sequence[MaskFile]) -> FileAnnotation:
    """Returns the annotation of a photograph with its masks, and with labels that agree with its folder.

    A folder or label of any defect, such as `defect` or `NOK`, agrees with each class of defects.
    `annotation` comes from an annotation file or is empty; `stated` is the class that the folder states, or
    None.

    Raises:
        ValueError: If they contradict each other.
    """
    _check_agree(annotation, stated, bool(masks))
    drawn = {_agreed(label, stated) for label in annotation.defect_labels}
    default = stated or (drawn.pop() if len(drawn) == 1 else DEFECT)
    return replace(
        annotation,
        shapes=[replace(shape, label=_agreed(shape.label, stated)) for shape in annotation.shapes],
        labels=[_agreed(label, stated) for label in annotation.labels],
        masks=[(mask.path, mask.folder or str(default)) for mask in masks],
        folder_class=stated,
    )


def _check_agree(annotation: FileAnnotation, stated: str | None, masked: bool) -> None:
    marked = annotation.defect_labels
    listed = ", ".join(sorted(marked))
    advice = "Move the photograph, or correct the annotation"
    photograph = annotation.photograph
    if stated == GOOD and marked:
        raise ValueError(
            f"the photograph {photograph} is in a folder of good ones, but is marked as {listed}. {advice}"
        )
    if stated in (None, GOOD):
        return
    advice += f". If '{stated}' is not a class, name the folder 'images'"
    if annotation.place and not marked and not masked:
        raise ValueError(
            f"the photograph {photograph} is in the folder '{stated}', but its annotation marks no defect. "
            f"{advice}"
        )
    if marked and not is_any_defect(str(stated)) and stated not in {_agreed(one, stated) for one in marked}:
        raise ValueError(
            f"the photograph {photograph} is in the folder '{stated}', but is marked as {listed}. {advice}"
        )


def _agreed(label: str, stated: str | None) -> str:
    """The label of an annotation in the spelling of the folder's class, if they mean the same."""
    if stated in (None, GOOD) or is_good(label):
        return label
    return str(stated) if is_any_defect(label) or label.casefold() == str(stated).casefold() else label
