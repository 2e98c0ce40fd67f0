"""The inspection plan: a TOML file with the zones of a photograph and the rules for defects in them."""

import base64
import hashlib
import math
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from segdec.config import Config, Fraction, config_error
from segdec.errors import ConfigError, ImageError
from segdec.images import MAX_PIXEL_LIMIT, encode_png, read_mask
from segdec.imaging.inspected_area import check_mask
from segdec.plan.mask_parts import Mask
from segdec.plan.perspective import Perspective, Plane
from segdec.plan.quantities import AreaText, LengthText, Scale, ShareText, split
from segdec.plan.severity import RANKS, Severity
from segdec.plan.zones import Circle, DrawnMask, Point, Polygon, Rectangle, Ring, Shape, bounds, draw
from segdec.runtime.identifiers import check_identifier

MAX_ZONES, MAX_RULES = 100, 50
"""Number of zones of a plan, and of rules of a zone."""

MAX_FILE_BYTES = 2**20

MIN_DISTANCE_PX = 10
"""Smallest distance of two points of known distance, px."""

Name = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(check_identifier)]
MmPerPx = Annotated[float, Field(ge=1e-6, le=1000.0, allow_inf_nan=False)]

OF_ONE_DEFECT = ("longer_than", "wider_than", "larger_than")
OF_ALL_DEFECTS = ("more_than", "total_larger_than", "closer_than")
CONDITIONS = (*OF_ONE_DEFECT, *OF_ALL_DEFECTS)
"""Fields with a limit."""


class Rule(Config):
    """What follows if a defect, or all defects of a zone, exceed a limit, or from any defect."""

    defect: Name | None = Field(None, description="class of the defect; absent: any")
    longer_than: LengthText | None = Field(None, description="limit of the length")
    wider_than: LengthText | None = Field(None, description="limit of the width")
    larger_than: AreaText | None = Field(None, description="limit of the area of one defect")
    more_than: Annotated[int, Field(ge=0, le=10_000, strict=True)] | None = Field(
        None, description="limit of the number of defects; needs counted_from"
    )
    counted_from: LengthText | None = Field(
        None, description="length from which a defect counts, for more_than and closer_than"
    )
    total_larger_than: ShareText | None = Field(
        None, description="limit of the area of all defects, also as a share of the zone"
    )
    closer_than: LengthText | None = Field(None, description="limit of the distance of two defects")
    min_score: Fraction = Field(0.0, description="highest mask score from which the rule is about a defect")
    then: Severity = Field(description="what follows: accept, note, review, reject or stop")

    @property
    def condition(self) -> str | None:
        """The name of the field with the limit; None without a limit."""
        return next((name for name in CONDITIONS if getattr(self, name) is not None), None)

    @property
    def limit(self) -> tuple[float, str]:
        """The limit and its unit, which is empty for a number of defects; ValueError without a limit."""
        if self.condition is None:
            raise ValueError("the rule has no limit")
        value: int | str = getattr(self, self.condition)
        return split(value) if isinstance(value, str) else (float(value), "")

    def overrules(self, other: "Rule") -> bool:
        """Returns whether this rule has a lower limit and no milder consequence than another one."""
        return (
            self.condition in OF_ONE_DEFECT
            and (self.defect, self.condition, self.min_score)
            == (other.defect, other.condition, other.min_score)
            and self.limit[1] == other.limit[1]
            and self.limit[0] < other.limit[0]
            and RANKS[self.then] >= RANKS[other.then]
        )

    @property
    def is_for_each_defect(self) -> bool:
        """Whether the rule is about each single defect, so that it allows a defect within its limit."""
        return self.condition not in OF_ALL_DEFECTS

    @property
    def quantities(self) -> tuple[str, ...]:
        """All lengths and areas."""
        values = (getattr(self, name) for name in (*CONDITIONS, "counted_from"))
        return tuple(value for value in values if isinstance(value, str))

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in CONDITIONS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} in one rule; expected one limit: write two rules")
        if self.counted_from is None and self.more_than is not None:
            raise ValueError("more_than without counted_from; expected the length from which a defect counts")
        if self.counted_from is not None and self.condition not in ("more_than", "closer_than"):
            raise ValueError("counted_from; expected it only with more_than or closer_than")
        return self


