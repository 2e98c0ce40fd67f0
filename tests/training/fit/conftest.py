"""Surveys and data sets that are made up; none of it loads TensorFlow."""

from dataclasses import replace
from pathlib import Path

import pytest

from datasets.checked_photograph import CheckedDataset, CheckedPhotograph
from datasets.sample import Dataset, DataSetItem
from training.fit.dataset_profile import DatasetProfile, ProfiledDataset

PROFILE = DatasetProfile(
    layout="folder",
    root="data/parts",
    classes=("good", "defect"),
    counts=(170, 25),
    masks=25,
    boxes=0,
    labels=0,
    groups=195,
    height=512,
    width=512,
    one_size=True,
    one_shape=True,
    coloured=False,
    stored_in_colour=False,
    smallest_px=20.0,
    near_duplicates=0,
    mixed_duplicates=0,
    own_split=False,
)


@pytest.fixture(scope="session")
def profile_of():
    """A survey of 195 photographs with what differs."""
    return lambda **facts: replace(PROFILE, **facts)


@pytest.fixture(scope="session")
def profiled_of():
    """A data set of so many groups, each of so many photographs: labels by group; duplicates by places."""

    def make(groups, duplicates=(), own_split=False, classes=("good", "defect")):
        photographs = []
        for number, labels in enumerate(groups):
            for place, (label, *split) in enumerate(labels):
                name = f"part_{number:03d}/{place}"
                file = Path(f"{name}.png")
                item = DataSetItem(
                    name, file, file if label else None, label, f"part_{number:03d}", *(split or [None])
                )
                photographs.append(CheckedPhotograph(item, 64, 64, 1, label, digest=name))
        items = tuple(photograph.item for photograph in photographs)
        counts = tuple(sum(item.label == label for item in items) for label in range(len(classes)))
        profile = replace(PROFILE, classes=classes, counts=counts, own_split=own_split, groups=len(groups))
        checked = CheckedDataset(Dataset(classes, items), tuple(photographs))
        connected = [tuple(photographs[place] for place in same) for same in duplicates]
        return ProfiledDataset(profile, checked, connected, ())

    return make
