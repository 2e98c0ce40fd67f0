"""Applies the rules of a zone, or of the whole part, to measured defects."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from segdec.plan.distances import smallest_distance
from segdec.plan.findings import Finding, MeasuredDefect
from segdec.plan.mask_parts import MaskPart
from segdec.plan.quantities import Scale, split
from segdec.plan.rules import SIZE_LIMITS, Rule
from segdec.plan.severity import Severity
from segdec.plan.size_intervals import Measurement

DISTANCE_ERROR_PX = 2.0
"""Error of a distance even if the masks are exact: one pixel at each end."""


@dataclass(frozen=True)
class RuleSet:
    """The rules of one zone or of the whole part.

    Attributes:
        zone: Name of the zone; None: the whole part.
        rules: Its rules.
        otherwise: What follows from a class that no rule for each defect names.
        scale: Units of the limits.
    """

    zone: str | None
    rules: tuple[Rule, ...]
    otherwise: Severity
    scale: Scale

    def apply(self, defects: Sequence[MeasuredDefect]) -> Iterator[Finding]:
        """Yields what the rules say about the defects that touch the zone or may touch it."""
        inside = {
            number: (defect, touches is True)
            for number, defect in enumerate(defects)
            if (touches := self._touches(defect)) is not False
        }
        for number, (defect, touches) in inside.items():
            yield from self._judge_single(number, defect, touches)
        for number, rule in enumerate(self.rules):
            about = [(defect, touches) for defect, touches in inside.values() if is_about(rule, defect)]
            if rule.condition == "closer_than":
                yield from self._judge_distance(number, about)
            elif not rule.is_for_each_defect:
                yield from self._judge_total(number, about)

    def _touches(self, defect: MeasuredDefect) -> bool | None:
        """Returns whether the zone contains any pixel of a defect; None: it may."""
        if self.zone is None:
            return bool(defect.zones) or defect.outside or (False if defect.is_ignored else None)
        return None if self.zone in defect.possible_zones else self.zone in defect.zones

    def _judge_single(self, place: int, defect: MeasuredDefect, touches: bool) -> Iterator[Finding]:
        unnamed = dict.fromkeys(defect.classes or (None,))  # classes that no rule names
        for number, rule in enumerate(self.rules):
            if not rule.is_for_each_defect or not is_about(rule, defect):
                continue
            unnamed = {} if rule.defect is None else {name: None for name in unnamed if name != rule.defect}
            classes = named_classes(rule) or defect.classes
            if rule.condition is None:
                yield Finding(rule.then, "rule", touches, self.zone, number, place, classes)
            else:
                measured: Measurement = getattr(defect.sizes, SIZE_LIMITS[rule.condition])
                certain = touches and has_no_other_class(rule, defect)
                yield from self._compare(number, measured, certain, place, classes)
        if unnamed:
            classes = tuple(name for name in unnamed if name is not None)
            yield Finding(self.otherwise, "otherwise", touches, self.zone, None, place, classes)

    def _judge_total(self, number: int, about: Sequence[tuple[MeasuredDefect, bool]]) -> Iterator[Finding]:
        """Yields a finding if the number or the total area of the defects may exceed a limit.

        Parts that may be one defect count once for certain, and their possible pixels once.
        """
        rule, defects = self.rules[number], [defect for defect, _ in about]
        certain = [defect for defect, touches in about if touches and has_no_other_class(rule, defect)]
        if rule.more_than is None:
            highest: dict[MaskPart, float] = {}
            for defect in defects:
                area = defect.sizes.area
                highest[defect.possible] = max(area.high, highest.get(defect.possible, 0.0))
            value = sum(defect.sizes.area.value for defect in defects)
            low = sum(defect.sizes.area.low for defect in certain)
            measured = Measurement(value, low, max(sum(highest.values()), value))
        else:
            from_px = self._counted_from_px(rule)
            measured = Measurement(
                sum(defect.sizes.length.value >= from_px for defect in defects),
                len({defect.possible for defect in certain if defect.sizes.length.low >= from_px}),
                sum(defect.sizes.length.high >= from_px for defect in defects),
            )
        yield from self._compare(number, measured, True, None, named_classes(rule))

    def _judge_distance(self, number: int, about: Sequence[tuple[MeasuredDefect, bool]]) -> Iterator[Finding]:
        """Yields a finding if two defects may be closer than a limit."""
        rule, from_px = self.rules[number], self._counted_from_px(self.rules[number])
        defects = [defect for defect, _ in about if defect.sizes.length.high >= from_px]
        certain = [
            defect
            for defect, touches in about
            if touches and has_no_other_class(rule, defect) and defect.sizes.length.low >= from_px
        ]
        value = smallest_distance([defect.part for defect in defects])
        if value is None:
            return
        lowest = smallest_distance([defect.possible for defect in defects]) or 0.0
        highest = smallest_distance([defect.part for defect in certain])
        unknown = any(math.isinf(defect.sizes.length.high) for defect in defects)
        low = 0.0 if unknown else max(lowest - DISTANCE_ERROR_PX, 0.0)
        high = math.inf if unknown or highest is None else highest + DISTANCE_ERROR_PX
        limit, unit = rule.limit
        measured = Measurement(value, low, high).divided(self.scale.in_px(1.0, unit))
        if measured.low < limit:
            certainly = measured.high < limit
            classes = named_classes(rule)
            yield Finding(
                rule.then, "rule", certainly, self.zone, number, None, classes, measured, limit, unit
            )

    def _counted_from_px(self, rule: Rule) -> float:
        """Returns the length from which a defect counts, px."""
        return 0.0 if rule.counted_from is None else self.scale.in_px(*split(rule.counted_from))

    def _compare(
        self, number: int, measured: Measurement, touches: bool, place: int | None, classes: tuple[str, ...]
    ) -> Iterator[Finding]:
        """Yields a finding if what a rule limits, in px, px² or a number, may exceed its limit."""
        limit, unit = self.rules[number].limit
        measured = measured.divided(self.scale.in_px(1.0, unit))
        if measured.high > limit:
            then, certain = self.rules[number].then, touches and measured.low > limit
            yield Finding(then, "rule", certain, self.zone, number, place, classes, measured, limit, unit)


def is_about(rule: Rule, defect: MeasuredDefect) -> bool:
    """Returns whether a rule is about the class and the mask score of a defect."""
    return rule.defect in (None, *defect.classes) and defect.score_max >= rule.min_score


def has_no_other_class(rule: Rule, defect: MeasuredDefect) -> bool:
    """Returns whether a rule is about the whole size of a defect: all is of the class that it names."""
    return rule.defect is None or defect.classes == (rule.defect,)


def named_classes(rule: Rule) -> tuple[str, ...]:
    """Returns the class that a rule names, if it names one."""
    return () if rule.defect is None else (rule.defect,)
