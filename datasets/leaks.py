"""Leaks: equal pictures in different splits (an error), and near duplicates in them (a warning).

Near duplicates only cause a warning because the threshold that finds them can be wrong.
"""

import sys
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from datasets.checked_photograph import CheckedDataset, CheckedPhotograph, UnreadPhotographs, find_duplicates
from datasets.folds import keep_every_share
from datasets.name_lists import items_by_name, known_names, nearest_known
from datasets.near_duplicates import (
    MAX_PHOTOGRAPHS,
    MIN_PHOTOGRAPHS,
    duplicate_clusters,
    near_duplicate_pairs,
    nearest_pairs,
    select_pairs,
)
from datasets.problems import describe_problems
from datasets.sample import Dataset
from datasets.splitting import SPLITS, TEST_FRACTION, VAL_FRACTION
from segdec.errors import DatasetError

Leak = tuple[CheckedPhotograph, ...]
"""The photographs that show one picture and are in more than one split."""

MAX_LISTED = 5
"""Near duplicates that a warning names; a set may have thousands."""

DEFAULT_SHARES = (1 - VAL_FRACTION - TEST_FRACTION, VAL_FRACTION, TEST_FRACTION)


class NearLeak(NamedTuple):
    """A photograph, its nearest near duplicate in another split, and their relative distance."""

    first: CheckedPhotograph
    second: CheckedPhotograph
    distance: float


def find_leaks(photographs: Sequence[CheckedPhotograph], allowed: Collection[str]) -> list[Leak]:
    """Finds all pictures that are in more than one split, unless all their photographs are `allowed`."""
    leaks = []
    for same in find_duplicates(photographs):
        leak = tuple(photograph for photograph in same if photograph.item.split is not None)
        several = len({photograph.item.split for photograph in leak}) > 1
        if several and any(photograph.item.name not in allowed for photograph in leak):
            leaks.append(leak)
    return leaks


