"""What an inspection plan says about a photograph, its defects and zones."""

from dataclasses import dataclass
from typing import Literal

from segdec.plan.mask_parts import MaskPart
from segdec.plan.severity import Severity, limited
from segdec.plan.size_intervals import MeasuredSizes, Measurement

Cause = Literal["rule", "otherwise", "outside_zones", "unexplained", "too_many_defects", "unlike_training"]
"""Why there is a finding; all except `rule` have no rule of their own."""


@dataclass(frozen=True)
class MeasuredDefect:
    """A measured defect.

    Attributes:
        bbox: x and y of the upper left corner, width and height, px.
        part: Its pixels, in the plane of the part if the plan has a perspective.
        possible: Pixels that may belong to it, those of `part` included; defects may share them.
        classes: Its defect classes, the most frequent one first; empty if the model's mask has none.
        score_max: Highest mask score.
        sizes: Length and width, px, and area, px².
        zones: Names of the zones that it touches.
        possible_zones: Names of further zones that its `possible` pixels touch.
        outside: Whether it is outside all zones; None if this is uncertain.
    """

    bbox: tuple[int, int, int, int]
    part: MaskPart
    possible: MaskPart
    classes: tuple[str, ...]
    score_max: float
    sizes: MeasuredSizes
    zones: tuple[str, ...]
    possible_zones: tuple[str, ...]
    outside: bool | None

    @property
    def is_ignored(self) -> bool:
        """Whether it is completely in ignored zones."""
        return not (self.zones or self.possible_zones) and self.outside is False


@dataclass(frozen=True)
class Finding:
    """What the plan says about one defect, or about all in a zone.

    Attributes:
        then: The consequence, if it is `certain`.
        cause: `rule`, or what follows without one.
        certain: Whether it is true for every size and place that the defects may have, and whether the model
            is certain that the part has a defect.
        zone: Name of the zone; None outside.
        rule: Number of the rule in its zone, from 0; None without a rule.
        defect: Number of the defect in `Judgement.defects`; None if it is about all.
        classes: The class that the rule names, or those of the defect; for `otherwise` those without a rule.
        measured: What the rule limits, in `unit`; None without a limit.
        limit: Limit of the rule in `unit`; None without one.
        unit: `mm`, `px`, `mm²`, `px²`, or empty for a number of defects.
    """

    then: Severity
    cause: Cause
    certain: bool
    zone: str | None = None
    rule: int | None = None
    defect: int | None = None
    classes: tuple[str, ...] = ()
    measured: Measurement | None = None
    limit: float | None = None
    unit: str = ""

    @property
    def severity(self) -> Severity:
        """The consequence: at most `review` if the finding is not certain."""
        return self.then if self.certain else limited(self.then, "review")


@dataclass(frozen=True)
class Judgement:
    """The verdict of a plan about a photograph.

    Attributes:
        label: `good`, `review` or a defect class.
        severity: The worst severity of the findings.
        findings: The worst first; the first one decides. Empty if everything is allowed.
        defects: All defects, those within the limits included; empty if the model calls the part good.
    """

    label: str
    severity: Severity
    findings: tuple[Finding, ...] = ()
    defects: tuple[MeasuredDefect, ...] = ()
