"""The split of own data: what the annotations say, else `splits.txt` beside them, else the default one."""

from pathlib import Path

from datasets.sample import Dataset
from datasets.splitting import apply_splits, default_split

SPLITS_FILE = "splits.txt"


def assign_splits(dataset: Dataset, folder: Path) -> Dataset:
    """Returns the same data set with a split.

    Records keep their splits where any of them has one: those without are left out.

    Args:
        dataset: As the layout found it.
        folder: Where `splits.txt` may lie.

    Raises:
        DatasetError: If `splits.txt` cannot be used.
    """
    if any(record.split for record in dataset.records):
        return dataset
    if (folder / SPLITS_FILE).exists():
        return apply_splits(dataset, folder / SPLITS_FILE)
    return default_split(dataset)