class Zone(Config):
    """A part of the photograph: one shape, and either rules or `ignored`."""

    polygon: Polygon | None = Field(None, description="corners")
    rectangle: Rectangle | None = None
    circle: Circle | None = None
    ring: Ring | None = None
    mask: Annotated[str, AfterValidator(check_mask)] | None = Field(
        None, description="path of a grey PNG of the photograph's size, above 0 inside; stored as base64"
    )
    without: tuple[Name, ...] = Field((), description="zones that are cut out of this one")
    ignored: bool = Field(
        False,
        strict=True,
        description="whether defects are accepted that are completely inside and touch no other zone",
    )
    otherwise: Severity = Field("reject", description="for defects that no rule for each defect names")
    rules: Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)] = ()

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
        return self


SCALES = ("mm_per_px", "known_distance", "perspective")


class KnownDistance(Config):
    """Two points of the photograph, px, whose distance on the part is known."""

    points: tuple[Point, Point]
    mm: Annotated[float, Field(ge=0.001, le=1e6)] = Field(description="distance on the part")

    @property
    def mm_per_px(self) -> float:
        """Side of a pixel on the part, mm."""
        return self.mm / math.dist(*self.points)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if math.dist(*self.points) < MIN_DISTANCE_PX:
            raise ValueError(
                f"the points are {math.dist(*self.points):.1f} px apart; expected at least "
                f"{MIN_DISTANCE_PX} px, since a click is inexact"
            )
        return self


class PlanPhotograph(Config):
    """The upright photographs for which the plan is made."""

    width: Annotated[int, Field(ge=1, le=2**16)] = Field(description="px")
    height: Annotated[int, Field(ge=1, le=2**16)] = Field(description="px")
    mm_per_px: MmPerPx | None = Field(None, description="side of a pixel on the part, mm; absent: unknown")
    known_distance: KnownDistance | None = Field(None, description="instead of mm_per_px")
    perspective: Perspective | None = Field(None, description="instead of mm_per_px")

    @property
    def plane(self) -> Plane | None:
        """The plane of the part; None: parallel to the photograph."""
        return None if self.perspective is None else Plane(self.perspective, self.width, self.height)

    @property
    def scale(self) -> float | None:
        """Side of a pixel on the part, or in its plane, mm; None: unknown."""
        if self.plane is not None:
            return self.plane.mm_per_px
        return self.mm_per_px if self.known_distance is None else self.known_distance.mm_per_px

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in SCALES if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}; expected one of them")
        return self


class OtherDefects(Config):
    """What follows from defects that are not in a zone or not in the mask."""

    outside_zones: Severity = Field("review", description="for a defect that is in no zone")
    unexplained: Literal["review", "reject", "stop"] = Field(
        "reject", description="for a score above the threshold without a defect in the mask"
    )


