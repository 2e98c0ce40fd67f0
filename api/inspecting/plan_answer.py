"""Describes the verdict of an inspection plan."""

import math
from collections.abc import Mapping

from api.models.active_plans import ActivePlan
from segdec.plan.findings import Finding, Judgement, MeasuredDefect
from segdec.plan.inspection_plan import Plan
from segdec.plan.quantities import Scale
from segdec.plan.sentences import finding_sentence, judgement_sentence
from segdec.plan.size_intervals import Measurement
from segdec.schemas import PlanAnswer, PlanDefect, PlanFinding, PlanSize, PlanVerdict

MAX_FINDINGS, MAX_DEFECTS = 50, 50
"""The worst findings and the largest defects that an answer has: many defects in many zones have thousands
of findings.
"""
SIGNIFICANT_DIGITS = 6
"""Of sizes: more than any mask justifies."""


def make_plan_answer(active: ActivePlan, judgement: Judgement) -> PlanAnswer:
    """Describes the verdict of a stored plan."""
    verdict = make_verdict(judgement, active.plan)
    return PlanAnswer(
        **dict(verdict), name=active.plan.name, version=active.number, sha256=active.stored.sha256
    )


def make_verdict(judgement: Judgement, plan: Plan) -> PlanVerdict:
    """Describes the verdict of a plan, which need not be stored."""
    return PlanVerdict(
        severity=judgement.severity,
        sentence=judgement_sentence(judgement, plan),
        findings=[_describe_finding(finding, plan) for finding in judgement.findings[:MAX_FINDINGS]],
        finding_count=len(judgement.findings),
        defects=[_describe_defect(defect, plan) for defect in judgement.defects[:MAX_DEFECTS]],
        defect_count=len(judgement.defects),
    )


def _describe_finding(finding: Finding, plan: Plan) -> PlanFinding:
    measured = None if finding.measured is None else _describe_size(finding.measured, finding.unit)
    rules = (plan.part if finding.zone is None else plan.zones[finding.zone]).rules
    return PlanFinding(
        severity=finding.severity,
        cause=finding.cause,
        certain=finding.certain,
        zone=finding.zone,
        rule=finding.rule,
        condition=None if finding.rule is None else rules[finding.rule].condition,
        defect=finding.defect,
        classes=list(finding.classes),
        measured=measured,
        limit=finding.limit,
        sentence=finding_sentence(finding, plan),
    )


def _describe_defect(defect: MeasuredDefect, plan: Plan) -> PlanDefect:
    unit = "px" if plan.photograph.scale is None else "mm"
    scale, units = Scale(plan.photograph.scale), {"length": unit, "width": unit, "area": f"{unit}²"}
    sizes: Mapping[str, PlanSize] = {
        name: _describe_size(getattr(defect.sizes, name).divided(scale.in_px(1.0, of)), of)
        for name, of in units.items()
    }
    return PlanDefect(
        bbox=defect.bbox,
        classes=list(defect.classes),
        score_max=defect.score_max,
        **sizes,
        zones=list(defect.zones),
        outside=defect.outside,
    )


def _describe_size(measured: Measurement, unit: str) -> PlanSize:
    numbers = measured.value, measured.low, measured.high
    value, low, high = (float(f"{number:.{SIGNIFICANT_DIGITS}g}") for number in numbers)
    return PlanSize(value=value, low=low, high=None if math.isinf(high) else high, unit=unit)
