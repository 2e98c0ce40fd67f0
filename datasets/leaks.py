"""Equal pictures and near twins in different splits: what is tested must not have been learnt.

That pictures are equal is a fact, and refused. That they are near twins is found by a threshold, which would
stop a rightful training where it errs, so it is a warning.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datasets.checking import (
    CheckedDataset,
    CheckedPhotograph,
    UnreadPhotographs,
    describe_problems,
    find_duplicates,
)
from datasets.name_lists import known_names, nearest_known, records_by_name
from datasets.near_duplicates import (
    MAX_PHOTOGRAPHS,
    Pairs,
    distinctive_features,
    duplicate_clusters,
    nearest_duplicates,
)
from datasets.sample import Dataset
from datasets.splitting import SPLITS
from segdec.errors import DatasetError

Leak = tuple[CheckedPhotograph, ...]
"""The places of one picture that lies in two splits or three."""

MAX_LISTED = 5
"""As many near twins are named; a set of exposures has thousands."""

MAX_CLUSTER_SHARE = 0.5
"""Share of the photographs above which a cluster of near twins says that all parts look alike."""


class NearLeak(NamedTuple):
    """A photograph and the nearest of its near twins in other splits; `correlation` of what they show."""

    one: CheckedPhotograph
    other: CheckedPhotograph
    correlation: float


def find_leaks(photographs: Sequence[CheckedPhotograph]) -> list[Leak]:
    """Finds every picture that lies in more than one split; photographs without a split do not count."""
    assigned = (
        tuple(photograph for photograph in same if photograph.record.split is not None)
        for same in find_duplicates(photographs)
    )
    return [same for same in assigned if len({photograph.record.split for photograph in same}) > 1]


def unallowed_leaks(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> list[Leak]:
    """Returns every leak but those of which each photograph is named.

    Args:
        dataset: Knows all names.
        photographs: What was found of it.
        allowed: Names of records, groups or folders.

    Raises:
        DatasetError: If one of the names is not there; it tells the nearest.
    """
    passing = _passing(dataset, photographs, allowed)
    return [leak for leak in find_leaks(photographs) if any(f.record.name not in passing for f in leak)]


def near_leaks(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> list[NearLeak]:
    """Finds near twins in different splits that are no equal pictures, the nearest first.

    Pairs do not count of which both are named; takes names and raises as `unallowed_leaks`. None is found
    among photographs that were not read, nor among more than `MAX_PHOTOGRAPHS`.
    """
    passing = _passing(dataset, photographs, allowed)
    photographs, small = _small_pictures(photographs)
    if not small or len(small) > MAX_PHOTOGRAPHS:
        return []
    splits = np.array([-1 if f.record.split is None else SPLITS.index(f.record.split) for f in photographs])
    pictures = np.unique([photograph.digest for photograph in photographs], return_inverse=True)[1]
    named = np.array([photograph.record.name in passing for photograph in photographs])

    def across(pairs: Pairs) -> NDArray[np.bool_]:
        one, other, _ = pairs
        assigned = (splits[one] >= 0) & (splits[other] >= 0) & (splits[one] != splits[other])
        return np.asarray(assigned & (pictures[one] != pictures[other]) & ~(named[one] & named[other]))

    found = nearest_duplicates(distinctive_features(small), across)
    places = zip(*(part.tolist() for part in found), strict=True)
    return [NearLeak(photographs[one], photographs[other], alike) for one, other, alike in places]


def near_duplicates(photographs: Sequence[CheckedPhotograph]) -> list[tuple[CheckedPhotograph, ...]]:
    """Returns photographs that near twins connect, in whatever splits.

    Raises:
        DatasetError: If there are more than are compared.
    """
    read, small = _small_pictures(photographs)
    if len(small) > MAX_PHOTOGRAPHS:
        raise DatasetError(f"{_too_many(small)} Split it without --group-twins.")
    return [
        tuple(read[place] for place in cluster) for cluster in duplicate_clusters(distinctive_features(small))
    ]


def near_duplicates_for_split(
    photographs: Sequence[CheckedPhotograph],
) -> tuple[Sequence[tuple[CheckedPhotograph, ...]], tuple[str, ...]]:
    """Returns `near_duplicates` if photographs can be divided with these together; else none, and why in words.

    None are returned, too, where there are more photographs than are compared.
    """
    if len(photographs) > MAX_PHOTOGRAPHS:
        return (), (f"More than {MAX_PHOTOGRAPHS} photographs: near twins were not looked for.",)
    duplicates = near_duplicates(photographs)
    largest = max(map(len, duplicates), default=0)
    if largest > MAX_CLUSTER_SHARE * len(photographs):
        return (), (
            f"{largest} of {len(photographs)} photographs look alike over others: these are one kind of part "
            "rather than twins, and are split by their groups alone.",
        )
    return duplicates, ()


def _small_pictures(
    photographs: Sequence[CheckedPhotograph],
) -> tuple[Sequence[CheckedPhotograph], list[bytes]]:
    """The photographs that were read, and the small picture of each."""
    if isinstance(photographs, UnreadPhotographs):
        return (), []
    small = {place: f.thumbnail for place, f in enumerate(photographs) if f.thumbnail is not None}
    return [photographs[place] for place in small], list(small.values())


def _passing(dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]) -> set[str]:
    """The photographs that are named; raises as `unallowed_leaks`."""
    known = known_names(dataset) if allowed else set()
    for name in allowed:
        if name not in known:
            raise DatasetError(
                f"'{name}' is named in data.allowed_leaks (or --allow-leak), but no photograph and no group "
                f"is named so. {nearest_known(name, known)}"
            )
    by_name = records_by_name([photograph.record for photograph in photographs] if allowed else [])
    return {record.name for name in allowed for record in by_name.get(name, ())}


def warn_of_near_leaks(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> list[NearLeak]:
    """Prints a warning that names some of them, and returns `near_leaks`."""
    small = _small_pictures(photographs)[1]
    if len(small) > MAX_PHOTOGRAPHS:
        print(f"warning: {_too_many(small)}", file=sys.stderr)
    leaks = near_leaks(dataset, photographs, allowed)
    if leaks:
        print(f"warning: {_describe_near(leaks)}", file=sys.stderr)
    return leaks


def raise_if_unusable(
    dataset: Dataset, checked: CheckedDataset, *, allowed_leaks: Sequence[str] = (), skip_broken: bool = False
) -> None:
    """Refuses pictures that lie in more than one split, and problems unless they are to be skipped.

    Takes names as `unallowed_leaks`.

    Raises:
        DatasetError: If there are any; one error lists all problems and all leaks that are not allowed.
    """
    problems = () if skip_broken else checked.dataset.problems
    leaks = unallowed_leaks(dataset, checked.photographs, allowed_leaks)
    reports = [describe_problems(problems)] if problems else []
    reports += [_describe(leaks)] if leaks else []
    if reports:
        raise DatasetError("\n".join(reports))


def _describe(leaks: Sequence[Leak]) -> str:
    """How many there are, one line each, and what to do."""
    many = len(leaks) != 1
    return "\n".join(
        [
            f"{len(leaks)} picture{'s lie' if many else ' lies'} in different splits:",
            *(f"  {format_duplicates(leak)}" for leak in leaks),
            "Put equal pictures into one split (python -m datasets split does so), remove all but one, or "
            "name the photographs or their groups in data.allowed_leaks (training) or with --allow-leak "
            "(python -m datasets inspect, pack).",
        ]
    )


def format_duplicates(same: Sequence[CheckedPhotograph]) -> str:
    """Names equal pictures on one line, each with its split."""
    return " = ".join(
        f"{photograph.record.name} ({photograph.record.split or 'left out'})" for photograph in same
    )


def _describe_near(leaks: Sequence[NearLeak]) -> str:
    """How many photographs have one, some of the pairs, and what to do."""
    count = len({photograph.record.name for leak in leaks for photograph in leak[:2]})
    rest = len(leaks) - MAX_LISTED
    return "\n".join(
        [
            f"{count} photographs have a near twin in another split, so that results may look too good:",
            *(f"  {format_near_leak(leak)}" for leak in leaks[:MAX_LISTED]),
            *([f"  and {rest} pair{'s' * (rest > 1)} more"] if rest > 0 else []),
            "Keep near twins in one split (python -m datasets split --group-twins); python -m datasets "
            "inspect --twins FILE lists all pairs. If they show different things, name the photographs or "
            "their groups in data.allowed_leaks (training) or with --allow-leak (python -m datasets inspect, "
            "pack).",
        ]
    )


def format_near_leak(leak: NearLeak) -> str:
    """Names near twins on one line, each with its split."""
    one, other = (f"{photograph.record.name} ({photograph.record.split})" for photograph in leak[:2])
    return f"{one} ~ {other}, {leak.correlation:.2f}"


def _too_many(small: Sequence[bytes]) -> str:
    return f"Near twins are looked for among {MAX_PHOTOGRAPHS} photographs at most; the set has {len(small)}."
