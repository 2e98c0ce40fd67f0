"""The messages of `fit`: a topic, then a sentence, aligned and wrapped."""

from collections.abc import Iterable, Iterator, Mapping

from datasets.splitting import SPLITS
from segdec.runtime.counts import count_of
from training.config import ExperimentConfig
from training.fit.dataset_profile import DatasetProfile
from training.fit.splitting import DatasetSplit
from training.fit.time_control import MIN_CACHED_STEPS
from training.formatting import format_duration, format_line
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
    used = [(name, good, defective) for name, good, defective in counts if good + defective]
    listed = ", ".join(f"{name} {good} good + {defective} defective" for name, good, defective in used)
    yield format_line("split", "; ".join([listed, *split.reasons]))


def describe_reasons(reasons: Mapping[str, str]) -> Iterator[str]:
    """Yields the chosen settings with their reasons."""
    for topic, text in reasons.items():
        yield format_line(topic, text)


def describe_plan(config: ExperimentConfig, left_s: float, minutes: float, *, all_steps: bool = False) -> str:
    """Returns the planned steps and the time for them; with `all_steps` the time should not end them."""
    if not config.network.heads:
        return format_line("time", "a few seconds after all photographs were encoded once")
    if left_s <= 0:
        steps = count_of(MIN_CACHED_STEPS if config.caches_features else 1, "step")
        return format_line("time", f"none of --minutes {minutes:g} is left to train: {steps} for each stage")
    return format_line(
        "time",
        f"{'all' if all_steps else 'at most'} {describe_steps(config)} of {config.batch_size} photographs, "
        f"validation every {config.validate_every}; of --minutes {minutes:g} training may take "
        f"{format_duration(left_s)}",
    )


def describe_few_steps(taken: int, minutes: float, enough_minutes: float) -> str:
    """Returns a sentence about a training with fewer steps than a useful model needs."""
    return format_line(
        "steps",
        f"Only {count_of(taken, 'step')} fitted into --minutes {minutes:g}. With --minutes "
        f"{enough_minutes:g}, about {ENOUGH_STEPS} would.",
    )


def describe_steps(config: ExperimentConfig) -> str:
    """Returns the number of steps, and that of each stage."""
    steps = config.stages.steps
    listed = ", ".join(f"{name} {number}" for name, number in steps.items())
    return f"{sum(steps.values())} steps ({listed})" if listed else "no steps"