class WholePart(Config):
    """Rules about the defects of all zones together."""

    rules: Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, rule in enumerate(self.rules, start=1):
            if rule.is_for_each_defect or "%" in (rule.total_larger_than or ""):
                raise ValueError(
                    f"rule {number} is about single defects or a share of a zone; expected more_than, "
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

    @property
    def sha256(self) -> str:
        """Identifies the content: plans with equal zones and rules have the same."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @model_validator(mode="after")
    def _check(self) -> Self:
        height, width = self.photograph.height, self.photograph.width
        if height * width > MAX_PIXEL_LIMIT:
            raise ValueError(f"{width} × {height} px; expected at most {MAX_PIXEL_LIMIT} pixels")
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
            for number, rule in enumerate(zone.rules, start=1):
                place = f"rule {number} of the zone '{name}'"
                self._check_quantities(place, rule)
                _check_effect(place, rule, zone)
        for number, rule in enumerate(self.part.rules, start=1):
            self._check_quantities(f"rule {number} of the part", rule)
        return self

    def _check_quantities(self, place: str, rule: Rule) -> None:
        millimetres = [text for text in rule.quantities if split(text)[1].startswith("mm")]
        if millimetres and self.photograph.scale is None:
            raise ValueError(
                f"{place} has the limit '{millimetres[0]}', but photograph.mm_per_px is missing; expected "
                "mm_per_px, known_distance, perspective, or limits in px"
            )
        diagonal = math.hypot(self.photograph.width, self.photograph.height)
        for text in rule.quantities:
            number, unit = split(text)
            if unit in ("mm", "px"):
                length_px = Scale(self.photograph.scale).in_px(number, unit)
                if not 1.0 <= length_px <= diagonal:
                    raise ValueError(
                        f"{place} has the limit '{text}', which is {length_px:.3g} px; expected 1 px to "
                        f"{diagonal:.0f} px, the diagonal of the photograph: check the scale"
                    )


def _check_effect(place: str, rule: Rule, zone: Zone) -> None:
    """Raises ValueError for a rule that can never decide."""
    if rule.condition is not None and rule.then == "accept":
        raise ValueError(f"{place} accepts above a limit; expected another consequence, or no limit")
    for other in zone.rules:
        if other.overrules(rule):
            raise ValueError(
                f"{place} never decides: above '{getattr(other, str(rule.condition))}' another rule already "
                f"leads to '{other.then}'; expected a lower limit or a stricter consequence"
            )
    if rule.is_for_each_defect or zone.otherwise in ("accept", "note"):
        return
    allowing = (other for other in zone.rules if other.is_for_each_defect)
    if not any(rule.defect is None or other.defect in (None, rule.defect) for other in allowing):
        kind = "defects" if rule.defect is None else f"'{rule.defect}'"
        raise ValueError(
            f"{place} limits {rule.condition} for {kind}, but already one of them leads to "
            f"'{zone.otherwise}', because no rule allows a single one; expected also a rule with a limit "
            "for each, such as longer_than"
        )


def read_plan(path: Path) -> Plan:
    """Reads a plan.

    Raises:
        ConfigError: If the file cannot be read, has more than `MAX_FILE_BYTES`, is not TOML or not a plan.
    """
    expected = "Expected a TOML file with an inspection plan, as in docs/plan.md"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"The plan {path} cannot be read: {reason}. {expected}.") from error
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"The plan {path} has more than {MAX_FILE_BYTES} bytes. {expected}.")
    return parse_plan(content, str(path), path.parent)


def parse_plan(content: bytes, name: str, folder: Path | None = None) -> Plan:
    """Parses the TOML of a plan; `name` names it in errors, which are those of `read_plan`.

    Paths of masks are relative to `folder`; None: masks are base64.
    """
    try:
        values = tomllib.loads(content.decode())
    except (
        ValueError,
        RecursionError,
    ) as error:  # ValueError: not TOML, not UTF-8, or a number of 5000 digits
        raise ConfigError(f"The plan {name} is not valid TOML: {error}.") from error
    if folder is not None:
        _read_masks(values, folder)
    try:
        return Plan.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"The plan {name} is not valid.\n{config_error(error, Plan)}") from error


def _read_masks(values: dict[str, Any], folder: Path) -> None:
    """Replaces the path of each zone's mask by the content of the file, as base64."""
    zones = values.get("zones")
    for name, zone in zones.items() if isinstance(zones, dict) else ():
        if isinstance(zone, dict) and isinstance(zone.get("mask"), str):
            path = folder / zone["mask"]
            try:
                zone["mask"] = base64.b64encode(encode_png(read_mask(path))).decode("ascii")
            except (OSError, ValueError, ImageError) as error:
                raise ConfigError(f"The mask of the zone '{name}' cannot be read: {error}") from error
