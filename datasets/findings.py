"""What is unusual about single photographs of a data set, for a person who decides about them."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from datasets.causes import Cause
from datasets.checked_photograph import CheckedDataset, CheckedPhotograph, find_duplicates, is_flat
from datasets.leaks import near_duplicates
from datasets.near_duplicates import MAX_PHOTOGRAPHS, MIN_PHOTOGRAPHS
from segdec.runtime.files import write_text_atomic

FindingKind = Literal["problem", "equal", "near_duplicates", "size", "one_colour"]

USUAL_SIZE = 0.5
"""Share of the photographs that have the most frequent size, above which other sizes are unusual."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        kind: `problem`: it cannot be used; `equal`: equal pictures; `near_duplicates`: almost equal ones.
        names: The photographs.
        text: What was found.
        cause: What the text is about, for other languages; None: it is shown as it is.
    """

    kind: FindingKind
    names: tuple[str, ...]
    text: str
    cause: Cause | None = None


def list_findings(checked: CheckedDataset) -> list[Finding]:
    """Returns all findings about a checked data set, the most serious kind first.

    Near duplicates are searched among 10 to 10,000 photographs; those of one group are no finding.
    """
    problems = [Finding("problem", (each.name,), each.text, each.cause) for each in checked.dataset.problems]
    return [*problems, *_duplicates(checked), *_sizes(checked), *_one_colour(checked)]


def write_findings(path: Path, findings: Sequence[Finding]) -> None:
    """Writes findings as JSON lines with the keys kind, names, text and cause."""
    write_text_atomic(path, "".join(json.dumps(asdict(finding)) + "\n" for finding in findings))


def _duplicates(checked: CheckedDataset) -> Iterator[Finding]:
    equal = [_names(same) for same in find_duplicates(checked.photographs)]
    for names in equal:
        text = "These photographs have equal pixels. Keep one of them."
        yield Finding("equal", names, text, Cause("equal_photographs"))
    if not MIN_PHOTOGRAPHS <= len(checked.photographs) <= MAX_PHOTOGRAPHS:
        return
    for cluster in near_duplicates(checked.photographs):
        is_together = len({each.item.group for each in cluster}) == 1
        if not is_together and _names(cluster) not in equal:
            text = (
                "These photographs are almost equal. If they show one part, give them the same part, so that "
            )
            text += "all of them are then in one split."
            yield Finding("near_duplicates", _names(cluster), text, Cause("near_duplicates"))


def _names(photographs: Sequence[CheckedPhotograph]) -> tuple[str, ...]:
    return tuple(sorted(photograph.item.name for photograph in photographs))


def _sizes(checked: CheckedDataset) -> Iterator[Finding]:
    sizes = Counter((each.height, each.width) for each in checked.photographs)
    if not sizes:
        return
    (height, width), count = sizes.most_common(1)[0]
    if count <= USUAL_SIZE * len(checked.photographs):
        return
    for each in checked.photographs:
        if (each.height, each.width) != (height, width):
            text = f"It has {each.width}×{each.height} pixels, most photographs {width}×{height}."
            values = {"size": f"{each.width}×{each.height}", "usual": f"{width}×{height}"}
            yield Finding("size", (each.item.name,), text, Cause("unusual_size", values))


def _one_colour(checked: CheckedDataset) -> Iterator[Finding]:
    for each in checked.photographs:
        if each.blank or is_flat(each):
            text = "It shows one colour and nothing else."
            yield Finding("one_colour", (each.item.name,), text, Cause("one_colour"))
