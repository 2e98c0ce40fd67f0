"""Adds reviewed photographs to a data set.

`python -m api export-reviewed` writes them as a folder with the layout `manifest`, each named by its content:
`reviewed/0a1b…`. If several folders hold one photograph, the last one given decides its label.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from datasets.annotations.labels import DEFECT
from datasets.layouts import manifest
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.sample import Dataset, DataSetItem, renumber
from segdec.errors import DatasetError
from segdec.runtime.counts import count_of


def add_reviewed(
    dataset: Dataset,
    folders: Sequence[Path],
    reading: ReadingOptions = DEFAULTS,
    *,
    merge_defects: bool = False,
) -> Dataset:
    """Returns the data set with the photographs of these folders.

    Raises:
        DatasetError: If a folder cannot be listed, or has a class that the data set does not have, unless
            `merge_defects` says that all classes of defects will be merged.
    """
    reading = replace(reading, annotations_before_rotation=None)  # they are stored upright
    for folder in folders:
        reviewed = manifest.index(folder, reading=reading)
        if merge_defects:
            dataset = replace(dataset, classes=tuple(dict.fromkeys((*dataset.classes, *reviewed.classes))))
        own = tuple(_renumbered(reviewed, dataset, folder))
        names = {item.name for item in own}
        kept = (item for item in dataset.items if item.name not in names)
        dataset = replace(
            dataset,
            items=tuple(sorted((*kept, *own), key=lambda item: item.name)),
            problems=(*dataset.problems, *reviewed.problems),
        )
    return dataset


def _renumbered(reviewed: Dataset, dataset: Dataset, folder: Path) -> Iterator[DataSetItem]:
    """The items with class indices of the data set, also for the values in masks."""
    indices = {name: index for index, name in enumerate(dataset.classes)}
    several = len(reviewed.classes) > 2
    numbers = {old: indices[name] for old, name in enumerate(reviewed.classes) if old and name in indices}
    for item in reviewed.items:
        name = reviewed.classes[item.label]
        if name not in indices:
            number = sum(other.label == item.label for other in reviewed.items)
            raise DatasetError(
                f"{folder}: the label of {count_of(number, 'photograph')} is '{name}', but the data set has "
                f"the classes {', '.join(dataset.classes)}. A trained network cannot learn another class. "
                "Train a new one on all photographs (python -m training fit), remove the lines with "
                f"'{name}' from the manifest, or set data.merge_defects to merge all classes of defects into "
                f"'{DEFECT}'."
            )
        numbered = tuple(numbers.items()) if several and item.mask_file is not None else None
        if item.mask_values is not None:  # a class_mask, which can have ignored areas
            numbered = renumber(item.mask_values, numbers)
        yield replace(item, label=indices[name], mask_values=numbered, drawn_on="upright")
