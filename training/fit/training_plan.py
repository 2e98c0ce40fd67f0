"""Computes the steps of each stage from measured step times and the remaining time."""

import math
from dataclasses import dataclass, replace

from training.metrics.rating import ENOUGH_STEPS

COST = {"segment": 1.0, "decision": 0.7, "joint": 1.1}
"""Approximate duration of a step relative to one of the stage `segment`."""

ORIENTATIONS = 4
"""Orientations of an image: the original, and flipped along one axis or both."""

VALIDATION_SHARE = 0.15
"""Share of the training time for validations, without the one at the end of each stage."""

MAX_VALIDATIONS = 20
MIN_STEPS = 30
"""Minimum number of steps, even if they exceed the time limit: a late model is better than none."""

EVALUATION_START_FACTOR, EXPORT_START_FACTOR = 1.2, 2.0
"""Duration of evaluation and export without their images, in multiples of the start of a training."""

EVALUATION_COST = 3.0
"""Duration of evaluating one image, in multiples of a prediction."""


@dataclass(frozen=True)
class StepTimes:
    """Durations measured on a few images, s.

    Attributes:
        start_s: Start of a run: networks, data and folder.
        compile_s: Additional duration of the first step of a stage.
        step_s: One step of `stage`.
        stage: The measured stage.
        predict_s: Validation of one image.
        draw_s: Fixed part of a validation, with its pictures.
        first_s: Additional duration of the first validation.
        feature_s: Encoder features of one image; 0 without a feature cache.
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
        """Returns the expected durations for an input with this share of the pixels."""
        return replace(
            self,
            step_s=self.step_s * share,
            predict_s=self.predict_s * share,
            feature_s=self.feature_s * share,
        )

    def stage_step_s(self, stage: str) -> float:
        """Returns the duration of one step of a stage, s."""
        return self.step_s * COST[stage] / COST[self.stage]


@dataclass(frozen=True)
class DatasetSizes:
    """Numbers of images to train, to validate and to evaluate, and per step."""

    train: int
    val: int
    evaluated: int
    batch: int

    def features(self, images: float) -> float:
        """Returns the expected number of computed features after `images` random draws."""
        variants = ORIENTATIONS * self.train
        return variants * -math.expm1(-images / variants)


@dataclass(frozen=True)
class TrainingPlan:
    """Steps and durations of a training.

    Attributes:
        steps: Steps of each stage.
        validate_every: Steps between validations.
        times: The measured durations.
        sizes: Numbers of images.
        training_s: Duration from the start of the run to its result.
        post_training_s: Duration of evaluation, report and export.
        overrun_s: Duration beyond the time limit; 0 if the limit is kept.
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
        """Whether there are fewer than `ENOUGH_STEPS`; a smaller input is then better."""
        return sum(self.steps.values()) < ENOUGH_STEPS

    @property
    def validation_s(self) -> float:
        """Duration of one validation, s."""
        return validation_s(self.times, self.sizes)

    def step_s(self, stage: str) -> float:
        """Returns the duration of a step including its share of the validations of its stage, s."""
        steps = self.steps[stage]
        within = math.ceil(steps / self.validate_every) - 1
        return self.times.stage_step_s(stage) + within * self.validation_s / steps


def validation_s(times: StepTimes, sizes: DatasetSizes) -> float:
    """Returns the duration of one validation, s."""
    return times.predict_s * sizes.val + times.draw_s


def post_training_s(times: StepTimes, sizes: DatasetSizes) -> float:
    """Returns the duration of everything after the training, s."""
    photographs = EVALUATION_COST * sizes.evaluated + sizes.val
    return (EVALUATION_START_FACTOR + EXPORT_START_FACTOR) * times.start_s + photographs * times.predict_s


def plan_training(
    shares: dict[str, float], times: StepTimes, sizes: DatasetSizes, left_s: float
) -> TrainingPlan:
    """Plans a training that is evaluated and exported within the remaining time.

    Args:
        shares: Share of the steps of each stage.
        times: The measured durations.
        sizes: Numbers of images.
        left_s: Remaining time, s.
    """
    tail, once = post_training_s(times, sizes), validation_s(times, sizes)
    fixed = times.start_s + len(shares) * (times.compile_s + once) + once + times.first_s
    training = left_s - tail
    free = training - fixed
    affordable = VALIDATION_SHARE * max(free, 0.0) / once if once else MAX_VALIDATIONS
    validations = min(MAX_VALIDATIONS, int(affordable))
    free -= validations * once

    def duration(steps: float) -> float:
        own = sum(share * steps * times.stage_step_s(stage) for stage, share in shares.items())
        return own + times.feature_s * sizes.features(steps * sizes.batch)

    late = max(duration(MIN_STEPS) - free, 0.0)
    low, high = float(MIN_STEPS), 1e7
    for _ in range(60):  # the feature cache makes the duration nonlinear
        middle = (low + high) / 2
        low, high = (middle, high) if duration(middle) <= free else (low, middle)
    steps = {stage: max(1, round(share * low)) for stage, share in shares.items()}
    return TrainingPlan(steps, _interval(steps, validations), times, sizes, training + late, tail, late)


def _interval(steps: dict[str, int], validations: int) -> int:
    """Steps between validations, so that the last interval of the longest stage is a full one."""
    longest = max(steps.values())
    within = round(validations * longest / sum(steps.values()))
    return math.ceil(longest / (within + 1))
