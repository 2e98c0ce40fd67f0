from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from datasets import leaks
from datasets.checked_photograph import CheckedDataset, CheckedPhotograph
from datasets.leaks import (
    near_duplicates,
    near_duplicates_for_split,
    near_leaks,
    raise_if_unusable,
    warn_of_near_leaks,
)
from datasets.near_duplicates import normalized_thumbnail
from datasets.sample import Dataset, DataSetIssue, DataSetItem
from segdec.errors import DatasetError


def photograph(name, split, picture):
    item = DataSetItem(name, Path(name), None, 0, name.split("/")[0], split)
    return CheckedPhotograph(item, 4, 6, 1, 0, picture)


@pytest.fixture
def photographs():
    """kos26 is kos01 again, over the border; other near duplicates stay within a split or have none."""
    across = [("kos01", "train"), ("kos26", "test")]
    within = [("kos03", "val"), ("kos04", "val"), ("kos05", None)]
    return [
        *(photograph(f"{item}/Part{n}", split, f"picture {n}") for item, split in across for n in (0, 1)),
        *(photograph(f"{item}/Part0", split, "another") for item, split in within),
        photograph("kos06/Part0", "val", "a third"),
    ]


def refuse(photographs, **options):
    items = tuple(photograph.item for photograph in photographs)
    broken = DataSetIssue("p", "broken", "kos09/Part0")
    dataset = Dataset(("good",), items, (broken,))
    raise_if_unusable(dataset, CheckedDataset(dataset, tuple(photographs)), **options)


def test_all_problems_and_leaks_are_named_at_once(photographs):
    with pytest.raises(DatasetError, match=r"(?s)1 problem:\n  p: broken\n.*2 pictures are") as error:
        refuse(photographs)
    lines = str(error.value).splitlines()
    assert lines[-3:-1] == [f"  kos01/Part{n} (train) = kos26/Part{n} (test)" for n in (0, 1)]
    assert "data.allowed_leaks" in lines[-1]


def test_a_leak_passes_when_each_of_its_photographs_is_named(photographs):
    both = ["kos01", "kos26/Part0", "kos26/Part1", "kos09/Part0"]
    refuse(photographs, allowed_leaks=both, skip_broken=True)
    with pytest.raises(DatasetError, match=r"(?s)^1 picture is .*  kos01/Part1 \(train\) = kos26/Part1"):
        refuse(photographs, allowed_leaks=["kos01", "kos26/Part0"], skip_broken=True)


def test_an_error_for_an_unknown_name_has_the_nearest(photographs):
    with pytest.raises(DatasetError, match=r"allowed_leaks.*'kos62'.*Nearest known name: 'kos26'"):
        refuse(photographs, allowed_leaks=["kos01", "kos62"])


@pytest.fixture
def exposures():
    """Twelve tiles at three exposures; each tile has a photograph in every split, the last in none."""
    draw = np.random.default_rng(0)
    made = []
    for tile in range(12):
        surface = cv2.resize(draw.uniform(40, 200, (24, 24)), (64, 64), interpolation=cv2.INTER_CUBIC)
        for exposure, split in enumerate(("train", "val", "test")):
            image = np.clip(surface * (0.6 + 0.2 * exposure), 0, 255).astype(np.uint8)[:, :, None]
            name = f"tile{tile:02d}/{exposure}"
            shot = photograph(name, None if tile == 11 else split, f"{tile} {exposure}")
            made.append(replace(shot, thumbnail=normalized_thumbnail(image)))
    return made


def as_dataset(photographs):
    return Dataset(("good",), tuple(photograph.item for photograph in photographs))


def pairs(found):
    return {(leak.first.item.name, leak.second.item.name) for leak in found}


def test_near_duplicates_in_different_splits_are_found_the_nearest_first(exposures):
    found = near_leaks(as_dataset(exposures), exposures, [])
    assert all(one.split("/")[0] == other.split("/")[0] for one, other in pairs(found))
    named = {name for pair in pairs(found) for name in pair}
    assert named == {photograph.item.name for photograph in exposures if photograph.item.split}
    distances = [leak.distance for leak in found]
    assert distances == sorted(distances)
    assert max(distances) < 0.3


