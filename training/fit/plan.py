"""From measured speed and the time that is left to the steps of each stage. Pure arithmetic."""

import math
from dataclasses import dataclass, replace

COST = {"segment": 1.0, "decision": 0.7, "joint": 1.1}
"""Duration of a step beside that of the stage `segment`, about: one part moves, the other one, both."""

FORMS = 4
"""How a photograph may lie: as it is, and flipped along either side or both."""

VALIDATING = 0.15
"""Share of the time for training that validations may take, beside the one that ends each stage."""

MOST_VALIDATIONS = 20
FEWEST_STEPS = 30
"""As many are taken even if the time does not suffice, which is said: a late model is better than none."""

ENOUGH_STEPS = 300
"""Of fewer the network learns too little: a smaller input is better then."""

EVALUATION_STARTS, EXPORT_STARTS = 1.2, 2.0
"""What evaluation with its report, and the export, take beside their photographs, in starts of a training:
all three build networks and write files, so that a machine slow in one is slow in the others."""

REPORTED = 3.0
"""What measuring a photograph takes, in predictions of it: metrics, intervals and pictures beside its own."""


@dataclass(frozen=True)
class Speed:
    """What was measured on a few photographs, s.

    Attributes:
        start_s: Making networks, data and folder of a run.
        compile_s: What the first step of a stage takes beside its own time.
        step_s: A step of `stage`.
        stage: The stage whose step was measured.
        predict_s: A photograph of validation.
        draw_s: The pictures of a validation, and what it takes without any photograph.
        first_s: What the first validation takes beside the later ones.
        feature_s: The encoder's features of a photograph; 0 where none are kept.
    """

    start_s: float
    compile_s: float
    step_s: float
    stage: str
    predict_s: float
    draw_s: float = 0.0
    first_s: float = 0.0
    feature_s: float = 0.0

    def scaled(self, share: float) -> "Speed":
        """Returns what is to be expected of an input of this share of the pixels."""
        return replace(
            self,
            step_s=self.step_s * share,
            predict_s=self.predict_s * share,
            feature_s=self.feature_s * share,
        )

    def of_stage(self, stage: str) -> float:
        """Returns the duration of a step of any stage, s."""
        return self.step_s * COST[stage] / COST[self.stage]


@dataclass(frozen=True)
class Amounts:
    """How many photographs there are, and how many a step takes."""

    train: int
    val: int
    judged: int
    batch: int

    def features(self, images: float) -> float:
        """Returns how many features are computed in all until so many images were seen, each drawn alike."""
        forms = FORMS * self.train
        return forms * -math.expm1(-images / forms)


@dataclass(frozen=True)
class Plan:
    """How the time is spent.

    Attributes:
        steps: Of each stage.
        validate_every: Steps from validation to validation.
        speed: What it was planned by.
        amounts: Of photographs.
        training_s: All from the start of the run to its result.
        tail_s: Evaluation, report and export.
        late_s: What it takes beyond the time that is left; 0 where that suffices.
    """

    steps: dict[str, int]
    validate_every: int
    speed: Speed
    amounts: Amounts
    training_s: float
    tail_s: float
    late_s: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether there are too few steps."""
        return sum(self.steps.values()) < ENOUGH_STEPS

    @property
    def validation_s(self) -> float:
        """Duration of one validation, s."""
        return validation_s(self.speed, self.amounts)

    def step_s(self, stage: str) -> float:
        """Returns the duration of a step with its part of the validations within its stage, s."""
        steps = self.steps[stage]
        within = math.ceil(steps / self.validate_every) - 1
        return self.speed.of_stage(stage) + within * self.validation_s / steps


def validation_s(speed: Speed, amounts: Amounts) -> float:
    """Returns the duration of one validation, s."""
    return speed.predict_s * amounts.val + speed.draw_s


def tail_s(speed: Speed, amounts: Amounts) -> float:
    """Returns what follows training, s."""
    photographs = REPORTED * amounts.judged + amounts.val
    return (EVALUATION_STARTS + EXPORT_STARTS) * speed.start_s + photographs * speed.predict_s


def plan(shares: dict[str, float], speed: Speed, amounts: Amounts, left_s: float) -> Plan:
    """Plans a training that ends, measured and exported, when the time is over.

    Args:
        shares: Part of the steps of each stage.
        speed: What was measured.
        amounts: Of photographs.
        left_s: What is left of the time.
    """
    tail, once = tail_s(speed, amounts), validation_s(speed, amounts)
    fixed = speed.start_s + len(shares) * (speed.compile_s + once) + once + speed.first_s
    training = left_s - tail
    free = training - fixed
    affordable = VALIDATING * max(free, 0.0) / once if once else MOST_VALIDATIONS
    validations = min(MOST_VALIDATIONS, int(affordable))
    free -= validations * once

    def takes(steps: float) -> float:
        own = sum(share * steps * speed.of_stage(stage) for stage, share in shares.items())
        return own + speed.feature_s * amounts.features(steps * amounts.batch)

    late = max(takes(FEWEST_STEPS) - free, 0.0)
    low, high = float(FEWEST_STEPS), 1e7
    for _ in range(60):  # features make it no straight line
        middle = (low + high) / 2
        low, high = (middle, high) if takes(middle) <= free else (low, middle)
    steps = {stage: max(1, round(share * low)) for stage, share in shares.items()}
    return Plan(steps, _interval(steps, validations), speed, amounts, training + late, tail, late)


def _interval(steps: dict[str, int], validations: int) -> int:
    """Steps between validations; each stage ends with one anyhow, and the last interval is not cut short."""
    longest = max(steps.values())
    within = round(validations * longest / sum(steps.values()))
    return math.ceil(longest / (within + 1))
