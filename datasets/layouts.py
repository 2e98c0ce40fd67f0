"""The layouts by name, and the one way to load a data set."""

from pathlib import Path

from datasets import folder, kolektor, shards, storage, toy
from datasets.sample import Dataset, Layout
from datasets.splitting import apply_splits
from segdec.errors import DatasetError
from segdec.suggestions import nearest

FOLDERS: dict[str, Layout] = {
    "folder": folder.index,
    "kolektor": kolektor.index,
    "toy": toy.index,
}
"""Layouts of folders on this machine."""

SHARDS = "shards"
"""The layout that may also lie behind a URL."""

LAYOUTS = (*FOLDERS, SHARDS)


def load_dataset(layout: str, root: Path | str, splits: Path | None = None) -> Dataset:
    """List the data set of `layout` below `root` and assign its splits.

    Args:
        layout: A name in `LAYOUTS`.
        root: Folder of the data set; for `shards` also a URL of TensorFlow's file systems.
        splits: Split file; it replaces whatever split the layout has of its own.

    Raises:
        DatasetError: When the layout is unknown, or the folder or the split file is not as promised.
        ImageError: When a mask cannot be read.
        MissingExtraError: When the layout is `shards` and TensorFlow is not installed.
    """
    if layout not in LAYOUTS:
        raise DatasetError(
            f"Unknown layout '{layout}'. Expected one of {', '.join(LAYOUTS)}. "
            f"Did you mean '{nearest(layout, LAYOUTS)}'?"
        )
    place = str(root)
    if layout == SHARDS:
        dataset = shards.index(place if storage.is_url(place) else str(Path(place)))
    else:
        _check_local(layout, place)
        dataset = FOLDERS[layout](Path(place))
    return dataset if splits is None else apply_splits(dataset, splits)


def _check_local(layout: str, root: str) -> None:
    if storage.is_url(root):
        raise DatasetError(
            f"The layout '{layout}' reads folders of this machine, not {root}. Copy the set to a folder, or "
            f"pack it once (python -m datasets pack {layout} FOLDER {root}) and read it with the layout "
            f"'{SHARDS}'."
        )
