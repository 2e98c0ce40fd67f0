"""Adds the photographs of a separate test folder to a data set."""

from dataclasses import replace
from pathlib import Path

from datasets.sample import Dataset, DataSetItem, renumber
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
    used = {tested.classes[item.label] for item in tested.items}
    if unknown := sorted(used - indices.keys()):
        raise DatasetError(
            f"{folder} has photographs of the classes {', '.join(unknown)}, but the data set has the classes "
            f"{', '.join(dataset.classes)}. Expected the same classes: rename them, or in an "
            "experiment file set data.merge_defects to merge all classes of defects."
        )
    numbers = {label: indices[name] for label, name in enumerate(tested.classes) if name in indices}
    added = (_renumbered(item, numbers) for item in tested.items)
    return replace(
        dataset,
        items=tuple(sorted((*dataset.items, *added), key=lambda item: item.name)),
        problems=(*dataset.problems, *tested.problems),
        dropped=(*dataset.dropped, *tested.dropped),
    )


def split_test_folder(dataset: Dataset) -> tuple[list[DataSetItem], list[DataSetItem]]:
    """Returns the items of the data set itself, and those of its separate test folder in the split test."""
    own = [item for item in dataset.items if not item.name.startswith(PREFIX)]
    tested = [r.with_split("test") for r in dataset.items if r.name.startswith(PREFIX)]
    return own, tested


def _renumbered(item: DataSetItem, numbers: dict[int, int]) -> DataSetItem:
    """The item with another name and the class indices of the data set, also for the values in its mask."""
    values = None if item.mask_values is None else renumber(item.mask_values, numbers)
    name, group = f"{PREFIX}{item.name}", f"{PREFIX}{item.group}"
    label = numbers[item.label]
    return replace(item, name=name, group=group, label=label, mask_values=values)
