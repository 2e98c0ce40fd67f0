"""Published splits: those that came with photographs, and how the manifest of a version states them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from segdec.data_set_schemas import Split

SPLITS: tuple[Split, ...] = get_args(Split)
LEFT_OUT: Split = "left_out"
TEST: Split = "test"
NEW: Split = "train"
"""Split of photographs that did not come with one, in a version where others have one."""


class Placement(NamedTuple):
    """What the manifest of a version states about a photograph; an empty value is not stated."""

    split: str
    group: str


def place_photographs(rows: Sequence[Mapping[Any, Any]]) -> list[Placement]:
    """Returns split and group of photographs, given by `name`, `part` and `split`.

    If any has a split, those without one are in that of their part, or else in train. A part that is in
    several splits becomes one group for each: in a manifest a group is in one split.
    """
    groups = [row["part"] or row["name"] for row in rows]
    stated = _words(groups, [row["split"] for row in rows])
    if not stated:
        return [Placement("", row["part"]) for row in rows]
    splits = [_choose(row["split"], stated.get(group, ())) for row, group in zip(rows, groups, strict=True)]
    placed = _words(groups, splits)
    renamed = dict(_rename(placed, {*groups, *(row["name"] for row in rows)}))
    return [
        Placement("" if split == LEFT_OUT else split, renamed.get((group, split), row["part"]))
        for row, group, split in zip(rows, groups, splits, strict=True)
    ]


def _words(groups: Sequence[str], splits: Sequence[str | None]) -> dict[str, set[str]]:
    """The splits of each group that is in any."""
    by_group: dict[str, set[str]] = defaultdict(set)
    for group, split in zip(groups, splits, strict=True):
        if split is not None and split != LEFT_OUT:
            by_group[group].add(split)
    return by_group


def _choose(own: str | None, of_part: Collection[str]) -> str:
    if own is not None:
        return own
    return next(iter(of_part)) if len(of_part) == 1 else NEW


def _rename(placed: Mapping[str, Collection[str]], taken: set[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yields group and split → new group of the groups that are in several splits."""
    for group, words in placed.items():
        for word in sorted(words) if len(words) > 1 else ():
            name = f"{group} ({word})"
            while name in taken:
                name += "*"
            taken.add(name)
            yield (group, word), name
