"""Writes plans and their findings as sentences."""

import dataclasses
import math

import numpy as np

from segdec.config import SizeErrors
from segdec.plan.findings import Cause, Finding, Judgement
from segdec.plan.inspection_plan import Plan, Zone
from segdec.plan.quantities import Scale
from segdec.plan.rules import SIZE_LIMITS, Rule
from segdec.plan.severity import Severity
from segdec.plan.size_intervals import MEASURING_ERROR_PX

CONSEQUENCES: dict[Severity, str] = {
    "accept": "accept",
    "note": "accept and note",
    "review": "for review",
    "reject": "reject",
    "stop": "reject and stop the line",
}

UNEXPLAINED = "defective by its score, but no mask score reaches the threshold"
WHOLE_PART = "whole part"

MEASURED = {
    **SIZE_LIMITS,
    "more_than": "number",
    "total_larger_than": "total area",
    "closer_than": "distance",
}
"""What each limit is about."""


def plan_text(plan: Plan) -> str:
    """Returns the zones and rules of a plan, a line each.

    Raises:
        ConfigError: If a zone contains no pixel.
    """
    photograph, scale = plan.photograph, plan.photograph.scale
    sides = f"{photograph.width} × {photograph.height}"
    millimetres = "" if photograph.perspective is None else ", in perspective"
    if scale is not None and photograph.perspective is None:
        width, height = photograph.width * scale, photograph.height * scale
        millimetres = f", {width:.3g} × {height:.3g} mm at {scale:.4g} mm per px"
    lines = [f"{plan.name}: photographs of {sides} px{millimetres}"]
    for name, zone in plan.zones.items():
        share = np.count_nonzero(plan.draw_zone(name)) / (photograph.width * photograph.height)
        lines.append(f"{name}: {'ignored, ' if zone.ignored else ''}{100 * share:.3g} % of the photograph")
        lines += [f"{name}: {text}" for text in _zone_texts(zone)]
    lines += [f"{WHOLE_PART}: {rule_text(rule)}" for rule in plan.part.rules]
    lines.append(f"outside all zones: any defect: {CONSEQUENCES[plan.otherwise.outside_zones]}")
    lines.append(f"{UNEXPLAINED}: {CONSEQUENCES[plan.otherwise.unexplained]}")
    return "\n".join(lines)


def _zone_texts(zone: Zone) -> list[str]:
    if zone.ignored:
        return ["a defect that is completely inside and touches no other zone: accept"]
    for_each = [rule for rule in zone.rules if rule.is_for_each_defect]
    without_score = [rule for rule in for_each if not rule.min_score]
    limited = dict.fromkeys(
        rule.defect or "any defect" for rule in without_score if rule.condition is not None
    )
    named = {rule.defect for rule in without_score}
    texts = [rule_text(rule) for rule in zone.rules]
    texts += [f"{defect} within all limits: accept" for defect in limited]
    if None not in named:
        texts.append(f"any {'other ' if named else ''}defect: {CONSEQUENCES[zone.otherwise]}")
    return texts


def rule_text(rule: Rule) -> str:
    """Returns a rule, for example `scratch longer than 2 mm: reject`."""
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
    return f"{texts[rule.condition]}{counted}: {CONSEQUENCES[rule.then]}"


def size_error_text(plan: Plan, errors: SizeErrors | None) -> str:
    """Returns from which measured sizes of a model the limits of a plan decide, a line for each rule."""
    if errors is None:
        return (
            "The sizes that this model measures were not compared with masks: a limit of a size only leads "
            "to review. Train with photographs whose defects have masks."
        )
    lines = [f"Sizes of this model were compared with {errors.defects} masks of its training:"]
    for name, zone in plan.zones.items():
        for rule in zone.rules:
            if rule.condition in SIZE_LIMITS:
                size, (limit, unit) = SIZE_LIMITS[rule.condition], rule.limit
                low, high = getattr(errors, size)
                error = MEASURING_ERROR_PX / Scale(plan.photograph.scale).in_px(1.0, unit)
                within = min(limit / high, limit - error) if size != "area" else limit / high
                above = max(limit / low, limit + error) if size != "area" else limit / low
                lines.append(
                    f"{name}: {rule_text(rule)}; for review from a measured {size} of about "
                    f"{_number_text(max(within, 0.0))} {unit}, certain from {_number_text(above)} {unit}"
                )
    return "\n".join(lines)


def judgement_sentence(judgement: Judgement, plan: Plan) -> str:
    """Returns the finding that decided; empty for a part without a defect."""
    if judgement.findings:
        return finding_sentence(judgement.findings[0], plan)
    return "all defects are within the limits: accept" if judgement.defects else ""


def finding_sentence(finding: Finding, plan: Plan) -> str:
    """Returns a finding with its measure.

    For example `rim: length of scratch 2.3 mm (2.1 to 2.5 possible), limit 2 mm: reject`.
    """
    place, defect = finding.zone or WHOLE_PART, " and ".join(finding.classes) or "defect"
    causes: dict[Cause, str] = {
        "rule": f"{place}: {_measure_text(finding, plan, defect)}",
        "otherwise": f"{place}: {defect}, which no rule allows",
        "outside_zones": f"outside all zones: {defect}",
        "unexplained": UNEXPLAINED,
        "too_many_defects": "too many or too large defects to measure",
        "unlike_training": "photograph unlike those of the training",
    }
    uncertain = "" if finding.certain or finding.measured is not None else ", uncertain"
    return f"{causes[finding.cause]}{uncertain}: {CONSEQUENCES[finding.severity]}"


def _measure_text(finding: Finding, plan: Plan, defect: str) -> str:
    rules = (plan.part if finding.zone is None else plan.zones[finding.zone]).rules
    condition = None if finding.rule is None else rules[finding.rule].condition
    if finding.measured is None or finding.limit is None or condition is None:
        return defect
    value, low, high = map(_number_text, dataclasses.astuple(finding.measured))
    unit = f" {finding.unit}" if finding.unit else ""
    possible = "" if low == high else f" ({low} to {high} possible)"
    if math.isinf(finding.measured.high):
        possible = f" (at least {low})"
    limit = getattr(rules[finding.rule or 0], condition)
    exceeded = finding.measured.low > finding.limit and condition != "closer_than"
    uncertain = "" if finding.certain else ", zone or class uncertain" if exceeded else ", uncertain"
    return f"{MEASURED[condition]} of {defect} {value}{unit}{possible}, limit {limit}{uncertain}"


def _number_text(number: float) -> str:
    return f"{number:.0f}" if number >= 100 and math.isfinite(number) else f"{number:.3g}"
