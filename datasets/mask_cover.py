"""Finds sets whose masks are inverted: white where the photographs are good."""

from datasets.annotations.computed_mask import source_files
from datasets.checked_photograph import CheckedDataset, CheckedPhotograph, UnreadPhotographs
from datasets.problems import list_names
from segdec.errors import DatasetError

LARGE_SHARE = 0.5
"""Share of a photograph's pixels. Even large defects rarely cover more."""


def check_mask_cover(checked: CheckedDataset, *, decided: bool) -> list[str]:
    """Returns a warning if some mask files mark most of their photograph as defective.

    Raises:
        DatasetError: If most of them do, unless the user has `decided` whether masks are inverted.
    """
    if isinstance(checked.photographs, UnreadPhotographs):
        return []
    shares = {photograph.item.name: _share(photograph) for photograph in checked.photographs}
    known = {name: share for name, share in shares.items() if share is not None}
    large = {name: share for name, share in known.items() if share > LARGE_SHARE}
    if not large:
        return []
    if 2 * len(large) <= len(known):
        return [
            f"Masks that mark more than {LARGE_SHARE:.0%} of their photograph: {list_names(list(large))}. "
            "Check whether they are inverted: white where the part is good."
        ]
    if decided:
        return []
    name = next(iter(large))
    raise DatasetError(
        f"{len(large)} of {len(known)} masks mark more than {LARGE_SHARE:.0%} of their photograph as "
        f"defective (the first: {name}, {large[name]:.0%}). Expected values above 0 on defects only. If the "
        "masks are white where the part is good, give --invert-masks (python -m training run: "
        "--data.invert-masks true); if the defects are that large, --no-invert-masks (--data.invert-masks "
        "false)."
    )


def _share(photograph: CheckedPhotograph) -> float | None:
    """Share of the defect pixels; None without a mask file."""
    item = photograph.item
    if item.label == 0 or photograph.defect_px is None:
        return None
    if not source_files(item.mask_file):
        return None
    return photograph.defect_px / (photograph.height * photograph.width)
