"""Labels photographs by their masks if no folder states their class."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from datasets.annotations.computed_mask import within_limit
from datasets.causes import cause_of
from datasets.sample import IGNORED, Dataset, DataSetIssue, DataSetItem
from segdec.errors import DatasetError, ImageError
from segdec.images import decode_mask_values, read_file


def label_by_masks(dataset: Dataset, names: Collection[str], max_pixels: int) -> Dataset:
    """Reads the mask files of the items `names`: one without a defect pixel makes its photograph good.

    If the values of a mask are classes, the label is the one that covers most pixels. Unreadable masks, and
    those of more than `max_pixels`, become problems.
    """
    with ThreadPoolExecutor() as pool:
        return dataset.with_items(
            pool.map(
                lambda r: _labelled(r, max_pixels) if r.name in names and r.mask_file else r, dataset.items
            )
        )


def _labelled(item: DataSetItem, max_pixels: int) -> DataSetItem | DataSetIssue:
    assert item.mask_file is not None
    try:
        data = read_file(within_limit(item.mask_file, max_pixels))
        values = decode_mask_values(data, str(item.mask_file), max_pixels=max_pixels)
    except (ImageError, DatasetError) as error:
        return DataSetIssue(str(item.mask_file), str(error), item.name, cause_of(error))
    counts = np.bincount(values.reshape(-1), minlength=256)
    if item.mask_values is not None:
        counts[IGNORED] = 0
    elif item.mask_threshold is not None:
        counts[: item.mask_threshold + 1] = 0
    if not counts[1:].any():
        return replace(item, label=0)
    return item if item.mask_values is None else replace(item, label=int(counts[1:].argmax()) + 1)
