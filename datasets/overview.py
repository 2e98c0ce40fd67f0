"""Statistics of a data set as text: counts, sizes, defect areas, and equal photographs."""

from collections.abc import Sequence

import numpy as np

from datasets.checked_photograph import CheckedPhotograph, find_duplicates
from datasets.leaks import format_duplicates
from datasets.sample import Dataset
from datasets.splitting import SPLITS

LEFT_OUT = "left out"
NO_DEFECT = (
    "No photograph shows a defect. Training can use a memory of good surface or synthetic defects: set "
    "network.memory or augmentation.synthetic above 0."
)
DECILES = (0, 10, 50, 90, 100)


def describe(dataset: Dataset, photographs: Sequence[CheckedPhotograph]) -> str:
    """Returns counts, sizes, defect areas and equal photographs; needs at least one photograph."""
    counts, areas = _counts(dataset.classes, photographs), _areas(dataset.classes, photographs)
    return "\n\n".join([counts, _sizes(photographs), areas, _duplicates(photographs)])


def _counts(classes: tuple[str, ...], photographs: Sequence[CheckedPhotograph]) -> str:
    names = [*SPLITS, LEFT_OUT]
    width = max(len(name) for name in (*classes, "photographs"))
    lines = [f"{'photographs':<{width}}" + "".join(f"{name:>10}" for name in (*names, "all"))]
    for label, name in enumerate(classes):
        of_class = [_split(photograph) for photograph in photographs if photograph.item.label == label]
        lines.append(_count_line(name, width, of_class))
    lines.append(_count_line("all", width, [_split(photograph) for photograph in photographs]))
    groups = {name: len({f.item.group for f in photographs if _split(f) == name}) for name in names}
    total = len({photograph.item.group for photograph in photographs})
    lines.append(f"{'groups':<{width}}" + "".join(f"{n:>10}" for n in (*groups.values(), total)))
    return "\n".join(lines)


def _count_line(name: str, width: int, splits: list[str]) -> str:
    counts = [splits.count(split) for split in (*SPLITS, LEFT_OUT)]
    return f"{name:<{width}}" + "".join(f"{count:>10}" for count in (*counts, len(splits)))


def _sizes(photographs: Sequence[CheckedPhotograph]) -> str:
    lines = [f"{'size':<12}{'min':>8}{'median':>8}{'max':>8}"]
    for name, values in (
        ("width, px", [photograph.width for photograph in photographs]),
        ("height, px", [photograph.height for photograph in photographs]),
    ):
        lines.append(f"{name:<12}{min(values):>8}{np.median(values):>8.0f}{max(values):>8}")
    channels = sorted({photograph.channels for photograph in photographs})
    words = {1: "grey", 3: "colour"}
    return "\n".join([*lines, f"channels: {' and '.join(words[number] for number in channels)}"])


def _areas(classes: tuple[str, ...], photographs: Sequence[CheckedPhotograph]) -> str:
    """Quantiles of the defect area, in pixels and percent of the photograph; or that there is no defect."""
    if not any(photograph.item.label for photograph in photographs):
        return NO_DEFECT
    width = max(len("defect area"), *(len(name) + 4 for name in classes))
    heads = [{0: "min", 50: "median", 100: "max"}.get(q, f"{q} %") for q in DECILES]
    lines = [f"{'defect area':<{width}}" + "".join(f"{head:>10}" for head in heads)]
    for label, name in list(enumerate(classes))[1:]:
        measured = [f for f in photographs if f.item.label == label and f.defect_px]
        if measured:
            areas_px = np.array([f.defect_px for f in measured], np.float64)
            sizes_px = np.array([f.height * f.width for f in measured], np.float64)
            area_px, part = (np.percentile(v, DECILES) for v in (areas_px, 100 * areas_px / sizes_px))
            lines.append(f"{name + ', px':<{width}}" + "".join(f"{value:>10.0f}" for value in area_px))
            lines.append(f"{name + ', %':<{width}}" + "".join(f"{value:>10.3f}" for value in part))
    return "\n".join(lines)


def _duplicates(photographs: Sequence[CheckedPhotograph]) -> str:
    across: list[str] = []
    within: list[str] = []
    for same in find_duplicates(photographs):
        several = len({photograph.item.split for photograph in same} - {None}) > 1
        (across if several else within).append(f"  {format_duplicates(same)}")
    heads = f"equal photographs in different splits: {len(across)}", f"other equal photographs: {len(within)}"
    return "\n".join([heads[0], *across, heads[1], *within])


def _split(photograph: CheckedPhotograph) -> str:
    return photograph.item.split or LEFT_OUT
