"""Where photographs that people have judged go: what was tested and validated must not be learnt."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datasets.checking import CheckedPhotograph
from datasets.folds import Cluster, find_clusters, stratified_group_split
from datasets.leaks import near_duplicates_for_split
from datasets.sample import Record, Split, is_unlocalized
from datasets.splitting import SPLITS

SHARES = (0.6, 0.2, 0.2)
"""Of the parts that the run has not seen: to train, to validate, and held back to test both networks."""


@dataclass(frozen=True)
class ReviewedSplit:
    """What becomes of the photographs that a run has not seen.

    Attributes:
        splits: By name, of those that take part.
        replaced: Old training photographs of which the same picture was judged anew: that counts now.
        equal: Left out, since the run is validated or tested on the same picture.
        contradicted: Those of them that people call something else than the data set does.
        torn: Left out, since their part is on one side and a near twin on another.
        placeless: Left out of training, which needs to know where their defects are.
        kin: How many are validated or tested on because a photograph of their part, or a twin, is.
        notes: What is to be said of near twins.
    """

    splits: Mapping[str, Split]
    replaced: frozenset[str]
    duplicates: tuple[str, ...]
    label_conflicts: tuple[str, ...]
    conflicting: tuple[str, ...]
    unlocalized: tuple[str, ...]
    related: int
    notes: tuple[str, ...]


def split_reviewed(
    old: Sequence[CheckedPhotograph],
    reviewed: Sequence[CheckedPhotograph],
    *,
    seed: int = 0,
    needs_places: bool = False,
) -> ReviewedSplit:
    """Divides photographs that people have judged; groups, equal pictures and near twins stay on their side.

    Args:
        old: Photographs of the run, each with its split, which it keeps.
        reviewed: Those that it has not seen.
        seed: Decides between equals.
        needs_places: Whether a defect whose place nobody knows cannot be learnt from.
    """
    same = defaultdict(list)
    for photograph in old:
        same[photograph.digest].append(photograph.record)
    known = {p.record.name: p for p in reviewed if _is_judged_on(same[p.digest])}
    fresh = [photograph for photograph in reviewed if photograph.record.name not in known]
    twins, notes = near_duplicates_for_split((*old, *fresh))
    splits, related, conflicting = _place(old, fresh, find_clusters((*old, *fresh), twins), seed)
    unplaced = _without_places(fresh, splits) if needs_places else ()
    return ReviewedSplit(
        splits={name: split for name, split in splits.items() if name not in unplaced},
        replaced=frozenset(record.name for p in fresh for record in same[p.digest]),
        duplicates=tuple(sorted(known)),
        label_conflicts=tuple(sorted(name for name, p in known.items() if _contradicts(p, same[p.digest]))),
        conflicting=conflicting,
        unlocalized=unplaced,
        related=related,
        notes=notes,
    )


def _is_judged_on(records: Sequence[Record]) -> bool:
    return any(record.split in SPLITS[1:] for record in records)


def _contradicts(photograph: CheckedPhotograph, records: Sequence[Record]) -> bool:
    return any(record.label != photograph.record.label for record in records)


def _place(
    old: Sequence[CheckedPhotograph],
    fresh: Sequence[CheckedPhotograph],
    clusters: Sequence[Cluster],
    seed: int,
) -> tuple[dict[str, Split], int, tuple[str, ...]]:
    """The split of each; how many are held because of their kin; and the names of those that fit nowhere."""
    own = {p.record.group: p.record.split for p in old if p.record.split is not None}
    sides = {cluster: _side([own[group] for group in cluster.groups if group in own]) for cluster in clusters}
    new = stratified_group_split([cluster for cluster, side in sides.items() if side is None], SHARES, seed)
    sides |= {cluster: split for split, part in zip(SPLITS, new, strict=True) for cluster in part}
    of_group = {group: side for cluster, side in sides.items() for group in cluster.groups}
    dealt = {group for part in new for cluster in part for group in cluster.groups}
    splits: dict[str, Split] = {}
    related, conflicting = 0, []
    for record in (photograph.record for photograph in fresh):
        side = of_group[record.group]
        if side is None or own.get(record.group, side) != side:
            conflicting.append(record.name)
            continue
        splits[record.name] = side
        related += side != "train" and record.group not in dealt
    return splits, related, tuple(conflicting)


def _side(splits: Sequence[Split]) -> Split | None:
    """The side of photographs that have kin on these: what is tested or validated must not be learnt."""
    return next((split for split in reversed(SPLITS) if split in splits), None)


def _without_places(fresh: Sequence[CheckedPhotograph], splits: Mapping[str, Split]) -> tuple[str, ...]:
    records = (photograph.record for photograph in fresh)
    return tuple(r.name for r in records if splits.get(r.name) == "train" and is_unlocalized(r))
