"""Judges photographs by an inspection plan."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from segdec.artifact import Manifest
from segdec.config import ModelConfig
from segdec.errors import ConfigError, ImageError
from segdec.inference.postprocessing import Prediction
from segdec.plan.defect_measuring import DefectMeasurer
from segdec.plan.findings import Finding, Judgement, MeasuredDefect
from segdec.plan.inspection_plan import Plan
from segdec.plan.quantities import Scale
from segdec.plan.rule_findings import RuleSet
from segdec.plan.severity import RANKS, worst
from segdec.runtime.identifiers import REVIEW


class PlanJudge:
    """Judges the predictions of one model by one plan.

    Args:
        plan: The plan.
        config: The model.

    Attributes:
        plan: As given.

    Raises:
        ConfigError: If a rule names a class that the model does not find; as `DefectMeasurer`.
    """

    def __init__(self, plan: Plan, config: ModelConfig) -> None:
        self.plan = plan
        self._config = config
        _check_classes(plan, config)
        self._measurer = DefectMeasurer(plan, config)
        scale = plan.photograph.scale
        self._rules = [RuleSet(None, plan.part.rules, "accept", Scale(scale))]
        for name, area in self._measurer.areas.items():
            zone = plan.zones[name]
            self._rules.append(RuleSet(name, zone.rules, zone.otherwise, Scale(scale, area)))

    def judge(self, prediction: Prediction, *, unlike: bool) -> Judgement:
        """Returns the verdict of the plan about a photograph.

        A photograph that the model calls good is good. `unlike` is whether it is unlike those of the
        training: it is then not good.

        Raises:
            ImageError: With the code `plan_size`, if the photograph has another size than the plan.
        """
        self.check_size(*prediction.mask.shape)
        if prediction.label == self._config.classes[0] and not unlike:
            return Judgement(prediction.label, "accept")
        defects, too_many = self._measurer.measure(prediction)
        findings = [
            *self._find_unexplained(prediction, bool(defects)),
            *self._find_outside(defects),
            *(finding for rules in self._rules for finding in rules.apply(defects)),
        ]
        if too_many:
            findings.append(Finding("review", "too_many_defects", True))
        if unlike:
            findings.append(Finding("review", "unlike_training", True))
        if prediction.score < prediction.threshold:
            findings = [replace(finding, certain=False) for finding in findings]
        return _decide(findings, tuple(defects), prediction)

    def check_size(self, height: int, width: int) -> None:
        """Raises an ImageError with the code `plan_size` if a photograph has another size than the plan."""
        photograph = self.plan.photograph
        if (height, width) != (photograph.height, photograph.width):
            raise ImageError(
                f"The photograph has {width} × {height} px, but the plan '{self.plan.name}' is for "
                f"{photograph.width} × {photograph.height} px. Expected that size, since zones and scale are "
                "in its pixels.",
                code="plan_size",
            )

    def _find_unexplained(self, prediction: Prediction, has_defects: bool) -> Iterator[Finding]:
        lowest = prediction.threshold if prediction.review_threshold is None else prediction.review_threshold
        in_mask = has_defects and prediction.mask_threshold >= self._config.thresholds.mask
        if prediction.score >= lowest and not in_mask:
            yield Finding(self.plan.otherwise.unexplained, "unexplained", True)

    def _find_outside(self, defects: Sequence[MeasuredDefect]) -> Iterator[Finding]:
        for number, defect in enumerate(defects):
            if defect.outside is not False:
                then, certain = self.plan.otherwise.outside_zones, defect.outside is True
                yield Finding(then, "outside_zones", certain, defect=number, classes=defect.classes)


def _decide(
    findings: Iterable[Finding], defects: tuple[MeasuredDefect, ...], prediction: Prediction
) -> Judgement:
    relevant = [finding for finding in findings if finding.severity != "accept"]
    relevant.sort(key=lambda finding: _precedence(finding, defects))
    severity = worst(*(finding.severity for finding in relevant))
    good, *classes = prediction.probabilities
    if severity in ("accept", "note"):
        label = good
    elif severity == "review":
        label = REVIEW
    else:
        likely = max(classes, key=prediction.probabilities.__getitem__)
        label = relevant[0].classes[0] if relevant[0].classes else likely
    return Judgement(label, severity, tuple(relevant), defects)


def _precedence(finding: Finding, defects: Sequence[MeasuredDefect]) -> tuple[int, bool, int, int]:
    """Returns a key that sorts findings: the worst, certain ones, large defects, zones with most of them."""
    zones = () if finding.defect is None else (*defects[finding.defect].zones,)
    place = zones.index(finding.zone) if finding.zone in zones else len(zones)
    defect = -1 if finding.defect is None else finding.defect
    return -RANKS[finding.severity], not finding.certain, defect, place


def check_trained_size(plan: Plan, model: Manifest) -> None:
    """Raises ConfigError if no training photograph can have had the size of the plan."""
    trained, photograph = model.training_photographs, plan.photograph
    if trained is None:
        return
    (lowest, highest), (narrowest, widest) = trained.heights, trained.widths
    if not (lowest <= photograph.height <= highest and narrowest <= photograph.width <= widest):
        raise ConfigError(
            f"The plan is for photographs of {photograph.width} × {photograph.height} px, but the model was "
            f"trained on {narrowest} × {lowest} to {widest} × {highest} px. Expected the plan of this model."
        )


def _check_classes(plan: Plan, config: ModelConfig) -> None:
    known = config.classes[1:]
    named = [(place, rule.defect) for place, rule in plan.rules() if rule.defect is not None]
    for place, defect in named:
        if defect not in known:
            raise ConfigError(
                f"{place} names the defect '{defect}'. Expected a class of the model: {', '.join(known)}."
            )
    if named and len(known) > 1 and not config.network.mask_classes:
        raise ConfigError(
            f"{named[0][0]} names the defect '{named[0][1]}', but the mask of the model "
            "does not distinguish its classes. Expected a model with a mask for each class "
            "(network.mask_classes), or rules for any defect."
        )
