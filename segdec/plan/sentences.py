"""Writes rules and findings of an inspection plan as sentences."""

import dataclasses
import math

from segdec.config import SizeErrors
from segdec.plan.findings import Cause, Finding, Judgement
from segdec.plan.plan_file import Plan, Rule
from segdec.plan.severity import Severity

CONSEQUENCES: dict[Severity, str] = {
    "accept": "accept",
    "note": "accept and note",
    "review": "for review",
    "reject": "reject",
    "stop": "reject and stop the line",
}

UNEXPLAINED = "score above the threshold without a defect in the mask"

WHOLE_PART = "whole part"


def plan_text(plan: Plan) -> str:
    """Returns the zones and rules of a plan, a line each."""
    photograph = plan.photograph
    scale = "" if photograph.scale is None else f", {photograph.scale:.4g} mm per px"
    lines = [f"{plan.name}: photographs of {photograph.width} × {photograph.height} px{scale}"]
    for name, zone in plan.zones.items():
        if zone.ignored:
            lines.append(f"{name}: a defect that is completely inside: accept")
            continue
        lines += [f"{name}: {rule_text(rule)}" for rule in zone.rules]
        named = {rule.defect for rule in zone.rules if rule.is_for_each_defect and not rule.min_score}
        if None not in named:
            lines.append(f"{name}: any {'other ' if named else ''}defect: {CONSEQUENCES[zone.otherwise]}")
    lines += [f"{WHOLE_PART}: {rule_text(rule)}" for rule in plan.part.rules]
    lines.append(f"outside all zones: any defect: {CONSEQUENCES[plan.otherwise.outside_zones]}")
    lines.append(f"{UNEXPLAINED}: {CONSEQUENCES[plan.otherwise.unexplained]}")
    return "\n".join(lines)


def rule_text(rule: Rule, severity: Severity | None = None) -> str:
    """Returns a rule, for example `scratch longer than 2 mm: reject`; `severity` replaces its consequence."""
    defect = rule.defect or "any defect"
    if rule.min_score:
        defect += f" with a mask score from {rule.min_score:g}"
    texts = {
        None: defect,
        "longer_than": f"{defect} longer than {rule.longer_than}",
        "wider_than": f"{defect} wider than {rule.wider_than}",
        "larger_than": f"{defect} larger than {rule.larger_than}",
        "more_than": f"more than {rule.more_than} × {defect}",
        "total_larger_than": f"total area of {defect} larger than {rule.total_larger_than}",
        "closer_than": f"two × {defect} closer than {rule.closer_than}",
    }
    counted = "" if rule.counted_from is None else f", each from {rule.counted_from}"
    return f"{texts[rule.condition]}{counted}: {CONSEQUENCES[severity or rule.then]}"


def size_error_text(errors: SizeErrors | None) -> str:
    """Returns how exactly a model measures."""
    if errors is None:
        return (
            "The sizes that this model measures were not compared with masks: a limit of a size accepts and "
            "rejects nothing, it only leads to review. Train with photographs whose defects have masks."
        )
    named = ("length", errors.length), ("width", errors.width), ("area", errors.area)
    each = "; ".join(f"{name} {low:.2g} and {high:.2g}" for name, (low, high) in named)
    return (
        "The true size of a defect is at least and at most so many times that of its mask and that of the "
        f"pixels that may belong to it: {each} ({errors.defects} defects compared)."
    )


def judgement_sentence(judgement: Judgement, plan: Plan) -> str:
    """Returns the finding that decided; empty for a part without a defect."""
    if judgement.findings:
        return finding_sentence(judgement.findings[0], plan)
    return "all defects are within the limits: accept" if judgement.defects else ""


def finding_sentence(finding: Finding, plan: Plan) -> str:
    """Returns a finding with its measure.

    For example `rim: scratch longer than 2 mm: reject (2.31 mm, between 2.12 and 2.5)`.
    """
    consequence = CONSEQUENCES[finding.severity]
    defect = " and ".join(finding.classes) or "defect"
    if finding.rule is not None:
        place = plan.part if finding.zone is None else plan.zones[finding.zone]
        rule = place.rules[finding.rule]
        return f"{finding.zone or WHOLE_PART}: {rule_text(rule, finding.severity)}{_measure_text(finding)}"
    causes: dict[Cause, str] = {
        "otherwise": f"{finding.zone}: {defect}, which no rule allows",
        "outside_zones": f"outside all zones: {defect}",
        "unexplained": UNEXPLAINED,
        "too_many_defects": "too many defects to measure",
        "unlike_training": "photograph unlike those of the training",
    }
    return f"{causes[finding.cause]}: {consequence}"


def _measure_text(finding: Finding) -> str:
    if finding.measured is None:
        return ""
    value, low, high = map(_number_text, dataclasses.astuple(finding.measured))
    unit = f" {finding.unit}" if finding.unit else ""
    if math.isinf(finding.measured.high):
        return f" ({value}{unit}, at least {low})"
    return f" ({value}{unit}, between {low} and {high})" if low != high else f" ({value}{unit})"


def _number_text(number: float) -> str:
    return f"{number:.0f}" if number >= 100 and math.isfinite(number) else f"{number:.3g}"
