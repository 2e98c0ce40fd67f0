"""Judges photographs by an inspection plan."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from segdec.config import ModelConfig
from segdec.errors import ConfigError, ImageError
from segdec.inference.postprocessing import Prediction
from segdec.plan.defects import FoundDefect, find_defects
from segdec.plan.findings import Finding, JudgedDefect, Judgement
from segdec.plan.mask_parts import Mask
from segdec.plan.plan_file import Plan
from segdec.plan.rule_findings import ZoneRules
from segdec.plan.severity import RANKS, worst
from segdec.plan.size_intervals import MeasuredSizes
from segdec.plan.zones import ZoneMap
from segdec.runtime.identifiers import REVIEW

MAX_DEFECTS = 200
"""A photograph with more defects is for review: measuring all would take too long."""


class PlanJudge:
    """Judges the predictions of one model by one plan.

    Args:
        plan: The plan.
        config: The model.

    Attributes:
        plan: As given.

    Raises:
        ConfigError: If a rule names a class that the model does not find, or a zone is partly outside the
            inspected area.
    """

    def __init__(self, plan: Plan, config: ModelConfig) -> None:
        self.plan = plan
        self._config = config
        self._size = plan.photograph.height, plan.photograph.width
        _check_classes(plan, config)
        self._ignored: Mask = np.zeros(self._size, np.bool_)
        for name, zone in plan.zones.items():
            if zone.ignored:
                self._ignored |= plan.draw_zone(name)
        self._rules = tuple(
            ZoneRules(name, zone, plan.photograph.mm_per_px)
            for name, zone in plan.zones.items()
            if not zone.ignored
        )
        self._map = ZoneMap((self._draw_inspected(rules.name) for rules in self._rules), *self._size)

    def judge(self, prediction: Prediction, *, unlike: bool) -> Judgement:
        """Returns the verdict of the plan about a photograph.

        A photograph that the model calls good is good. `unlike` is whether it is unlike those of the
        training: it is then not good.

        Raises:
            ImageError: With the code `plan_size`, if the photograph has another size than the plan.
        """
        self._check_size(prediction)
        if prediction.label == self._config.classes[0]:
            return Judgement(prediction.label, "accept")
        found = list(islice(find_defects(prediction, self._config), MAX_DEFECTS + 1))
        defects = tuple(map(self._measure, found[:MAX_DEFECTS]))
        findings = [
            *self._about_photograph(prediction, len(found), unlike),
            *self._about_outside(defects),
            *(finding for rules in self._rules for finding in rules.apply(defects)),
        ]
        if prediction.score < prediction.threshold:
            findings = [replace(finding, certain=False) for finding in findings]
        return _decide(findings, defects, prediction)

    def _check_size(self, prediction: Prediction) -> None:
        if prediction.mask.shape != self._size:
            (height, width), (rows, columns) = self._size, prediction.mask.shape
            raise ImageError(
                f"The photograph has {columns} × {rows} px, but the plan '{self.plan.name}' is for "
                f"{width} × {height} px. Expected that size, since zones and scale are in its pixels.",
                code="plan_size",
            )

    def _draw_inspected(self, name: str) -> Mask:
        mask, area = self.plan.draw_zone(name), self._config.input.inspected_area(*self._size)
        if not mask.any():
            raise ConfigError(f"The zone '{name}' contains no pixel. Expected a larger one.")
        outside = 0 if area is None else int(np.count_nonzero(mask & (area == 0)))
        if outside:
            raise ConfigError(
                f"{outside} of {np.count_nonzero(mask)} pixels of the zone '{name}' are outside the area "
                "that the model inspects. Expected a zone inside it: change the zone, or train with another "
                "area."
            )
        return mask

    def _measure(self, found: FoundDefect) -> JudgedDefect:
        part, extent = (each.without(self._ignored) for each in (found.part, found.extent))
        zones, possible = self._map.touched(part), self._map.touched(extent)
        outside: bool | None = not zones and bool(part.pixels.any())
        if not zones and not outside and not possible and extent.pixels.any():
            outside = None
        return JudgedDefect(
            found.part.bbox,
            found.classes,
            found.score_max,
            MeasuredSizes.estimate(found.part.sizes, found.possible.sizes, self._config.size_errors),
            tuple(self._rules[number].name for number in sorted(zones)),
            tuple(self._rules[number].name for number in sorted(possible - zones)),
            outside,
        )

    def _about_photograph(self, prediction: Prediction, count: int, unlike: bool) -> Iterator[Finding]:
        review = prediction.threshold if prediction.review_threshold is None else prediction.review_threshold
        in_mask = count > 0 and prediction.mask_threshold >= self._config.thresholds.mask
        if prediction.score >= review and not in_mask:
            yield Finding(self.plan.otherwise.unexplained, "unexplained", True)
        if count > MAX_DEFECTS:
            yield Finding("review", "too_many_defects", True)
        if unlike:
            yield Finding("review", "unlike_training", True)

    def _about_outside(self, defects: Sequence[JudgedDefect]) -> Iterator[Finding]:
        for number, defect in enumerate(defects):
            if defect.outside is not False:
                then, certain = self.plan.otherwise.outside_zones, defect.outside is True
                yield Finding(then, "outside_zones", certain, defect=number, classes=defect.classes)


def _decide(
    findings: Iterable[Finding], defects: tuple[JudgedDefect, ...], prediction: Prediction
) -> Judgement:
    relevant = [finding for finding in findings if finding.severity != "accept"]
    relevant.sort(key=lambda finding: -RANKS[finding.severity])
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


def _check_classes(plan: Plan, config: ModelConfig) -> None:
    known = config.classes[1:]
    named = [(name, rule.defect) for name, zone in plan.zones.items() for rule in zone.rules if rule.defect]
    for name, defect in named:
        if defect not in known:
            raise ConfigError(
                f"A rule of the zone '{name}' names the defect '{defect}'. Expected a class of the model: "
                f"{', '.join(known)}."
            )
    if named and len(known) > 1 and not config.network.mask_classes:
        raise ConfigError(
            f"A rule of the zone '{named[0][0]}' names the defect '{named[0][1]}', but the mask of the model "
            "does not distinguish its classes. Expected a model with a mask for each class "
            "(network.mask_classes), or rules for any defect."
        )
