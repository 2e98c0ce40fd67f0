"""What a rule of an inspection plan says about a part."""

from typing import Literal, get_args

Severity = Literal["accept", "note", "review", "reject", "stop"]
"""Consequences of a rule, in ascending order; the worst of all rules decides about the part.

`accept`: the part is good; `note`: it is good, and the finding is recorded; `review`: a person decides;
`reject`: it is defective; `stop`: it is defective, and the line must stop.
"""

RANKS: dict[Severity, int] = {severity: rank for rank, severity in enumerate(get_args(Severity))}


def worst(*severities: Severity) -> Severity:
    """Returns the last of the severities in their order; `accept` without any."""
    return max(severities, key=RANKS.__getitem__, default="accept")


def limited(severity: Severity, highest: Severity) -> Severity:
    """Returns `severity`, or `highest` if that comes before it."""
    return min(severity, highest, key=RANKS.__getitem__)
