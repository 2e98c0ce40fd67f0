"""Judges photographs by an inspection plan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.config import ModelConfig
from segdec.errors import ConfigError, ImageError
from segdec.inference.postprocessing import Prediction
from segdec.plan.defects import FoundDefect, find_defects
from segdec.plan.findings import Finding, JudgedDefect, Judgement
from segdec.plan.inspection_plan import Plan
from segdec.plan.mask_parts import Mask, MaskPart, connected_parts
from segdec.plan.quantities import Scale
from segdec.plan.rule_findings import RuleSet
from segdec.plan.severity import RANKS, worst
from segdec.plan.size_intervals import MeasuredSizes
from segdec.plan.zone_map import ZoneMap
from segdec.runtime.identifiers import REVIEW

MAX_DEFECTS, MAX_PIXELS = 200, 2**26
"""Limits on the defects of a photograph that are measured, and on the pixels of their windows.

One with more is for review: measuring all would take too long.
"""


class PlanJudge:
    """Judges the predictions of one model by one plan.

    Args:
        plan: The plan.
        config: The model.

    Attributes:
        plan: As given.

    Raises:
        ConfigError: If a rule names a class that the model does not find, or a zone is partly outside the
            inspected area or contains no pixel.
    """

    def __init__(self, plan: Plan, config: ModelConfig) -> None:
        self.plan = plan
        self._config = config
        self._size = plan.photograph.height, plan.photograph.width
        _check_classes(plan, config)
        self._ignored: Mask = np.zeros(self._size, np.bool_)
        self._ruled: Mask = np.zeros(self._size, np.bool_)
        for name, zone in plan.zones.items():
            if zone.ignored:
                self._ignored |= plan.draw_zone(name)
        self._plane = plan.photograph.plane
        self._pixel = 1.0 if self._plane is None else self._plane.photograph_px
        self._names = tuple(name for name, zone in plan.zones.items() if not zone.ignored)
        areas: list[int] = []
        self._map = ZoneMap((self._draw_inspected(name, areas) for name in self._names), *self._size)
        self._covered = self._ignored | self._ruled
        self._border = _find_border(config.input.inspected_area(*self._size), *self._size)
        self._rules = [RuleSet(None, plan.part.rules, "accept", Scale(plan.photograph.scale))]
        for name, area in zip(self._names, areas, strict=True):
            zone = plan.zones[name]
            self._rules.append(RuleSet(name, zone.rules, zone.otherwise, Scale(plan.photograph.scale, area)))

    def judge(self, prediction: Prediction, *, unlike: bool) -> Judgement:
        """Returns the verdict of the plan about a photograph.

        A photograph that the model calls good is good. `unlike` is whether it is unlike those of the
        training: it is then not good.

        Raises:
            ImageError: With the code `plan_size`, if the photograph has another size than the plan.
        """
        self._check_size(prediction)
        if prediction.label == self._config.classes[0] and not unlike:
            return Judgement(prediction.label, "accept")
        defects, too_many = self._find(prediction)
        findings = [
            *self._about_photograph(prediction, bool(defects)),
            *self._about_outside(defects),
            *(finding for rules in self._rules for finding in rules.apply(defects)),
        ]
        if too_many:
            findings.append(Finding("review", "too_many_defects", True))
        if unlike:
            findings.append(Finding("review", "unlike_training", True))
        if prediction.score < prediction.threshold:
            findings = [replace(finding, certain=False) for finding in findings]
        return _decide(findings, tuple(defects), prediction)

    def _check_size(self, prediction: Prediction) -> None:
        if prediction.mask.shape != self._size:
            (height, width), (rows, columns) = self._size, prediction.mask.shape
            raise ImageError(
                f"The photograph has {columns} × {rows} px, but the plan '{self.plan.name}' is for "
                f"{width} × {height} px. Expected that size, since zones and scale are in its pixels.",
                code="plan_size",
            )

    def _draw_inspected(self, name: str, areas: list[int]) -> Mask:
        """Returns the pixels of a zone, and appends its area in the plane to `areas`."""
        mask, area = self.plan.draw_zone(name), self._config.input.inspected_area(*self._size)
        areas.append(sum(int(self._flatten(part).pixels.sum()) for part in connected_parts(mask)))
        self._ruled |= mask
        outside = 0 if area is None else int(np.count_nonzero(mask & (area == 0)))
        if outside:
            raise ConfigError(
                f"{outside} of {np.count_nonzero(mask)} pixels of the zone '{name}' are outside the area "
                "that the model inspects. Expected a zone inside it: change the zone, or train with another "
                "area."
            )
        return mask

    def _flatten(self, part: MaskPart) -> MaskPart:
        """Returns a part of the photograph in the plane of the part."""
        return part if self._plane is None else self._plane.flatten(part)

    def _measure(self, found: FoundDefect, flattened: Callable[[MaskPart], MaskPart]) -> JudgedDefect:
        """Measures a defect; `flattened` is `_flatten` with a cache."""
        zones, possible_zones = self._map.touched(found.part), self._map.touched(found.possible)
        outside: bool | None = not zones and not found.part.is_within(self._ignored)
        if not zones and not outside and not found.possible.is_within(self._covered):
            outside = None
        cut = found.possible.touches(self._border)
        flat, flat_possible = self._flatten(found.part), flattened(found.possible)
        return JudgedDefect(
            found.part.bbox,
            flat,
            flat_possible,
            found.classes,
            found.score_max,
            MeasuredSizes.estimate(
                flat.sizes, flat_possible.sizes, self._config.size_errors, cut=cut, pixel=self._pixel
            ),
            tuple(self._names[number] for number in zones),
            tuple(self._names[number] for number in possible_zones if number not in zones),
            outside,
        )

    def _find(self, prediction: Prediction) -> tuple[list[JudgedDefect], bool]:
        """Returns the largest defects, measured, and whether there are more than can be measured."""
        defects: list[JudgedDefect] = []
        flattened, pixels = cache(self._flatten), 0.0
        for found in find_defects(prediction, self._config):
            pixels += self._pixel**2 * (found.part.pixels.size + found.possible.pixels.size)
            if len(defects) == MAX_DEFECTS or pixels > MAX_PIXELS:
                return defects, True
            defects.append(self._measure(found, flattened))
        return defects, False

    def _about_photograph(self, prediction: Prediction, has_defects: bool) -> Iterator[Finding]:
        lowest = prediction.threshold if prediction.review_threshold is None else prediction.review_threshold
        in_mask = has_defects and prediction.mask_threshold >= self._config.thresholds.mask
        if prediction.score >= lowest and not in_mask:
            yield Finding(self.plan.otherwise.unexplained, "unexplained", True)

    def _about_outside(self, defects: Sequence[JudgedDefect]) -> Iterator[Finding]:
        for number, defect in enumerate(defects):
            if defect.outside is not False:
                then, certain = self.plan.otherwise.outside_zones, defect.outside is True
                yield Finding(then, "outside_zones", certain, defect=number, classes=defect.classes)


def _decide(
    findings: Iterable[Finding], defects: tuple[JudgedDefect, ...], prediction: Prediction
) -> Judgement:
    relevant = [finding for finding in findings if finding.severity != "accept"]
    relevant.sort(key=lambda finding: _precedence(finding, defects))
    severity = worst(*(finding.severity for finding in relevant))
    good, *classes = prediction.probabilities
    if severity in ("accept", "note"):
        label = good
    elif severity == "review":
        label = REVIEW
    else:
        likely = max(classes, key=prediction.probabilities.__getitem__)
        label = relevant[0].classes[0] if relevant[0].classes else likely
    return Judgement(label, severity, tuple(relevant), defects)


def _find_border(area: NDArray[np.uint8] | None, height: int, width: int) -> Mask:
    """Returns the inspected pixels [height, width] at the border of photograph or inspected area."""
    inspected = np.ones((height, width), np.uint8) if area is None else (area > 0).view(np.uint8)
    inner = cv2.erode(inspected, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray((inspected > 0) & (inner == 0))


def _precedence(finding: Finding, defects: Sequence[JudgedDefect]) -> tuple[int, bool, int, int]:
    """Returns a key that sorts findings: the worst, certain ones, large defects, zones with most of them."""
    zones = () if finding.defect is None else (*defects[finding.defect].zones,)
    place = zones.index(finding.zone) if finding.zone in zones else len(zones)
    defect = -1 if finding.defect is None else finding.defect
    return -RANKS[finding.severity], not finding.certain, defect, place


def _check_classes(plan: Plan, config: ModelConfig) -> None:
    known = config.classes[1:]
    named = [(place, rule.defect) for place, rule in plan.rules() if rule.defect is not None]
    for place, defect in named:
        if defect not in known:
            raise ConfigError(
                f"{place} names the defect '{defect}'. Expected a class of the model: {', '.join(known)}."
            )
    if named and len(known) > 1 and not config.network.mask_classes:
        raise ConfigError(
            f"{named[0][0]} names the defect '{named[0][1]}', but the mask of the model "
            "does not distinguish its classes. Expected a model with a mask for each class "
            "(network.mask_classes), or rules for any defect."
        )
