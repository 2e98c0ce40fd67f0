"""Limits annotations to masks, boxes around the defects, or the class alone; sets mask thresholds and values.

Each line of a supervision file holds `mask`, `box` or `label` and the name of an item, a group or a folder;
see `datasets.name_lists`. Photographs without a line do not change, nor do good ones. The test split keeps
its masks, so that weak supervision is measured against full annotations.

Reference:
    J. Božič, D. Tabernik, D. Skočaj, Mixed supervision for surface-defect detection: from weakly to
    fully supervised learning, Computers in Industry, 2021.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.inverted_mask import InvertedMask
from datasets.annotations.labels import DEFECT, GOOD
from datasets.causes import Cause
from datasets.name_lists import NameLine, items_of_lines, read_name_list
from datasets.reading_options import ReadingOptions
from datasets.sample import IGNORED, Dataset, DataSetIssue, DataSetItem, MaskValues, Supervision
from segdec.errors import DatasetError
from segdec.runtime.label_names import is_ignored
from segdec.runtime.suggestions import nearest_name

WORDS: tuple[Supervision, ...] = get_args(Supervision)


def apply_supervision(dataset: Dataset, path: Path) -> Dataset:
    """Returns the data set with annotations limited by the supervision file `path`.

    A photograph without a mask whose line is `mask` or `box` becomes a problem.

    Raises:
        DatasetError: If the file cannot be read, a line is invalid, a name is unknown, or two lines
            contradict each other; names file and line.
    """
    lines: dict[str, NameLine] = {}
    for line, item in items_of_lines(dataset, read_name_list(path, WORDS, "supervision")):
        earlier = lines.setdefault(item.name, line)
        if earlier.word != line.word:
            raise DatasetError(
                f"{line.place}: the photograph '{item.name}' has '{line.word}' here and '{earlier.word}' "
                f"in line {earlier.line}. Remove one of the two lines."
            )
    return dataset.with_items(
        _limited(item, lines[item.name]) if item.name in lines else item for item in dataset.items
    )


def interpret_masks(dataset: Dataset, reading: ReadingOptions) -> Dataset:
    """Returns the data set with the threshold and the inversion that `reading` states."""
    if reading.mask_threshold is not None:
        dataset = apply_mask_threshold(dataset, reading.mask_threshold)
    return apply_inverted_masks(dataset) if reading.invert_masks else dataset


def apply_mask_threshold(dataset: Dataset, threshold: int) -> Dataset:
    """Returns the data set with mask pixels above `threshold` as defective."""
    return replace(dataset, items=tuple(_cut(item, threshold) for item in dataset.items))


def apply_inverted_masks(dataset: Dataset) -> Dataset:
    """Returns the data set with inverted mask files; drawn masks do not change."""
    return replace(dataset, items=tuple(map(_inverted, dataset.items)))


def apply_mask_values(dataset: Dataset, values: Mapping[str, int]) -> Dataset:
    """Returns the data set with a class for each value of its mask files; drawn masks do not change.

    `values` are class name → mask value, `ignore` for pixels of unknown class; DatasetError if a class is
    unknown.
    """
    defects = dataset.classes[1:]
    numbers = {name: index for index, name in enumerate(defects, start=1)}
    numbers |= {name: IGNORED for name in values if is_ignored(name) and name not in numbers}
    if unknown := sorted(set(values) - set(numbers)):
        raise DatasetError(
            f"data.mask_values names the unknown class '{unknown[0]}'. Expected classes of the data set: "
            f"{', '.join(defects)}. Did you mean '{nearest_name(unknown[0], defects)}'?"
        )
    known = tuple(sorted((value, numbers[name]) for name, value in values.items()))
    return replace(dataset, items=tuple(_valued(item, known) for item in dataset.items))


def _inverted(item: DataSetItem) -> DataSetItem:
    mask = item.mask_file
    if isinstance(mask, CombinedMask):
        parts = tuple(p if isinstance(p, DrawnMask) else InvertedMask(p) for p in mask.parts)
        return replace(item, mask_file=replace(mask, parts=parts), digests=None)
    if mask is None or item.mask_values is not None or isinstance(mask, DrawnMask | BoxedMask):
        return item
    return replace(item, mask_file=InvertedMask(mask), digests=None)


def merged_defects(dataset: Dataset) -> Dataset:
    """Returns the data set with one class of defects, `defect`."""
    own = (*range(1, len(dataset.classes)), IGNORED)
    identical = tuple(zip(own, own, strict=True))

    def merged(item: DataSetItem) -> DataSetItem:
        values = item.mask_values
        if values is not None:  # ignored pixels stay so
            values = tuple((value, IGNORED if n == IGNORED else 1) for value, n in values or identical)
        return replace(item, label=min(item.label, 1), mask_values=values)

    return replace(dataset, classes=(GOOD, DEFECT), items=tuple(map(merged, dataset.items)))


def _valued(item: DataSetItem, known: MaskValues) -> DataSetItem:
    drawn = isinstance(item.mask_file, DrawnMask | BoxedMask)
    if item.mask_file is None or drawn or item.mask_values is not None:
        return item
    return replace(item, mask_values=known, mask_threshold=None, digests=None)


def _cut(item: DataSetItem, threshold: int) -> DataSetItem:
    """Drops the digests: the mask was packed with another threshold and must be checked again."""
    if item.mask_file is None or item.mask_threshold == threshold or item.mask_values is not None:
        return item
    return replace(item, mask_threshold=threshold, digests=None)


def _limited(item: DataSetItem, line: NameLine) -> DataSetItem | DataSetIssue:
    if item.label == 0 or (item.split == "test" and item.mask_file is not None):
        return item
    if line.word == "label":
        unmasked = replace(item, mask_file=None, mask_threshold=None, mask_values=None)
        return replace(unmasked, supervision="label", digests=item.digests and item.digests[:1])
    if item.mask_file is None:
        text = f"The photograph '{item.name}' has no mask, but the line says '{line.word}'."
        cause = Cause("supervision_without_mask", {"word": line.word})
        return DataSetIssue(line.place, f"{text} Draw one, or write 'label'.", item.name, cause)
    if line.word == "mask":
        return item
    threshold = (item.mask_threshold or 0) if item.mask_values is None else None
    boxes = BoxedMask(item.mask_file, threshold, tuple(value for value, _ in item.mask_values or ()))
    return replace(item, mask_file=boxes, supervision="box", mask_threshold=None, digests=None)
