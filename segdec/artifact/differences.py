"""Compares a photograph with those that a model was trained with."""

from segdec.artifact.manifest import Manifest
from segdec.config import ModelConfig
from segdec.images import PIXELS, Photograph

TOLERANCE = 0.1
"""Relative difference of size or aspect ratio that needs no warning."""


def describe_differences(model: ModelConfig, photograph: Photograph) -> tuple[str, ...]:
    """Returns a warning for each property that no training photograph of the model had, if they are known."""
    trained = model.training_photographs if isinstance(model, Manifest) else None
    if trained is None:
        return ()
    height, width = photograph.pixels.shape[:2]
    size = f"the photograph has {width} × {height} px"
    warnings = []
    if _is_outside(width / height, *trained.aspects):
        ratios = _list_range(*trained.aspects, digits=2)
        warnings.append(
            f"aspect: {size}, width / height = {width / height:.2f}; in training it was {ratios}: defects "
            "may look distorted"
        )
    if _is_outside(height, *trained.heights) or _is_outside(width, *trained.widths):
        sizes = f"{_list_range(*trained.widths)} × {_list_range(*trained.heights)} px"
        warnings.append(f"size: {size}, in training {sizes}: defects may have another size")
    depth, depths = photograph.bit_depth, trained.bit_depths
    if photograph.format != PIXELS and depths and (depth > 8) not in {known > 8 for known in depths}:
        known = " or ".join(map(str, depths))
        warnings.append(f"bit_depth: the file has {depth} bits per channel, in training {known}")
    return tuple(warnings)


def _is_outside(value: float, lowest: float, highest: float) -> bool:
    return not lowest * (1 - TOLERANCE) <= value <= highest * (1 + TOLERANCE)


def _list_range(lowest: float, highest: float, digits: int = 0) -> str:
    low, high = f"{lowest:.{digits}f}", f"{highest:.{digits}f}"
    return low if low == high else f"{low}…{high}"
