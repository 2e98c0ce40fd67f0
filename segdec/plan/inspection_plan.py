"""The inspection plan: the zones of a photograph, and the rules for defects in them."""

import hashlib
import math
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from segdec.config import Config
from segdec.errors import ConfigError
from segdec.imaging.inspected_area import check_mask
from segdec.plan.mask_parts import Mask
from segdec.plan.plan_photograph import PlanPhotograph
from segdec.plan.quantities import Scale, split
from segdec.plan.rules import Name, Rule, Rules
from segdec.plan.severity import RANKS, Severity
from segdec.plan.shapes import Circle, DrawnMask, Polygon, Rectangle, Ring, Shape, bounds, draw

MAX_ZONES = 100


class Zone(Config):
    """A part of the photograph: one shape, and either rules or `ignored`."""

    polygon: Polygon | None = Field(None, description="corners")
    rectangle: Rectangle | None = None
    circle: Circle | None = None
    ring: Ring | None = None
    mask: Annotated[str, AfterValidator(check_mask)] | None = Field(
        None, description="path of a grey PNG of the photograph's size, above 0 inside; stored as base64"
    )
    without: tuple[Name, ...] = Field(
        (), max_length=MAX_ZONES, description="zones that are cut out of this one"
    )
    ignored: bool = Field(
        False,
        strict=True,
        description="whether defects are accepted that are completely inside and touch no other zone",
    )
    otherwise: Severity = Field("reject", description="for defects that no rule for each defect names")
    rules: Rules = ()

    @property
    def shape(self) -> Shape:
        """The one shape that is given."""
        return next(shape for shape in self._shapes if shape is not None)

    @property
    def _shapes(self) -> tuple[Shape | None, ...]:
        drawn = None if self.mask is None else DrawnMask(self.mask)
        return self.polygon, self.rectangle, self.circle, self.ring, drawn

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (count := sum(shape is not None for shape in self._shapes)) != 1:
            raise ValueError(f"{count} shapes; expected one of polygon, rectangle, circle, ring and mask")
        if self.ignored and (self.rules or "otherwise" in self.model_fields_set):
            raise ValueError("an ignored zone with rules; expected either ignored = true or rules")
        for number, rule in enumerate(self.rules):
            self._check_effect(f"rules.{number}", rule)
        return self

    def _check_effect(self, place: str, rule: Rule) -> None:
        """Raises ValueError for a rule that can never decide."""
        if rule.condition is not None and rule.then == "accept":
            raise ValueError(f"{place} accepts above a limit; expected another consequence, or no limit")
        for other in self.rules:
            if other.overrules(rule):
                raise ValueError(
                    f"{place} never decides: above '{getattr(other, str(rule.condition))}' another rule "
                    f"already leads to '{other.then}'; expected a lower limit or a stricter consequence"
                )
        if rule.is_for_each_defect or RANKS[self.otherwise] < RANKS[rule.then]:
            return
        allowing = (other for other in self.rules if other.is_for_each_defect)
        if not any(rule.defect is None or other.defect in (None, rule.defect) for other in allowing):
            kind = "defects" if rule.defect is None else f"'{rule.defect}'"
            raise ValueError(
                f"{place} limits {rule.condition} for {kind}, but already one of them leads to "
                f"'{self.otherwise}', because no rule allows a single one; expected also a rule with a limit "
                "for each, such as longer_than"
            )


class OtherDefects(Config):
    """What follows from defects that are not in a zone or not in the mask."""

    outside_zones: Severity = Field("review", description="for a defect that is in no zone")
    unexplained: Literal["review", "reject", "stop"] = Field(
        "reject", description="for a score above the threshold without a defect in the mask"
    )


class WholePart(Config):
    """Rules about all defects together, except ignored ones."""

    rules: Rules = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, rule in enumerate(self.rules):
            if rule.then == "accept":
                raise ValueError(f"rules.{number} accepts above a limit; expected another consequence")
            if rule.is_for_each_defect or "%" in (rule.total_larger_than or ""):
                raise ValueError(
                    f"rules.{number} is about single defects or a share of a zone; expected more_than, "
                    "closer_than or total_larger_than without %: other rules belong to a zone"
                )
        return self


