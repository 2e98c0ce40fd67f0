"""Compares two versions of a data set."""

from collections import Counter

from api.data_sets.schemas import ComparedPhotograph, VersionComparison
from api.data_sets.versions import Entry, list_files, read_manifest

MAX_SHOWN = 500
"""Photographs in an answer."""
IN_BOTH = ("relabelled", "masks_changed", "splits_changed", "parts_changed", "renamed")
KINDS = ("added", "removed", *IN_BOTH, "unchanged")
NumberedManifest = tuple[int, bytes]
"""Number and manifest of a version."""


def compare_versions(first: NumberedManifest, second: NumberedManifest) -> VersionComparison:
    """Returns in which photographs two versions differ; each is given by its number and manifest."""
    before, after = (
        {entry["image"]: entry for entry in read_manifest(content)} for _, content in (first, second)
    )
    counts: Counter[str] = Counter()
    differing = []
    for image in before.keys() | after.keys():
        change = _compare(before.get(image), after.get(image))
        counts.update(_kinds(change))
        if change is not None:
            differing.append(change)
    differing.sort(key=lambda change: (change.name, change.sha256))
    return VersionComparison(
        from_version=first[0],
        to_version=second[0],
        **{kind: counts[kind] for kind in KINDS},
        photographs=differing[:MAX_SHOWN],
    )


def _compare(before: Entry | None, after: Entry | None) -> ComparedPhotograph | None:
    """Returns the change of a photograph; None if it has none."""
    shown = after or before
    if shown is None or before == after:
        return None
    first, second = before or shown, after or shown
    _, sha256 = next(list_files(shown))
    return ComparedPhotograph(
        sha256=sha256.hex(),
        name=shown["name"],
        name_before=before and before["name"],
        label_before=before and before["label"],
        label_after=after and after["label"],
        mask_changed=_mask_of(first) != _mask_of(second),
        split_changed=first.get("split") != second.get("split"),
        part_changed=first.get("group") != second.get("group"),
    )


def _mask_of(entry: Entry) -> tuple[str | None, ...]:
    return entry.get("class_mask"), entry.get("supervision")


def _kinds(change: ComparedPhotograph | None) -> list[str]:
    if change is None:
        return ["unchanged"]
    if change.label_before is None:
        return ["added"]
    if change.label_after is None:
        return ["removed"]
    changed = {
        "relabelled": change.label_before != change.label_after,
        "masks_changed": change.mask_changed,
        "splits_changed": change.split_changed,
        "parts_changed": change.part_changed,
        "renamed": change.name_before != change.name,
    }
    return [kind for kind, is_changed in changed.items() if is_changed]
