"""From measured speed and the time that is left to the steps of each stage. Pure arithmetic."""

import math
from dataclasses import dataclass, replace

COST = {"segment": 1.0, "decision": 0.7, "joint": 1.1}
"""Duration of a step beside that of the stage `segment`, about: one part moves, the other one, both."""

FORMS = 4
"""How a photograph may lie: as it is, and flipped along either side or both."""

VALIDATING = 0.15
"""Share of the time for training that validations may take, beside the one that ends each stage."""

MAX_VALIDATIONS = 20
MIN_STEPS = 30
"""As many are taken even if the time does not suffice, which is said: a late model is better than none."""

ENOUGH_STEPS = 300
"""Of fewer the network learns too little: a smaller input is better then."""

EVALUATION_STARTS, EXPORT_STARTS = 1.2, 2.0
"""What evaluation with its report, and the export, take beside their photographs, in starts of a training:
all three build networks and write files, so that a machine slow in one is slow in the others."""

REPORTED = 3.0
"""What measuring a photograph takes, in predictions of it: metrics, intervals and pictures beside its own."""


@dataclass(frozen=True)
class StepTimes:
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

    def scaled(self, share: float) -> "StepTimes":
        """Returns what is to be expected of an input of this share of the pixels."""
        return replace(
            self,
            step_s=self.step_s * share,
            predict_s=self.predict_s * share,
            feature_s=self.feature_s * share,
        )

    def stage_step_s(self, stage: str) -> float:
        """Returns the duration of a step of any stage, s."""
        return self.step_s * COST[stage] / COST[self.stage]


@dataclass(frozen=True)
class DatasetSizes:
    """How many photographs there are, and how many a step takes."""

    train: int
    val: int
    evaluated: int
    batch: int

    def features(self, images: float) -> float:
        """Returns how many features are computed in all until so many images were seen, each drawn alike."""
        forms = FORMS * self.train
        return forms * -math.expm1(-images / forms)


@dataclass(frozen=True)
class TrainingPlan:
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
    times: StepTimes
    sizes: DatasetSizes
    training_s: float
    post_training_s: float
    overrun_s: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether there are too few steps."""
        return sum(self.steps.values()) < ENOUGH_STEPS

    @property
    def validation_s(self) -> float:
        """Duration of one validation, s."""
        return validation_s(self.times, self.sizes)

    def step_s(self, stage: str) -> float:
        """Returns the duration of a step with its part of the validations within its stage, s."""
        steps = self.steps[stage]
        within = math.ceil(steps / self.validate_every) - 1
        return self.times.stage_step_s(stage) + within * self.validation_s / steps


def validation_s(times: StepTimes, sizes: DatasetSizes) -> float:
    """Returns the duration of one validation, s."""
    return times.predict_s * sizes.val + times.draw_s


def post_training_s(times: StepTimes, sizes: DatasetSizes) -> float:
    """Returns what follows training, s."""
    photographs = REPORTED * sizes.evaluated + sizes.val
    return (EVALUATION_STARTS + EXPORT_STARTS) * times.start_s + photographs * times.predict_s


def plan_training(
    shares: dict[str, float], times: StepTimes, sizes: DatasetSizes, left_s: float
) -> TrainingPlan:
    """Plans a training that ends, measured and exported, when the time is over.

    Args:
        shares: Part of the steps of each stage.
        speed: What was measured.
        amounts: Of photographs.
        left_s: What is left of the time.
    """
    tail, once = post_training_s(times, sizes), validation_s(times, sizes)
    fixed = times.start_s + len(shares) * (times.compile_s + once) + once + times.first_s
    training = left_s - tail
    free = training - fixed
    affordable = VALIDATING * max(free, 0.0) / once if once else MAX_VALIDATIONS
    validations = min(MAX_VALIDATIONS, int(affordable))
    free -= validations * once

    def takes(steps: float) -> float:
        own = sum(share * steps * times.stage_step_s(stage) for stage, share in shares.items())
        return own + times.feature_s * sizes.features(steps * sizes.batch)

    late = max(takes(MIN_STEPS) - free, 0.0)
    low, high = float(MIN_STEPS), 1e7
    for _ in range(60):  # features make it no straight line
        middle = (low + high) / 2
        low, high = (middle, high) if takes(middle) <= free else (low, middle)
    steps = {stage: max(1, round(share * low)) for stage, share in shares.items()}
    return TrainingPlan(steps, _interval(steps, validations), times, sizes, training + late, tail, late)


def _interval(steps: dict[str, int], validations: int) -> int:
    """Steps between validations; each stage ends with one anyhow, and the last interval is not cut short."""
    longest = max(steps.values())
    within = round(validations * longest / sum(steps.values()))
    return math.ceil(longest / (within + 1))
