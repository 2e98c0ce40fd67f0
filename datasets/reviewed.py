"""Photographs that people have judged, added to a data set.

`python -m api export-reviewed` writes them as a folder of the layout `manifest`, each named by its content:
`reviewed/0a1b…`. Of several folders with one photograph, the one named last says what it shows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from datasets.annotations.labels import DEFECT
from datasets.layouts import manifest
from datasets.sample import Dataset, Record
from segdec.errors import DatasetError


def add_reviewed(dataset: Dataset, folders: Sequence[Path], *, merge_defects: bool = False) -> Dataset:
    """Returns the data set with the photographs of these folders.

    Args:
        dataset: What they are added to.
        folders: As they were exported.
        merge_defects: Whether all classes of defects will become one, so that any may occur.

    Raises:
        DatasetError: If a folder cannot be listed, or people name a class that the data set does not have.
    """
    for folder in folders:
        reviewed = manifest.index(folder)
        if merge_defects:
            dataset = replace(dataset, classes=tuple(dict.fromkeys((*dataset.classes, *reviewed.classes))))
        own = tuple(_renumbered(reviewed, dataset, folder))
        names = {record.name for record in own}
        kept = (record for record in dataset.records if record.name not in names)
        dataset = replace(
            dataset,
            records=tuple(sorted((*kept, *own), key=lambda record: record.name)),
            problems=(*dataset.problems, *reviewed.problems),
        )
    return dataset


def _renumbered(reviewed: Dataset, dataset: Dataset, folder: Path) -> Iterator[Record]:
    """The records with the class numbers of the data set, also in masks, which hold those of the folder."""
    places = {name: place for place, name in enumerate(dataset.classes)}
    several = len(reviewed.classes) > 2
    values = tuple(
        (value, places[name]) for value, name in enumerate(reviewed.classes) if value and name in places
    )
    for record in reviewed.records:
        name = reviewed.classes[record.label]
        if name not in places:
            raise DatasetError(_tell_unknown(reviewed, record.label, dataset, folder))
        masked = several and record.mask_file is not None
        yield replace(record, label=places[name], mask_values=values if masked else None)


def _tell_unknown(reviewed: Dataset, label: int, dataset: Dataset, folder: Path) -> str:
    name, number = reviewed.classes[label], sum(record.label == label for record in reviewed.records)
    return (
        f"{folder}: people call {number} of the photographs '{name}', and the data set has the classes "
        f"{', '.join(dataset.classes)}. A network cannot take up another class: train anew on all "
        f"photographs with it (python -m training fit), take the lines of '{name}' out of the manifest, or "
        f"set data.merge_defects, which makes one class, '{DEFECT}', of all."
    )
