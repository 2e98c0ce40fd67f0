"""Where reviewed photographs go; nothing here loads TensorFlow."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from datasets.checked_photograph import CheckedPhotograph
from datasets.layouts.toy import make_sample
from datasets.near_duplicates import normalized_thumbnail
from datasets.sample import DataSetItem
from training.retrain.messages import describe_counts, describe_ignored
from training.retrain.splitting import split_reviewed

SIDE = 48


def photograph(name, split=None, *, group=None, label=0, digest=None, image=None):
    """One that was checked; a defective one without a mask."""
    file = Path(f"{name}.png")
    item = DataSetItem(name, file, None, label, group or name, split, "label" if label else "mask")
    small = None if image is None else normalized_thumbnail(image)
    return CheckedPhotograph(item, SIDE, SIDE, 1, label, digest or name, thumbnail=small)


@pytest.fixture
def old():
    """Two photographs of each split, each its own part."""
    return [photograph(f"{split}_{n}", split) for split in ("train", "val", "test") for n in (1, 2)]


def test_new_parts_train_validate_and_are_held_back(old):
    reviewed = [photograph(f"r{n}", label=n % 2) for n in range(50)]
    division = split_reviewed(old, reviewed)
    assert division == split_reviewed(old, reviewed)
    labels = {one.item.name: one.item.label for one in reviewed}
    counts = Counter((split, labels[name]) for name, split in division.splits.items())
    for label in (0, 1):
        assert [counts[split, label] for split in ("train", "val", "test")] == [15, 5, 5]
    assert (division.related, division.replaced, division.duplicates) == (0, frozenset(), ())


def test_photographs_of_a_part_stay_on_its_side(old):
    reviewed = [
        photograph(f"r{split}_{n}", group=f"{split}_1")
        for split in ("train", "val", "test")
        for n in range(3)
    ]
    reviewed += [photograph(f"new_{n}", group="A7") for n in range(9)]
    division = split_reviewed(old, reviewed)
    for split in ("train", "val", "test"):
        assert {division.splits[f"r{split}_{n}"] for n in range(3)} == {split}
    assert len({division.splits[f"new_{n}"] for n in range(9)}) == 1
    assert division.related == 6


def test_what_is_validated_or_tested_on_is_ignored_and_what_trains_is_replaced(old):
    reviewed = [
        photograph("r_train", digest="train_1", label=1),
        photograph("r_val", digest="val_1"),
        photograph("r_test", digest="test_1", label=1),
        photograph("r_new"),
    ]
    division = split_reviewed(old, reviewed)
    assert division.splits["r_train"] == "train" and division.replaced == {"train_1"}
    assert division.duplicates == ("r_test", "r_val") and division.label_conflicts == ("r_test",)
    assert division.splits.keys() == {"r_train", "r_new"}


def moved(image):
    return np.clip(image.astype(int) * 1.1 + 5, 0, 255).astype(np.uint8)


def test_near_duplicates_stay_on_the_side_of_the_original():
    images = [make_sample(2 * n, size=SIDE).image for n in range(24)]
    sides = ["train"] * 12 + ["val"] * 6 + ["test"] * 6
    old = [photograph(f"old_{n}", side, image=images[n]) for n, side in enumerate(sides)]
    duplicates = [photograph(f"duplicate_{n}", image=moved(images[n])) for n in range(24)]
    division = split_reviewed(old, duplicates)
    assert division.splits == {f"duplicate_{n}": side for n, side in enumerate(sides)}
    assert division.related == 12


def test_a_part_in_training_with_a_near_duplicate_in_the_test_is_ignored():
    images = [make_sample(2 * n, size=SIDE).image for n in range(12)]
    old = [photograph(f"old_{n}", "train" if n else "test", image=image) for n, image in enumerate(images)]
    conflicting = photograph("torn", group="old_3", image=moved(images[0]))
    division = split_reviewed(old, [conflicting, photograph("new")])
    assert division.conflicting == ("torn",) and division.splits.keys() == {"new"}


def test_tiles_need_to_know_where_defects_are(old):
    reviewed = [photograph(f"r{n}", label=1) for n in range(10)]
    division = split_reviewed(old, reviewed, needs_masks=True)
    assert len(division.unlocalized) == 6 and "train" not in division.splits.values()


def test_their_use_is_reported(old):
    reviewed = [
        photograph("r_train", digest="train_1", label=1),
        photograph("r_val", digest="val_1", label=1),
    ]
    reviewed += [photograph("related", group="val_2")]
    division = split_reviewed(old, reviewed)
    assert describe_counts(reviewed, division, 1) == (
        "3 new photographs: 0 good + 1 defective to train, 1 good + 0 defective to validate; 1 photograph "
        "the run has already"
    )
    assert list(describe_ignored(division)) == [
        "1 of them validate or test, as a related photograph does",
        "1 former training photograph replaced by a review of the same picture",
        "1 skipped: the run is validated or tested on the same picture",
        "1 of the skipped reviews contradict the data set, the first is r_val: correct the data set if the "
        "review is right",
        "Fewer than 10 photographs: near duplicates were not searched.",
    ]