class Plan(Config):
    """An inspection plan."""

    name: Name
    photograph: PlanPhotograph
    part: WholePart = WholePart()
    otherwise: OtherDefects = OtherDefects()
    zones: Annotated[dict[Name, Zone], Field(min_length=1, max_length=MAX_ZONES)]

    def draw_zone(self, name: str) -> Mask:
        """Returns the pixels [height, width] of a zone; raises ConfigError if it has none."""
        size = self.photograph.height, self.photograph.width
        mask = draw(self.zones[name].shape, *size)
        for other in self.zones[name].without:
            mask &= ~draw(self.zones[other].shape, *size)
        if not mask.any():
            raise ConfigError(f"The zone '{name}' contains no pixel. Expected a larger one.")
        return mask

    def to_dict(self) -> dict[str, object]:
        """Returns the given fields as JSON values, since some defaults are not valid everywhere."""
        return self.model_dump(mode="json", exclude_unset=True)

    @property
    def sha256(self) -> str:
        """Identifies the content: plans with equal zones and rules have the same."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @model_validator(mode="after")
    def _check(self) -> Self:
        height, width = self.photograph.height, self.photograph.width
        for name, zone in self.zones.items():
            left, top, right, bottom = bounds(zone.shape)
            if zone.mask is not None and (right, bottom) != (width, height):
                raise ValueError(
                    f"the mask of the zone '{name}' has {right:g} × {bottom:g} px; expected "
                    f"{width} × {height} px, as the photograph"
                )
            if left < 0 or top < 0 or right > width or bottom > height:
                raise ValueError(
                    f"the zone '{name}' reaches from ({left:g}, {top:g}) to ({right:g}, {bottom:g}); "
                    f"expected it inside the photograph of {width} × {height} px"
                )
            for other in zone.without:
                if other == name or other not in self.zones:
                    raise ValueError(f"without of the zone '{name}' names '{other}'; expected another zone")
                if other in self.zones and self.zones[other].without:
                    raise ValueError(
                        f"the zone '{other}' is cut out of '{name}'; expected it without `without`"
                    )
        for place, rule in self.rules():
            self._check_quantities(place, rule)
        return self

    def rules(self) -> Iterator[tuple[str, Rule]]:
        """Yields each rule after its place in the file."""
        for name, zone in self.zones.items():
            yield from ((f"zones.{name}.rules.{number}", rule) for number, rule in enumerate(zone.rules))
        yield from ((f"part.rules.{number}", rule) for number, rule in enumerate(self.part.rules))

    def _check_quantities(self, place: str, rule: Rule) -> None:
        millimetres = [text for text in rule.quantities if split(text)[1].startswith("mm")]
        if millimetres and self.photograph.scale is None:
            raise ValueError(
                f"{place} has the limit '{millimetres[0]}', but photograph.mm_per_px is missing; expected "
                "mm_per_px, known_distance, perspective, or limits in px"
            )
        width, height = self.photograph.width, self.photograph.height
        pixel = 1.0 if self.photograph.plane is None else self.photograph.plane.photograph_px
        largest = {1: pixel * math.hypot(width, height), 2: pixel**2 * width * height}
        for text in rule.quantities:
            number, unit = split(text)
            if unit == "%" and number > 100:
                raise ValueError(f"{place} has the limit '{text}'; expected at most 100 %")
            if unit != "%":
                size_px = Scale(self.photograph.scale).in_px(number, unit)
                dimension = 2 if unit.endswith("²") else 1
                if not 1.0 <= size_px <= largest[dimension]:
                    raise ValueError(
                        f"{place} has the limit '{text}', which is {size_px:.3g} px{'²' * (dimension - 1)}; "
                        f"expected 1 to {largest[dimension]:.0f}, as in the photograph: check the scale"
                    )
