"""Ignores photographs with files outside of the folder, which an archive of somebody else can name."""

import os
from pathlib import Path

from datasets.annotations.computed_mask import source_files
from datasets.causes import Cause
from datasets.sample import Dataset, DataSetIssue, DataSetItem


class FileOutsideError(ValueError):
    """A file outside of the folder.

    Attributes:
        path: Where it would be.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(f"the file {path} lies outside of the folder of the data set")
        self.path = path


def path_inside(path: Path, root: Path) -> Path:
    """Returns the path without `..`, whether a file is there or not.

    Raises:
        FileOutsideError: If it lies outside of `root`. The error does not show whether a file is there.
    """
    folder, plain = _folder_of(root), Path(os.path.normpath(path))
    inside = any(_absolute(plain).is_relative_to(each) for each in (_absolute(folder), folder.resolve()))
    if not inside or not plain.resolve().is_relative_to(folder.resolve()):
        raise FileOutsideError(path)
    return plain


def outside_problem(path: Path, name: str) -> DataSetIssue:
    """Returns the problem of the photograph `name` whose file `path` lies outside."""
    text = (
        f"The file {path} lies outside of the folder of the data set. Copy it into the folder, and "
        "correct the line or entry that names it."
    )
    return DataSetIssue(str(path), text, name, Cause("file_outside", {"file": str(path)}))


def without_files_outside(dataset: Dataset, root: Path) -> Dataset:
    """Returns the data set with the photographs as problems whose photograph or mask lies outside of `root`.

    Links are followed.
    """
    folder = _folder_of(root).resolve()
    return dataset.with_items(_check(item, folder) for item in dataset.items)


def _check(item: DataSetItem, folder: Path) -> DataSetItem | DataSetIssue:
    for path in (item.image_file, *source_files(item.mask_file)):
        if isinstance(path, Path) and not path.resolve().is_relative_to(folder):
            return outside_problem(path, item.name)
    return item


def _absolute(path: Path) -> Path:
    """The absolute path without `..`; links stay, so no file is looked at."""
    return Path(os.path.normpath(path.absolute()))


def _folder_of(root: Path) -> Path:
    return root.parent if root.is_file() else root
