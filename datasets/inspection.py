"""What a data set holds, as a table: counts, sizes, defect areas, and photographs that occur twice."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from datasets.reading import read
from datasets.sample import Dataset, Record, Sample
from datasets.splitting import SPLITS

LEFT_OUT = "left out"
DECILES = (0, 10, 50, 90, 100)

Progress = Callable[[Sequence[Record]], Iterable[Record]]


@dataclass(frozen=True)
class Finding:
    """What inspection keeps of one photograph.

    Attributes:
        record: The photograph.
        height: Pixels.
        width: Pixels.
        channels: 1 (grey) or 3 (colour).
        defect_px: Pixels of the mask that show a defect.
        digest: SHA-256 of size and pixels: equal for the same picture in another file format.
    """

    record: Record
    height: int
    width: int
    channels: int
    defect_px: int
    digest: str

    @property
    def split(self) -> str:
        """The split, in words."""
        return self.record.split or LEFT_OUT


def inspect(
    dataset: Dataset, progress: Progress = iter, *, white_level: int | None = None
) -> tuple[Finding, ...]:
    """Read every photograph and mask once.

    Args:
        dataset: What to read.
        progress: Shows how far it is.
        white_level: Value of a 16-bit photograph that becomes 255.

    Raises:
        ImageError: When a file cannot be read.
        DatasetError: When a mask is not of its photograph's size.
    """
    return tuple(_look(record, white_level) for record in progress(dataset.records))


def duplicates(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Photographs of equal pixels, one tuple for each picture that is there more than once."""
    same: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        same[finding.digest].append(finding)
    return [tuple(found) for found in same.values() if len(found) > 1]


def describe(dataset: Dataset, findings: Sequence[Finding]) -> str:
    """The table: counts, sizes, defect areas and duplicates."""
    blocks = [
        _counts(dataset.classes, findings),
        _sizes(findings),
        _areas(dataset.classes, findings),
        _duplicates(findings),
    ]
    return "\n\n".join(blocks)


def _look(record: Record, white_level: int | None) -> Finding:
    sample = read(record, white_level=white_level)
    height, width, channels = sample.image.shape
    return Finding(
        record=record,
        height=height,
        width=width,
        channels=channels,
        defect_px=0 if sample.mask is None else int(np.count_nonzero(sample.mask)),
        digest=content_digest(sample),
    )


def content_digest(sample: Sample) -> str:
    """SHA-256 of the size and the pixels of the photograph, in hex."""
    digest = hashlib.sha256(repr(sample.image.shape).encode())
    digest.update(np.ascontiguousarray(sample.image).data)
    return digest.hexdigest()


def _counts(classes: tuple[str, ...], findings: Sequence[Finding]) -> str:
    names = [*SPLITS, LEFT_OUT]
    width = max(len(name) for name in (*classes, "photographs"))
    lines = [f"{'photographs':<{width}}" + "".join(f"{name:>10}" for name in (*names, "all"))]
    for label, name in enumerate(classes):
        of_class = [finding.split for finding in findings if finding.record.label == label]
        lines.append(_count_line(name, width, of_class))
    lines.append(_count_line("all", width, [finding.split for finding in findings]))
    groups = {name: len({f.record.group for f in findings if f.split == name}) for name in names}
    total = len({finding.record.group for finding in findings})
    lines.append(f"{'groups':<{width}}" + "".join(f"{n:>10}" for n in (*groups.values(), total)))
    return "\n".join(lines)


def _count_line(name: str, width: int, splits: list[str]) -> str:
    counts = [splits.count(split) for split in (*SPLITS, LEFT_OUT)]
    return f"{name:<{width}}" + "".join(f"{count:>10}" for count in (*counts, len(splits)))


def _sizes(findings: Sequence[Finding]) -> str:
    lines = [f"{'size':<12}{'min':>8}{'median':>8}{'max':>8}"]
    for name, values in (
        ("width, px", [finding.width for finding in findings]),
        ("height, px", [finding.height for finding in findings]),
    ):
        lines.append(f"{name:<12}{min(values):>8}{np.median(values):>8.0f}{max(values):>8}")
    channels = sorted({finding.channels for finding in findings})
    words = {1: "grey", 3: "colour"}
    return "\n".join([*lines, f"channels: {' and '.join(words[number] for number in channels)}"])


def _areas(classes: tuple[str, ...], findings: Sequence[Finding]) -> str:
    """Quantiles of the defect area, in pixels and as a part of the photograph."""
    width = max(len("defect area"), *(len(name) + 4 for name in classes))
    heads = [{0: "min", 50: "median", 100: "max"}.get(q, f"{q} %") for q in DECILES]
    lines = [f"{'defect area':<{width}}" + "".join(f"{head:>10}" for head in heads)]
    for label, name in list(enumerate(classes))[1:]:
        found = [finding for finding in findings if finding.record.label == label and finding.defect_px]
        if found:
            area_px = np.percentile([f.defect_px for f in found], DECILES)
            part = np.percentile([100 * f.defect_px / (f.height * f.width) for f in found], DECILES)
            lines.append(f"{name + ', px':<{width}}" + "".join(f"{value:>10.0f}" for value in area_px))
            lines.append(f"{name + ', %':<{width}}" + "".join(f"{value:>10.3f}" for value in part))
    return "\n".join(lines)


def _duplicates(findings: Sequence[Finding]) -> str:
    across: list[tuple[Finding, ...]] = []
    within: list[tuple[Finding, ...]] = []
    for same in duplicates(findings):
        assigned = {finding.split for finding in same} - {LEFT_OUT}
        (across if len(assigned) > 1 else within).append(same)
    return "\n".join(
        [
            f"equal photographs in different splits: {len(across)}",
            *map(_names, across),
            f"other equal photographs: {len(within)}",
            *map(_names, within),
        ]
    )


def _names(same: tuple[Finding, ...]) -> str:
    return "  " + " = ".join(f"{finding.record.name} ({finding.split})" for finding in same)
