"""Which class a photograph has that shows defects of several."""

from collections import defaultdict
from collections.abc import Iterable

from datasets.annotations.drawn_mask import Shape


def largest_class(parts: Iterable[tuple[int, Shape]]) -> int:
    """The label whose shapes cover most pixels together; of equal ones the lowest.

    Args:
        parts: Label and shape of each defect; at least one.
    """
    areas_px: dict[int, float] = defaultdict(float)
    for label, shape in parts:
        areas_px[label] += shape.area_px
    return min(areas_px, key=lambda label: (-areas_px[label], label))
