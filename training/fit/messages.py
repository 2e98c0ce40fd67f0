"""The messages of `fit`: a topic, then a sentence, aligned and wrapped."""

from collections.abc import Iterable, Iterator, Mapping

from datasets.splitting import SPLITS
from training.config import ExperimentConfig
from training.fit.dataset_profile import DatasetProfile
from training.fit.splitting import DatasetSplit
from training.fit.training_plan import TrainingPlan
from training.formatting import count_of, format_duration, format_line
from training.metrics.rating import ENOUGH_STEPS


def describe_profile(profile: DatasetProfile, notes: Iterable[str]) -> Iterator[str]:
    """Yields lines about the data set."""
    yield format_line("folder", f"{profile.root}, read as layout '{profile.layout}'")
    size = f"{profile.width} × {profile.height} px" + ("" if profile.one_size else " (median, sizes differ)")
    parts = f", {count_of(profile.groups, 'part')}" if profile.groups < sum(profile.counts) else ""
    yield format_line("found", f"{count_of(sum(profile.counts), 'photograph')}{parts}, {size}")
    numbers = zip(profile.counts, profile.classes, strict=True)
    yield format_line("classes", ", ".join(f"{number} {name}" for number, name in numbers))
    if profile.defective:
        kinds = {"mask": profile.masks, "box": profile.boxes, "label only": profile.labels}
        plurals = {"mask": "masks", "box": "boxes", "label only": "labels only"}
        shown = ", ".join(count_of(number, kind, plurals[kind]) for kind, number in kinds.items() if number)
        if profile.smallest_px:
            shown += f"; the smallest has an area of {profile.smallest_px:.0f} × {profile.smallest_px:.0f} px"
        yield format_line("defects", shown)
    if profile.near_duplicates:
        text = f"{profile.near_duplicates} photographs have near duplicates"
        if profile.mixed_duplicates:
            text += f"; {count_of(profile.mixed_duplicates, 'cluster')} with good and defective ones"
        yield format_line("duplicates", text)
    for note in notes:
        yield format_line("note", note)


def describe_split(split: DatasetSplit) -> Iterator[str]:
    """Yields lines about the split."""
    counts = zip(SPLITS, split.good, split.defective, strict=True)
    listed = ", ".join(f"{name} {good} good + {defective} defective" for name, good, defective in counts)
    yield format_line("split", "; ".join([listed, *split.reasons]))


def describe_reasons(reasons: Mapping[str, str]) -> Iterator[str]:
    """Yields the chosen settings with their reasons."""
    for topic, text in reasons.items():
        yield format_line(topic, text)


def describe_plan(plan: TrainingPlan, config: ExperimentConfig, minutes: float) -> str:
    """Returns the planned steps and durations."""
    steps = ", ".join(f"{name} {number}" for name, number in plan.steps.items())
    short = f"; fewer than {ENOUGH_STEPS} steps train a poor model: raise --minutes" if plan.is_short else ""
    late = f"; with the minimum number of steps {format_duration(plan.overrun_s)} over --minutes"
    return format_line(
        "time",
        f"{steps} steps of {config.batch_size} photographs, {1000 * plan.times.step_s:.0f} ms each "
        f"(measured), validation every {plan.validate_every} steps; about {format_duration(plan.training_s)} "
        f"to train and {format_duration(plan.post_training_s)} to evaluate and export, of "
        f"--minutes {minutes:g}"
        f"{late if plan.overrun_s else ''}{short}",
    )
