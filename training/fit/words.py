"""What fit says: a topic, then a sentence, aligned and wrapped."""

import textwrap
from collections.abc import Iterable, Iterator

from training.config import ExperimentConfig
from training.evaluation.formatting import count_of
from training.fit.choice import Reason
from training.fit.division import Division
from training.fit.plan import ENOUGH_STEPS, Plan
from training.fit.survey import Survey
from training.tracking.durations import format_duration

INDENT, WIDTH = 12, 110


def line(topic: str, text: str) -> str:
    """Returns a topic with its sentence, later lines below the sentence."""
    wrapped = textwrap.wrap(text, WIDTH - INDENT, break_on_hyphens=False, break_long_words=False)
    return "\n".join(f"{topic if not number else '':<{INDENT}}{part}" for number, part in enumerate(wrapped))


def tell_survey(survey: Survey, notes: Iterable[str]) -> Iterator[str]:
    """Yields what was found."""
    yield line("folder", f"{survey.root}, read as layout '{survey.layout}'")
    size = f"{survey.width} × {survey.height} px" + (
        "" if survey.one_size else " by the median, their sizes differ"
    )
    parts = f", {count_of(survey.groups, 'part')}" if survey.groups < sum(survey.counts) else ""
    yield line("found", f"{count_of(sum(survey.counts), 'photograph')}{parts}, {size}")
    counts = ", ".join(f"{number} {name}" for name, number in zip(survey.classes, survey.counts, strict=True))
    yield line("classes", counts)
    if survey.defective:
        kinds = {"mask": survey.masks, "box": survey.boxes, "label alone": survey.labels}
        plurals = {"mask": "masks", "box": "boxes", "label alone": "labels alone"}
        shown = ", ".join(count_of(number, kind, plurals[kind]) for kind, number in kinds.items() if number)
        side = f"{survey.smallest_px:.0f}" if survey.smallest_px else ""
        small = f"; the smallest has the area of a square of {side} × {side} px" if side else ""
        yield line("defects", f"{shown}{small}")
    if survey.twins:
        mixed = (
            f"; {count_of(survey.mixed_twins, 'cluster')} hold good and defective ones"
            if survey.mixed_twins
            else ""
        )
        yield line("twins", f"{survey.twins} photographs have near twins{mixed}")
    for note in notes:
        yield line("note", note)


def tell_division(division: Division) -> Iterator[str]:
    """Yields what trains, validates and tests."""
    names = ("train", "val", "test")
    counts = zip(names, division.good, division.defective, strict=True)
    told = ", ".join(f"{name} {good} good + {defective} defective" for name, good, defective in counts)
    yield line("split", "; ".join([told, *division.reasons]))


def tell_reasons(reasons: Iterable[Reason]) -> Iterator[str]:
    """Yields what was chosen, and why."""
    for reason in reasons:
        yield line(reason.topic, reason.text)


def tell_plan(plan: Plan, config: ExperimentConfig, minutes: float) -> str:
    """Returns how the time is spent."""
    steps = ", ".join(f"{name} {number}" for name, number in plan.steps.items())
    short = f"; fewer than {ENOUGH_STEPS} steps teach little: give more --minutes" if plan.is_short else ""
    late = f"; that is {format_duration(plan.late_s)} longer than --minutes allows, with the fewest steps"
    return line(
        "time",
        f"{steps} steps of {config.batch_size} photographs, {1000 * plan.speed.step_s:.0f} ms each as "
        f"measured, a validation every {plan.validate_every}; about {format_duration(plan.training_s)} to "
        f"train and {format_duration(plan.tail_s)} to measure and export, of --minutes {minutes:g}"
        f"{late if plan.late_s else ''}{short}",
    )
