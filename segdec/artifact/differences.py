"""Compares a photograph with those that a model was trained with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from segdec.artifact.manifest import Manifest
from segdec.artifact.training_photographs import TrainingPhotographs
from segdec.config import InputConfig, ModelConfig
from segdec.errors import ImageError
from segdec.images import PIXELS, Photograph
from segdec.photograph_check import (
    PROPORTIONS,
    SURFACE,
    PhotographLimits,
    Vector,
    measure_photograph,
    measure_proportions,
)
from segdec.photograph_reasons import OTHER_PART, OTHER_SIZE, find_reason, is_refused

TOLERANCE = 0.1
"""Relative difference of size or aspect ratio that needs no warning. Photographs that are not scaled are
refused if their size differs by twice that."""

UNLIKE_TRAINING = "unlike_training"
"""Code of the error, and beginning of the warning."""

UnlikeAction = Literal["reject", "warn"]
"""What happens to a photograph that certainly shows something else than those of the training."""


@dataclass(frozen=True)
class PhotographComparison:
    """How a photograph compares with those of the training.

    Attributes:
        reason: How it is unlike them, for example `darker than those of the training`; None if it is like
            them or was not checked.
        refused: Whether it certainly shows something else.
        distances: Distance of each measure to them as a multiple of its limit; empty if it was not measured.
        measured: These measures.
        warnings: Properties of the file that none of them had.
    """

    reason: str | None = None
    refused: bool = False
    distances: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, Vector] = field(default_factory=dict, compare=False)
    warnings: tuple[str, ...] = ()

    @property
    def beyond_limits(self) -> dict[str, Vector]:
        """The measures beyond their limits; empty if the photograph certainly shows something else."""
        if self.refused:
            return {}
        return {name: self.measured[name] for name, distance in self.distances.items() if distance > 1}

    def check(self, unlike: UnlikeAction = "reject") -> tuple[str, ...]:
        """Returns all warnings; `unlike`: whether a refused photograph is an error or has a warning.

        Raises:
            ImageError: With the code `unlike_training`.
        """
        if self.reason is None:
            return self.warnings
        if self.refused and unlike == "reject":
            defect = ", or shows a very large defect" if self.reason in OTHER_PART else ""
            raise ImageError(
                f"The photograph is {self.reason}{defect}. Expected one like those of the training: check "
                "light, camera and part.",
                code=UNLIKE_TRAINING,
            )
        return f"{UNLIKE_TRAINING}: {self.reason}", *self.warnings


def compare_photograph(
    model: ModelConfig, photograph: Photograph, prepared: NDArray[np.uint8]
) -> PhotographComparison:
    """Compares a photograph with those that the model was trained with, if its manifest knows them.

    `prepared` is the network's input, uint8 [h, w, c].
    """
    trained = _training_photographs(model)
    if trained is None:
        return PhotographComparison()
    comparison = compare_pixels(model, (photograph.pixels.shape[0], photograph.pixels.shape[1]), prepared)
    warnings = *_describe_size(trained, photograph), *_describe_depth(trained, photograph)
    return replace(comparison, warnings=warnings)


def compare_pixels(
    model: ModelConfig, size: tuple[int, int], prepared: NDArray[np.uint8]
) -> PhotographComparison:
    """Compares a photograph of height and width `size`, px, as `compare_photograph`, but without its file."""
    trained = _training_photographs(model)
    return PhotographComparison() if trained is None else compare_with(trained, model.input, size, prepared)


def compare_with(
    trained: TrainingPhotographs, config: InputConfig, size: tuple[int, int], prepared: NDArray[np.uint8]
) -> PhotographComparison:
    """Compares a photograph of height and width `size`, px, with the photographs `trained`.

    `prepared` is the network's input, uint8 [h, w, c], by `config`.
    """
    limits, (height, width) = trained.limits, size
    if limits is None:
        return PhotographComparison()
    measured = {**measure_photograph(prepared), PROPORTIONS: measure_proportions(height, width)}
    comparison = _compare_measures(limits, measured)
    scaled = config.policy not in ("native", "tile")
    if comparison.refused or scaled or not _has_other_size(trained, height, width):
        return comparison
    refused = _has_other_size(trained, height, width, 2 * TOLERANCE)
    return replace(comparison, reason=OTHER_SIZE, refused=refused)


def compare_surface(
    model: ModelConfig, surface: NDArray[np.float32] | None, comparison: PhotographComparison
) -> PhotographComparison:
    """Returns `comparison`, by `compare_photograph`, with the network's `surface` [D], see
    `segdec.engines.Logits`.
    """
    trained = _training_photographs(model)
    if surface is None or trained is None or trained.limits is None:
        return comparison
    measured = {**comparison.measured, SURFACE: surface.astype(np.float64)}
    joint = _compare_measures(trained.limits, measured)
    if comparison.reason == OTHER_SIZE and not joint.refused:
        joint = replace(joint, reason=OTHER_SIZE, refused=comparison.refused)
    return replace(joint, warnings=comparison.warnings)


def _compare_measures(limits: PhotographLimits, measured: Mapping[str, Vector]) -> PhotographComparison:
    distances = limits.distances(measured)
    reason = find_reason(limits, measured, distances)
    refused = reason is not None and is_refused(limits, measured)
    return PhotographComparison(reason, refused, distances, measured)


def _training_photographs(model: ModelConfig) -> TrainingPhotographs | None:
    return model.training_photographs if isinstance(model, Manifest) else None


def _describe_size(trained: TrainingPhotographs, photograph: Photograph) -> list[str]:
    height, width = photograph.pixels.shape[:2]
    size = f"the photograph has {width} × {height} px"
    warnings = []
    if _is_outside(width / height, *trained.aspects):
        ratios = _list_range(*trained.aspects, digits=2)
        warnings.append(
            f"aspect: {size}, width / height = {width / height:.2f}; in training it was {ratios}: defects "
            "may look distorted"
        )
    if _has_other_size(trained, height, width):
        sizes = f"{_list_range(*trained.widths)} × {_list_range(*trained.heights)} px"
        warnings.append(f"size: {size}, in training {sizes}: defects may have another size")
    return warnings


def _describe_depth(trained: TrainingPhotographs, photograph: Photograph) -> list[str]:
    depth, depths = photograph.bit_depth, trained.bit_depths
    if photograph.format == PIXELS or not depths or (depth > 8) in {known > 8 for known in depths}:
        return []
    known = " or ".join(map(str, depths))
    return [f"bit_depth: the file has {depth} bits per channel, in training {known}"]


def _has_other_size(
    trained: TrainingPhotographs, height: int, width: int, tolerance: float = TOLERANCE
) -> bool:
    return _is_outside(height, *trained.heights, tolerance) or _is_outside(width, *trained.widths, tolerance)


def _is_outside(value: float, lowest: float, highest: float, tolerance: float = TOLERANCE) -> bool:
    return not lowest * (1 - tolerance) <= value <= highest * (1 + tolerance)


def _list_range(lowest: float, highest: float, digits: int = 0) -> str:
    low, high = f"{lowest:.{digits}f}", f"{highest:.{digits}f}"
    return low if low == high else f"{low}…{high}"
