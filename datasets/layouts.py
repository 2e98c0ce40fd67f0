"""The layouts by name, and the one way to load a data set."""

from pathlib import Path

from datasets import folder, kolektor, toy
from datasets.sample import Dataset, Layout
from datasets.splitting import apply_splits
from segdec.errors import DatasetError
from segdec.suggestions import nearest

LAYOUTS: dict[str, Layout] = {
    "folder": folder.index,
    "kolektor": kolektor.index,
    "toy": toy.index,
}


def load_dataset(layout: str, root: Path, splits: Path | None = None) -> Dataset:
    """List the data set of `layout` below `root` and assign its splits.

    Args:
        layout: A name in `LAYOUTS`.
        root: Folder of the data set.
        splits: Split file; it replaces whatever split the layout has of its own.

    Raises:
        DatasetError: When the layout is unknown, or the folder or the split file is not as promised.
        ImageError: When a mask cannot be read.
    """
    if layout not in LAYOUTS:
        raise DatasetError(
            f"Unknown layout '{layout}'. Expected one of {', '.join(LAYOUTS)}. "
            f"Did you mean '{nearest(layout, LAYOUTS)}'?"
        )
    dataset = LAYOUTS[layout](root)
    return dataset if splits is None else apply_splits(dataset, splits)
