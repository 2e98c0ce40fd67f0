"""What fit says: a topic, then a sentence, aligned and wrapped."""

import textwrap
from collections.abc import Iterable, Iterator

from training.config import ExperimentConfig
from training.fit.dataset_profile import DatasetProfile
from training.fit.experiment_choice import Reason
from training.fit.splitting import DatasetSplit
from training.fit.training_plan import ENOUGH_STEPS, TrainingPlan
from training.formatting import count_of
from training.run.durations import format_duration

INDENT, WIDTH = 12, 110


def format_line(topic: str, text: str) -> str:
    """Returns a topic with its sentence, later lines below the sentence."""
    wrapped = textwrap.wrap(text, WIDTH - INDENT, break_on_hyphens=False, break_long_words=False)
    return "\n".join(f"{topic if not number else '':<{INDENT}}{part}" for number, part in enumerate(wrapped))


def describe_profile(profile: DatasetProfile, notes: Iterable[str]) -> Iterator[str]:
    """Yields what was found."""
    yield format_line("folder", f"{profile.root}, read as layout '{profile.layout}'")
    size = f"{profile.width} × {profile.height} px" + (
        "" if profile.one_size else " by the median, their sizes differ"
    )
    parts = f", {count_of(profile.groups, 'part')}" if profile.groups < sum(profile.counts) else ""
    yield format_line("found", f"{count_of(sum(profile.counts), 'photograph')}{parts}, {size}")
    counts = ", ".join(
        f"{number} {name}" for name, number in zip(profile.classes, profile.counts, strict=True)
    )
    yield format_line("classes", counts)
    if profile.defective:
        kinds = {"mask": profile.masks, "box": profile.boxes, "label alone": profile.labels}
        plurals = {"mask": "masks", "box": "boxes", "label alone": "labels alone"}
        shown = ", ".join(count_of(number, kind, plurals[kind]) for kind, number in kinds.items() if number)
        side = f"{profile.smallest_px:.0f}" if profile.smallest_px else ""
        small = f"; the smallest has the area of a square of {side} × {side} px" if side else ""
        yield format_line("defects", f"{shown}{small}")
    if profile.twins:
        mixed = (
            f"; {count_of(profile.mixed_twins, 'cluster')} hold good and defective ones"
            if profile.mixed_twins
            else ""
        )
        yield format_line("twins", f"{profile.twins} photographs have near twins{mixed}")
    for note in notes:
        yield format_line("note", note)


def describe_split(division: DatasetSplit) -> Iterator[str]:
    """Yields what trains, validates and tests."""
    names = ("train", "val", "test")
    counts = zip(names, division.good, division.defective, strict=True)
    told = ", ".join(f"{name} {good} good + {defective} defective" for name, good, defective in counts)
    yield format_line("split", "; ".join([told, *division.reasons]))


def describe_reasons(reasons: Iterable[Reason]) -> Iterator[str]:
    """Yields what was chosen, and why."""
    for reason in reasons:
        yield format_line(reason.topic, reason.text)


def describe_plan(plan: TrainingPlan, config: ExperimentConfig, minutes: float) -> str:
    """Returns how the time is spent."""
    steps = ", ".join(f"{name} {number}" for name, number in plan.steps.items())
    short = f"; fewer than {ENOUGH_STEPS} steps teach little: give more --minutes" if plan.is_short else ""
    late = f"; that is {format_duration(plan.overrun_s)} longer than --minutes allows, with the fewest steps"
    return format_line(
        "time",
        f"{steps} steps of {config.batch_size} photographs, {1000 * plan.times.step_s:.0f} ms each as "
        f"measured, a validation every {plan.validate_every}; about {format_duration(plan.training_s)} to "
        f"train and {format_duration(plan.post_training_s)} to measure and export, of --minutes {minutes:g}"
        f"{late if plan.overrun_s else ''}{short}",
    )
