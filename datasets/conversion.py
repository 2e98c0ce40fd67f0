"""Writes a data set of any layout as a folder of the layout `manifest`.

    out/photographs/000001.jpeg    copied unchanged
    out/masks/000001.png           each value is a class, 255 is an ignored area
    out/classes.txt
    out/manifest.jsonl

Reading the folder gives the same classes, labels, groups, splits and pixels.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datasets.causes import Cause
from datasets.checking import ANY_WHITE_LEVEL, Progress
from datasets.layouts.manifest import CLASSES_FILE
from datasets.reading import decode, read_files
from datasets.sample import IGNORED, MAX_CLASSES, Dataset, DataSetIssue, DataSetItem, Sample
from segdec.errors import DatasetError
from segdec.images import DEFAULT_MAX_PIXELS, DEFAULT_MAX_SIDE, encode_png
from segdec.imaging.header import FORMATS, open_header
from segdec.runtime.class_list import format_class_list
from segdec.runtime.files import atomic_folder

MANIFEST = "manifest.jsonl"
PHOTOGRAPHS, MASKS = "photographs", "masks"


def convert(
    dataset: Dataset, out: Path, *, max_pixels: int = DEFAULT_MAX_PIXELS, progress: Progress = iter
) -> None:
    """Writes the items of `dataset` into the new folder `out`, atomically; `load_dataset` reads it equally.

    `dataset` has the checked items of a `convertible` one; its problems are not written. `max_pixels` limits
    photographs and masks; `progress` wraps the loop over the items.

    Raises:
        DatasetError: If a mask is invalid.
        ImageError: If a file cannot be read.
        OSError: If the folder exists or cannot be written.
    """
    with atomic_folder(out) as folder:
        for name in (PHOTOGRAPHS, MASKS):
            (folder / name).mkdir()
        (folder / CLASSES_FILE).write_text(format_class_list(dataset.classes[1:]), "utf-8")
        with (folder / MANIFEST).open("w", encoding="utf-8", newline="\n") as manifest:
            for entry in _write_items(dataset, folder, max_pixels, progress):
                manifest.write(json.dumps(entry, ensure_ascii=False) + "\n")


def convertible(dataset: Dataset) -> Dataset:
    """Returns the data set with photographs as problems whose names a manifest cannot hold.

    Raises:
        DatasetError: If there are more than 254 classes of defects.
    """
    if len(dataset.classes) - 1 > MAX_CLASSES:
        raise DatasetError(
            f"The data set has {len(dataset.classes) - 1} classes of defects. Expected at most "
            f"{MAX_CLASSES}, because masks number them in 8 bits. Merge classes."
        )
    return dataset.with_items(
        item if (item.name + item.group).isprintable() else _odd_name(item) for item in dataset.items
    )


def _odd_name(item: DataSetItem) -> DataSetIssue:
    text = (
        f"The name {item.name!r} or the group {item.group!r} has unprintable characters, so a manifest "
        "cannot hold it. Rename the photograph and its annotation."
    )
    return DataSetIssue(str(item.image_file), text, item.name, Cause("photograph_name"))


def _write_items(
    dataset: Dataset, folder: Path, max_pixels: int, progress: Progress
) -> Iterator[dict[str, str]]:
    """Writes photograph and mask of each item; yields its line of the manifest."""
    for number, item in enumerate(progress(dataset.items), start=1):
        files = read_files(item, max_pixels=max_pixels)
        image = f"{PHOTOGRAPHS}/{number:06}{_suffix(item, files.photograph, max_pixels)}"
        (folder / image).write_bytes(files.photograph)
        entry = {"image": image, "label": dataset.classes[item.label], "name": item.name}
        if files.mask is not None:
            sample = decode(item, files, white_level=ANY_WHITE_LEVEL, max_pixels=max_pixels)
            values = class_mask(sample)
            if values.any():
                entry["class_mask"] = f"{MASKS}/{number:06}.png"
                (folder / entry["class_mask"]).write_bytes(encode_png(values))
        entry |= {"group": item.group, "supervision": item.supervision}
        yield entry if item.split_word is None else {**entry, "split": item.split_word}


def class_mask(sample: Sample) -> NDArray[np.uint8]:
    """Returns uint8 [H, W]: the class of each defect pixel, 0 elsewhere, `IGNORED` where it is unknown."""
    values = np.zeros(sample.image.shape[:2], np.uint8)
    if sample.mask is not None:
        own = np.uint8(sample.label) if sample.classes is None else sample.classes
        values = np.where(sample.mask > 0, own, np.uint8(0)).astype(np.uint8)
    if sample.ignored is not None:
        values[sample.ignored > 0] = IGNORED
    return values


def _suffix(item: DataSetItem, photograph: bytes, max_pixels: int) -> str:
    """The suffix of the type that the content has: photographs in shards have no suffix."""
    with open_header(photograph, str(item.image_file), max_pixels, DEFAULT_MAX_SIDE) as picture:
        return f".{FORMATS[str(picture.format)]}"
