"""What is found in a data set."""

import math
import os
import time

import numpy as np
import pytest

from datasets.check_cache import CheckCache
from datasets.checking import check_dataset
from datasets.layouts.toy import write_toy
from datasets.loading import load_dataset
from datasets.sample import Sample
from segdec.errors import DatasetError
from segdec.images import read_mask, write_png
from training.fit.dataset_profile import (
    ProfileOptions,
    measure_sample,
    merge_defects,
    profile_dataset,
    rare_classes,
    store_checks,
)
from training.fit.messages import describe_profile


def survey_folder(root):
    return profile_dataset(load_dataset("folder", root), "folder", root, ProfileOptions())


def test_a_toy_set_is_counted_measured_and_described(toy_root):
    profile = survey_folder(toy_root).profile
    assert profile.counts == (12, 12)
    assert (profile.masks, profile.boxes, profile.labels) == (12, 0, 0)
    assert (profile.height, profile.width, profile.one_size, profile.one_shape) == (32, 32, True, True)
    assert not profile.coloured
    assert profile.own_split  # it has a splits.txt
    assert 1 <= profile.smallest_px < 32
    printed = "\n".join(describe_profile(profile, ["Something to note."]))
    assert "24 photographs, 32 × 32 px" in printed
    assert "12 good, 12 defect" in printed
    assert "12 masks; the smallest has an area of" in printed
    assert "note        Something to note." in printed
    assert max(map(len, printed.splitlines())) <= 110


def test_the_largest_region_of_a_photograph_is_its_defect():
    mask = np.zeros((20, 20), np.uint8)
    mask[2:4, 2:4], mask[10:13, 10:16] = 255, 255
    measured = measure_sample(Sample("one", np.zeros((20, 20, 1), np.uint8), mask, 1))
    assert measured.defect_px == pytest.approx(math.sqrt(18))


@pytest.mark.parametrize(("difference", "coloured"), [(3, False), (60, True)])
def test_colours_count_where_they_differ(difference, coloured):
    image = np.full((20, 20, 3), 100, np.uint8)
    image[:5, :, 0] += difference
    assert measure_sample(Sample("one", image, None, 0)).coloured == coloured


def test_a_class_of_two_parts_joins_the_others(profiled_of):
    groups = [[(0,)]] * 9 + [[(1,)]] * 5 + [[(2,)]] * 2
    profiled = profiled_of(groups, classes=("good", "dent", "scratch"))
    assert rare_classes(profiled) == ["scratch"]
    merged = merge_defects(profiled, "scratch: fewer than 3 parts")
    assert merged.profile.counts == (9, 7)
    assert merged.profile.merged
    assert {photograph.item.label for photograph in merged.checked.photographs} == {0, 1}
    assert (
        merged.notes[-1] == "scratch: fewer than 3 parts: all defects become one class (data.merge_defects)"
    )


def test_what_was_read_is_not_read_again(tmp_path, monkeypatch):
    root = tmp_path / "toy"
    write_toy(root, 24, size=32)
    hours_ago = time.time() - 7200
    monkeypatch.setattr("datasets.check_cache.MIN_FILE_AGE_S", -1.0)  # the files are old enough
    profiled = survey_folder(root)
    store_checks(profiled, CheckCache(tmp_path / "checked", str(root), "settings"))
    known = CheckCache(tmp_path / "checked", str(root), "settings")
    assert all(known.find(known.state(item)) for item in load_dataset("folder", root).items)
    os.utime(root / "good" / "00000.png", (hours_ago, hours_ago))
    items = load_dataset("folder", root).items
    assert [item.name for item in items if not known.find(known.state(item))] == ["good/00000"]


def test_masks_of_class_indices_are_recognized_again_after_fit(tmp_path, monkeypatch):
    root = tmp_path / "toy"
    write_toy(root, 24, size=32)
    for path in (root / "masks").rglob("*.png"):
        mask = read_mask(path)
        mask[mask > 0] = 1
        mask[0, :2] = 2, 255
        write_png(path, mask)
    monkeypatch.setattr("datasets.check_cache.MIN_FILE_AGE_S", -1.0)
    profiled = survey_folder(root)
    assert "class indices" in profiled.notes[0]
    store_checks(profiled, CheckCache(tmp_path / "checked", str(root), "settings"))
    known = CheckCache(tmp_path / "checked", str(root), "settings")
    again = check_dataset(load_dataset("folder", root), known=known).dataset
    assert (again.items, again.problems) == (profiled.checked.dataset.items, ())


def test_what_cannot_be_used_is_ignored_where_that_is_said(tmp_path):
    root = tmp_path / "parts"
    write_toy(root, 24, size=32)
    broken = sorted((root / "good").iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:50])
    dataset = load_dataset("folder", root)
    with pytest.raises(DatasetError, match=r"(?s)1 problem.*--skip-broken .python -m training fit"):
        profile_dataset(dataset, "folder", root, ProfileOptions())
    profiled = profile_dataset(dataset, "folder", root, ProfileOptions(skip_broken=True))
    assert len(profiled.checked.photographs) == 23
    assert profiled.profile.options.skip_broken
    assert profiled.notes[0].startswith(f"skipped: {broken} is not")