def test_near_duplicates_of_one_split_and_equal_pictures_are_not_reported(exposures):
    """Equal pictures have an error of their own."""
    within = [replace(f, item=f.item.with_split("train")) for f in exposures]
    assert near_leaks(as_dataset(within), within, []) == []
    equal = [replace(f, digest=f.digest.split()[0]) for f in exposures]
    assert near_leaks(as_dataset(equal), equal, []) == []


def test_near_duplicates_pass_when_both_are_named(exposures):
    dataset = as_dataset(exposures)
    assert not {"tile03/0", "tile03/1"} & set().union(*pairs(near_leaks(dataset, exposures, ["tile03"])))
    found = pairs(near_leaks(dataset, exposures, ["tile03/0", "tile03/2"]))
    left = {pair for pair in found if pair[0].startswith("tile03")}
    assert left == {("tile03/0", "tile03/1"), ("tile03/1", "tile03/2")}


def test_a_warning_names_some_near_duplicates_and_counts_the_others(exposures, capsys):
    found = warn_of_near_leaks(as_dataset(exposures), exposures, [])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("warning: 33 photographs have a near duplicate in another split")
    assert len(lines) == 1 + leaks.MAX_LISTED + 2
    one, other = (f"{photograph.item.name} ({photograph.item.split})" for photograph in found[0][:2])
    assert lines[1] == f"  {one} ~ {other}, {found[0].distance:.2f}"
    assert lines[-2] == f"  and {len(found) - leaks.MAX_LISTED} more pairs"
    assert "split --group-twins" in lines[-1]
    allowed = [f"tile{tile:02d}" for tile in range(12)]
    assert warn_of_near_leaks(as_dataset(exposures), exposures, allowed) == []
    assert capsys.readouterr().err == ""


def test_exposures_of_each_tile_stay_together(exposures):
    assert near_duplicates_for_split(exposures) == (near_duplicates(exposures), ())
    assert [len(same) for same in near_duplicates(exposures)] == [3] * 12


def test_a_cluster_with_a_large_share_of_a_class_is_a_viewpoint(exposures, monkeypatch):
    for joined, kept in [(12, 1), (13, 0)]:  # of 36
        monkeypatch.setattr(leaks, "near_duplicates", lambda found, most=joined: [tuple(found[:most])])
        duplicates, notes = near_duplicates_for_split(exposures)
        assert (len(duplicates), len(notes)) == (kept, 1 - kept)
    assert notes[0].startswith("Near duplicates in 1 cluster are not kept together: 13 (tile00/0")
    assert "viewpoint" in notes[0]


def test_duplicates_among_more_photographs_are_those_of_the_given_ones(exposures):
    found, _ = near_duplicates_for_split(exposures[:20], searched=exposures)
    assert [len(same) for same in found] == [3] * 6 + [2]
    assert set(sum(found, ())) == set(exposures[:20])


def test_photographs_of_one_split_are_not_searched_for_leaks(exposures, monkeypatch):
    monkeypatch.setattr(leaks, "near_duplicate_pairs", lambda _: pytest.fail("were searched"))
    one_split = [replace(one, item=one.item.with_split("train")) for one in exposures]
    assert warn_of_near_leaks(as_dataset(one_split), one_split, []) == []


def test_few_photographs_are_not_compared(exposures):
    assert near_duplicates_for_split(exposures[:9]) == (
        (),
        ("Fewer than 10 photographs: near duplicates were not searched.",),
    )


def test_more_photographs_than_are_compared_are_reported(exposures, monkeypatch, capsys):
    monkeypatch.setattr(leaks, "MAX_PHOTOGRAPHS", 35)
    assert warn_of_near_leaks(as_dataset(exposures), exposures, []) == []
    assert "among at most 35 photographs; the set has 36" in capsys.readouterr().err
    assert near_duplicates_for_split(exposures)[1][0].startswith("More than 35 photographs")
    with pytest.raises(DatasetError, match=r"set has 36\. Split it without --group-twins"):
        near_duplicates(exposures)


def test_photographs_that_were_not_read_have_no_near_duplicates(exposures):
    unread = [replace(photograph, thumbnail=None) for photograph in exposures]
    assert near_leaks(as_dataset(unread), unread, []) == []
    some = [*unread[:6], *exposures[6:]]
    found = pairs(near_leaks(as_dataset(some), some, []))
    assert {name.split("/")[0] for pair in found for name in pair} == {f"tile{k:02d}" for k in range(2, 11)}
