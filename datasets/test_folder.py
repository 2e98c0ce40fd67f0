"""Adds the photographs of a separate test folder to a data set."""

from dataclasses import replace
from pathlib import Path

from datasets.sample import Dataset, MaskValues, Record
from segdec.errors import DatasetError

PREFIX = "test folder/"
"""Start of the names and groups of these photographs."""


def add_test_folder(
    dataset: Dataset, tested: Dataset, folder: Path, *, merge_defects: bool = False
) -> Dataset:
    """Returns the data set with the photographs of `tested`, which was listed in `folder`.

    Raises:
        DatasetError: If a photograph has a class that the data set does not have, unless `merge_defects` says
            that all classes of defects will be merged.
    """
    if merge_defects:
        dataset = replace(dataset, classes=tuple(dict.fromkeys((*dataset.classes, *tested.classes))))
    indices = {name: index for index, name in enumerate(dataset.classes)}
    used = {tested.classes[record.label] for record in tested.records}
    if unknown := sorted(used - indices.keys()):
        raise DatasetError(
            f"{folder} has photographs of the classes {', '.join(unknown)}, but the data set has the classes "
            f"{', '.join(dataset.classes)}. Expected the same classes: rename them, or in an "
            "experiment file set data.merge_defects to merge all classes of defects."
        )
    numbers = {label: indices[name] for label, name in enumerate(tested.classes) if name in indices}
    added = (_renumbered(record, numbers) for record in tested.records)
    return replace(
        dataset,
        records=tuple(sorted((*dataset.records, *added), key=lambda record: record.name)),
        problems=(*dataset.problems, *tested.problems),
        dropped=(*dataset.dropped, *tested.dropped),
    )


def split_test_folder(dataset: Dataset) -> tuple[list[Record], list[Record]]:
    """Returns the records of the data set itself, and those of its separate test folder in the split test."""
    own = [record for record in dataset.records if not record.name.startswith(PREFIX)]
    tested = [r.with_split("test") for r in dataset.records if r.name.startswith(PREFIX)]
    return own, tested


def _renumbered(record: Record, numbers: dict[int, int]) -> Record:
    """The record with another name and the class indices of the data set, also for the values in its mask."""
    values: MaskValues | None = record.mask_values
    if values is not None:
        pairs = values or tuple((label, label) for label in numbers if label)
        values = tuple((value, numbers.get(label, label)) for value, label in pairs)
    name, group = f"{PREFIX}{record.name}", f"{PREFIX}{record.group}"
    label = numbers[record.label]
    return replace(record, name=name, group=group, label=label, mask_values=values)
