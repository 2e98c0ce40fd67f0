"""Leaves out photographs with files outside of the folder, which an archive of somebody else can name."""

from collections.abc import Iterator
from pathlib import Path

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.inverted_mask import InvertedMask
from datasets.causes import Cause
from datasets.sample import Dataset, Problem, Record
from segdec.images import ImageFile


def without_files_outside(dataset: Dataset, root: Path) -> Dataset:
    """Returns the data set with the photographs as problems whose photograph or mask lies outside of `root`.

    Links are followed.
    """
    folder = (root.parent if root.is_file() else root).resolve()
    return dataset.with_records(_check(record, folder) for record in dataset.records)


def _check(record: Record, folder: Path) -> Record | Problem:
    for path in _paths(record.image_file, record.mask_file):
        if not path.resolve().is_relative_to(folder):
            text = (
                f"The file {path} lies outside of the folder of the data set. Copy it into the folder, and "
                "correct the line or entry that names it."
            )
            return Problem(str(path), text, record.name, Cause("file_outside", {"file": str(path)}))
    return record


def _paths(*files: ImageFile | None) -> Iterator[Path]:
    for file in files:
        if isinstance(file, Path):
            yield file
        elif isinstance(file, CombinedMask):
            yield from _paths(*file.parts)
        elif isinstance(file, InvertedMask | BoxedMask):
            yield from _paths(file.mask)
