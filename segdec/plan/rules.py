"""Rules of an inspection plan: limits for defects, and what follows above them."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from segdec.config import Config, Fraction
from segdec.plan.quantities import AreaText, LengthText, ShareText, split
from segdec.plan.severity import RANKS, Severity
from segdec.runtime.identifiers import check_identifier

MAX_RULES = 50
"""Number of rules of a zone."""

Name = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(check_identifier)]
"""Name of a plan, a zone or a class of defects."""

SIZE_LIMITS = {"longer_than": "length", "wider_than": "width", "larger_than": "area"}
"""Fields with a limit of a single defect, each with the size that it limits."""

TOTAL_LIMITS = ("more_than", "total_larger_than", "closer_than")
"""Fields with a limit of several defects."""

LIMITS = (*SIZE_LIMITS, *TOTAL_LIMITS)


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
        return next(iter(self._conditions), None)

    @property
    def _conditions(self) -> list[str]:
        return [name for name in LIMITS if getattr(self, name) is not None]

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
            self.condition in SIZE_LIMITS
            and (self.defect, self.condition, self.min_score)
            == (other.defect, other.condition, other.min_score)
            and self.limit[1] == other.limit[1]
            and self.limit[0] < other.limit[0]
            and RANKS[self.then] >= RANKS[other.then]
        )

    @property
    def is_for_each_defect(self) -> bool:
        """Whether the rule is about each single defect, so that it allows a defect within its limit."""
        return self.condition not in TOTAL_LIMITS

    @property
    def quantities(self) -> tuple[str, ...]:
        """All lengths and areas."""
        values = (getattr(self, name) for name in (*LIMITS, "counted_from"))
        return tuple(value for value in values if isinstance(value, str))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self._conditions) > 1:
            raise ValueError(
                f"{' and '.join(self._conditions)} in one rule; expected one limit: write two rules"
            )
        if self.counted_from is None and self.more_than is not None:
            raise ValueError("more_than without counted_from; expected the length from which a defect counts")
        if self.counted_from is not None and self.condition not in ("more_than", "closer_than"):
            raise ValueError("counted_from; expected it only with more_than or closer_than")
        return self


Rules = Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)]