def near_leaks(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> list[NearLeak]:
    """Finds near duplicates in different splits, nearest first; equal pictures are excluded.

    Finds nothing among photographs that were not read, nor among more than `MAX_PHOTOGRAPHS`. Pairs of which
    both are `allowed`, by the name of an item, group or folder, are ignored.

    Raises:
        DatasetError: If a name is unknown; suggests the nearest one.
    """
    names = _allowed_names(dataset, photographs, allowed)
    photographs, thumbnails = _thumbnails(photographs)
    has_several = len({photograph.item.split for photograph in photographs} - {None}) > 1
    if not has_several or len(thumbnails) > MAX_PHOTOGRAPHS:
        return []
    splits = np.array([-1 if f.item.split is None else SPLITS.index(f.item.split) for f in photographs])
    pictures = np.unique([photograph.digest for photograph in photographs], return_inverse=True)[1]
    is_allowed = np.array([photograph.item.name in names for photograph in photographs])

    pairs = near_duplicate_pairs(thumbnails)
    a, b = pairs.first, pairs.second
    across = (splits[a] >= 0) & (splits[b] >= 0) & (splits[a] != splits[b])
    across &= (pictures[a] != pictures[b]) & ~(is_allowed[a] & is_allowed[b])
    nearest = nearest_pairs(select_pairs(pairs, across))
    columns = zip(*(column.tolist() for column in nearest), strict=True)
    return [NearLeak(photographs[a], photographs[b], distance) for a, b, distance in columns]


def near_duplicates(photographs: Sequence[CheckedPhotograph]) -> list[tuple[CheckedPhotograph, ...]]:
    """Returns clusters of near duplicates, whatever their splits.

    Raises:
        DatasetError: If there are more than `MAX_PHOTOGRAPHS`.
    """
    read, thumbnails = _thumbnails(photographs)
    if len(thumbnails) > MAX_PHOTOGRAPHS:
        raise DatasetError(f"{_too_many(len(thumbnails))} Split it without --group-twins.")
    clusters = duplicate_clusters(len(read), near_duplicate_pairs(thumbnails))
    return [tuple(read[index] for index in cluster) for cluster in clusters]


def near_duplicates_for_split(
    photographs: Sequence[CheckedPhotograph],
    shares: Sequence[float] = DEFAULT_SHARES,
    seed: int = 0,
    *,
    searched: Sequence[CheckedPhotograph] | None = None,
) -> tuple[Sequence[Sequence[CheckedPhotograph]], tuple[str, ...]]:
    """Returns the near duplicates that a split should keep together, and notes for the user.

    Clusters are given up if they are a viewpoint, or if a part of the split would lose its share of a class.
    There are none among fewer than `MIN_PHOTOGRAPHS` or more than `MAX_PHOTOGRAPHS`. Without `searched`,
    which are these photographs and those of other splits, only these are searched.
    """
    searched = searched or photographs
    if not MIN_PHOTOGRAPHS <= len(searched) <= MAX_PHOTOGRAPHS:
        few = len(searched) < MIN_PHOTOGRAPHS
        limit = f"Fewer than {MIN_PHOTOGRAPHS}" if few else f"More than {MAX_PHOTOGRAPHS}"
        return (), (f"{limit} photographs: near duplicates were not searched.",)
    names = {photograph.item.name for photograph in photographs}
    clusters = [tuple(one for one in same if one.item.name in names) for same in near_duplicates(searched)]
    return keep_every_share(photographs, [same for same in clusters if len(same) > 1], shares, seed)


def _thumbnails(photographs: Sequence[CheckedPhotograph]) -> tuple[Sequence[CheckedPhotograph], list[bytes]]:
    """The photographs that were read, and the thumbnail of each."""
    if isinstance(photographs, UnreadPhotographs):
        return (), []
    thumbnails = {index: f.thumbnail for index, f in enumerate(photographs) if f.thumbnail is not None}
    return [photographs[index] for index in thumbnails], list(thumbnails.values())


def _allowed_names(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> set[str]:
    """Names of all photographs that `allowed` covers; DatasetError for an unknown name."""
    known = known_names(dataset) if allowed else set()
    for name in allowed:
        if name not in known:
            raise DatasetError(
                f"data.allowed_leaks (or --allow-leak) names '{name}', which is not a photograph or a group. "
                f"{nearest_known(name, known)}"
            )
    by_name = items_by_name([photograph.item for photograph in photographs] if allowed else [])
    return {item.name for name in allowed for item in by_name.get(name, ())}


def warn_of_near_leaks(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> list[NearLeak]:
    """Returns `near_leaks` and prints a warning that names some of them."""
    count = len(_thumbnails(photographs)[1])
    if count > MAX_PHOTOGRAPHS:
        print(f"warning: {_too_many(count)}", file=sys.stderr)
    leaks = near_leaks(dataset, photographs, allowed)
    if leaks:
        print(f"warning: {_describe_near(leaks)}", file=sys.stderr)
    return leaks


def raise_if_unusable(
    dataset: Dataset, checked: CheckedDataset, *, allowed_leaks: Sequence[str] = (), skip_broken: bool = False
) -> None:
    """Raises if a picture is in more than one split or, unless `skip_broken` is set, there are problems.

    Raises:
        DatasetError: One error that lists all problems and all leaks that are not allowed.
    """
    problems = () if skip_broken else checked.dataset.problems
    leaks = find_leaks(checked.photographs, _allowed_names(dataset, checked.photographs, allowed_leaks))
    reports = [describe_problems(problems)] if problems else []
    reports += [_describe(leaks)] if leaks else []
    if reports:
        raise DatasetError("\n".join(reports))


def _describe(leaks: Sequence[Leak]) -> str:
    """The count, one line for each leak, and what to do."""
    lines = "".join(f"\n  {format_duplicates(leak)}" for leak in leaks)
    return (
        f"{len(leaks)} picture{' is' if len(leaks) == 1 else 's are'} in different splits:{lines}\n"
        "Put equal pictures into one split (python -m datasets split does), remove all but one, or allow the "
        "photographs or their groups by data.allowed_leaks (training) or --allow-leak (python -m datasets "
        "inspect, pack)."
    )


def format_duplicates(same: Sequence[CheckedPhotograph]) -> str:
    """Returns one line with all photographs and their splits."""
    items = (photograph.item for photograph in same)
    return " = ".join(f"{item.name} ({item.split or 'left out'})" for item in items)


def _describe_near(leaks: Sequence[NearLeak]) -> str:
    """The number of photographs, some of the pairs, and what to do."""
    count = len({photograph.item.name for leak in leaks for photograph in leak[:2]})
    lines = "".join(f"\n  {format_near_leak(leak)}" for leak in leaks[:MAX_LISTED])
    if (rest := len(leaks) - MAX_LISTED) > 0:
        lines += f"\n  and {rest} more pair{'s' * (rest > 1)}"
    return (
        f"{count} photographs have a near duplicate in another split, so results may look too good:{lines}\n"
        "Keep near duplicates in one split (python -m datasets split --group-twins); python -m datasets "
        "inspect --twins FILE lists all pairs. If they show different things, allow the photographs or their "
        "groups by data.allowed_leaks (training) or --allow-leak (python -m datasets inspect, pack)."
    )


def format_near_leak(leak: NearLeak) -> str:
    """Returns one line with both photographs, their splits and their relative distance."""
    first, second = (f"{photograph.item.name} ({photograph.item.split})" for photograph in leak[:2])
    return f"{first} ~ {second}, {leak.distance:.2f}"


def _too_many(count: int) -> str:
    return f"Near duplicates are searched among at most {MAX_PHOTOGRAPHS} photographs; the set has {count}."
