"""Assigns splits from the annotations, from `splits.txt`, or by default."""

from pathlib import Path

from datasets.sample import Dataset
from datasets.splitting import apply_splits, default_split

SPLITS_FILE = "splits.txt"


def assign_splits(dataset: Dataset, folder: Path) -> Dataset:
    """Returns the data set with splits.

    If any record has a split from its annotation, nothing changes. Otherwise `splits.txt` in `folder`
    applies, or the default split if there is no such file.

    Raises:
        DatasetError: If `splits.txt` is invalid.
    """
    if any(record.split for record in dataset.records):
        return dataset
    if (folder / SPLITS_FILE).exists():
        return apply_splits(dataset, folder / SPLITS_FILE)
    return default_split(dataset)
