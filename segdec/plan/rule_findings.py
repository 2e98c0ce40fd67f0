"""Applies the rules of a zone to measured defects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from segdec.plan.findings import Finding, JudgedDefect
from segdec.plan.plan_file import Rule, Zone
from segdec.plan.quantities import split, unit_in_px
from segdec.plan.size_intervals import Measure

MEASURES = {"longer_than": "length", "wider_than": "width", "larger_than": "area"}
"""Limits of a single defect, each with the attribute of `MeasuredSizes` that it limits."""


@dataclass(frozen=True)
class ZoneRules:
    """The rules of one zone.

    Attributes:
        name: Name of the zone.
        zone: The zone.
        mm_per_px: Side of a pixel on the part, mm; None: unknown, and no limit is in mm.
    """

    name: str
    zone: Zone
    mm_per_px: float | None

    def apply(self, defects: Sequence[JudgedDefect]) -> Iterator[Finding]:
        """Yields what the rules say about the defects that touch the zone or may touch it."""
        inside = {
            number: defect
            for number, defect in enumerate(defects)
            if self.name in (*defect.zones, *defect.possible_zones)
        }
        for number, defect in inside.items():
            yield from self._about_one(number, defect)
        for number, rule in enumerate(self.zone.rules):
            if not rule.is_for_each_defect:
                yield from self._about_all(number, tuple(inside.values()))

    def _about_one(self, place: int, defect: JudgedDefect) -> Iterator[Finding]:
        touches, classes = self.name in defect.zones, defect.classes
        unnamed = set(classes or (None,))  # classes that no rule names
        for number, rule in enumerate(self.zone.rules):
            if not rule.is_for_each_defect or not is_about(rule, defect):
                continue
            unnamed = set() if rule.defect is None else unnamed - {rule.defect}
            if rule.condition is None:
                yield Finding(rule.then, "rule", touches, self.name, number, place, classes)
            else:
                measured: Measure = getattr(defect.sizes, MEASURES[rule.condition])
                yield from self._compare(number, measured, touches, place, classes)
        if unnamed:
            yield Finding(self.zone.otherwise, "otherwise", touches, self.name, None, place, classes)

    def _about_all(self, number: int, defects: Sequence[JudgedDefect]) -> Iterator[Finding]:
        rule = self.zone.rules[number]
        about = [defect for defect in defects if is_about(rule, defect)]
        certain = [defect for defect in about if self.name in defect.zones]
        if rule.counted_from is None:
            areas = [defect.sizes.area for defect in about]
            low = sum(defect.sizes.area.low for defect in certain)
            measured = Measure(sum(one.value for one in areas), low, sum(one.high for one in areas))
        else:
            length, unit = split(rule.counted_from)
            from_px = length * unit_in_px(unit, self.mm_per_px)
            measured = Measure(
                sum(defect.sizes.length.value >= from_px for defect in about),
                sum(defect.sizes.length.low >= from_px for defect in certain),
                sum(defect.sizes.length.high >= from_px for defect in about),
            )
        yield from self._compare(number, measured, True, None, (rule.defect,) if rule.defect else ())

    def _compare(
        self, number: int, measured: Measure, touches: bool, place: int | None, classes: tuple[str, ...]
    ) -> Iterator[Finding]:
        """Yields a finding if what a rule limits, in px, px² or a number, may exceed its limit."""
        rule = self.zone.rules[number]
        limit, unit = rule.limit
        measured = measured.divided(unit_in_px(unit, self.mm_per_px))
        if measured.high > limit:
            certain = touches and measured.low > limit
            yield Finding(
                rule.then, "rule", certain, self.name, number, place, classes, measured, limit, unit
            )


def is_about(rule: Rule, defect: JudgedDefect) -> bool:
    """Returns whether a rule is about the class of a defect."""
    return rule.defect is None or rule.defect in defect.classes
