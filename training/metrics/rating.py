"""Rates a model by its evaluation: whether it may be used, and if not, what to do."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from segdec.artifact.rating import RatingLevel
from segdec.runtime.counts import count_of
from training.formatting import format_figure, format_percent
from training.metrics.evaluation import Evaluation
from training.metrics.intervals import LEVEL
from training.metrics.metrics import ClassMetrics, Metrics
from training.metrics.photograph_results import PhotographResult

MAX_ERROR_SHARE = 0.1
"""Largest share of missed defective photographs, and of good ones that are not passed, of a usable model."""

MIN_MARGIN = 0.5
"""Smallest margin of a model that is not useless: the share of defective photographs that are not passed,
minus that of good ones. It is 0 by chance, 1 without an error."""

MAX_RATE = 0.5
"""A rate whose 95 % interval reaches this value proves nothing."""

MIN_PIXEL_F1 = 0.1
"""F1 of the pixels below which masks do not show the defects. Small defects rarely reach high values."""

ENOUGH_STEPS = 300
"""Minimum number of steps for a useful model."""

ENOUGH_DEFECTS = 20
"""Defective training photographs, and tested ones, from which more of them are not the first advice."""

ENOUGH_AUROC = 0.98
"""AUROC from which more defective photographs hardly raised it in the measurements of docs/evaluation.md."""

NO_CAUSE = (
    "Check the labels of the errors in the report, and all labels, for example on a contact sheet (command "
    "line: python -m datasets inspect); if they are right, train longer."
)
"""Advice if nothing is known to be too little."""

SEEN = {
    "train": "The model was trained on these photographs, so the values are too good.",
    "val": "These photographs also chose weights and thresholds, so the values are too good.",
}


@dataclass(frozen=True)
class TrainingFacts:
    """What is known about the training of a model.

    Attributes:
        steps: Steps of all stages; None if the training continued from another model, or there is none.
        defective: Defective training photographs; `unlocalized` of them have no mask or box.
        decision_trained: Whether a step trained the decision network.
    """

    steps: int | None
    defective: int
    unlocalized: int
    decision_trained: bool = True

    @property
    def is_short(self) -> bool:
        """Whether there were fewer than `ENOUGH_STEPS`."""
        return self.steps is not None and self.steps < ENOUGH_STEPS


@dataclass(frozen=True)
class Rating:
    """The rating of a model.

    Attributes:
        level: `useless`: not clearly better than chance, must not be served. `weak`: better than chance, but
            with many errors or too little evidence. `not measurable`: too few photographs to test.
        reason: What was measured and why this gives the level, in sentences.
        advice: What to do next, the most important first; empty for a usable model.
        needs_threshold: Whether the scores separate good and defective photographs better than the threshold.
    """

    level: RatingLevel
    reason: str
    advice: tuple[str, ...] = ()
    needs_threshold: bool = False


def rate(evaluation: Evaluation, training: TrainingFacts) -> Rating:
    """Rates a model by the photographs it was evaluated on; see docs/evaluation.md for the rules."""
    metrics, results = evaluation.metrics, evaluation.results
    splits = {result.split for result in results}
    level, reasons = _find_level(metrics, results, training)
    if level in ("usable", "weak"):
        doubts = [*_list_doubts(metrics), *(SEEN[split] for split in SEEN if split in splits)]
        level, reasons = ("weak" if doubts else "usable"), doubts
    area = metrics.intervals.get("auroc")
    separates = level == "useless" and training.decision_trained and area is not None and area.low > 0.5
    advice: tuple[str, ...] = ()
    if level != "usable":
        advice = tuple(_advise(metrics, training, separates=separates)) or (NO_CAUSE,)
        advice = (*advice, *_advise_further_defects(evaluation, training))
    places = {"out-of-fold" if split.startswith("fold_") else split for split in splits - {""}}
    measured = _describe(metrics, "/".join(sorted(places)) or "evaluated")
    return Rating(level, " ".join([measured, *reasons]), advice, separates)


def _find_level(
    metrics: Metrics, results: Sequence[PhotographResult], training: TrainingFacts
) -> tuple[RatingLevel, list[str]]:
    """The level without a distinction of usable and weak, and its reasons."""
    missing = _describe_missing(metrics, results)
    if not training.decision_trained:
        return "useless", ["No stage trained the decision network."]
    if missing is None:
        margin = _margin(metrics)
        if margin < MIN_MARGIN:
            return "useless", ["This is closer to chance than to a model that decides correctly."]
        if _chance_p_value(results) <= 1 - LEVEL:
            return "usable", []
        missing = "With so few photographs this may be by chance."
    if _misjudges_all(metrics):
        return "useless", ["It decides wrong for at least half of these."]
    if training.is_short:
        steps = count_of(training.steps or 0, "step")
        return "useless", [missing, f"After only {steps} nothing shows that the model has learnt anything."]
    return "not measurable", [missing]


def _describe_missing(metrics: Metrics, results: Sequence[PhotographResult]) -> str | None:
    """Why a result without an error may be chance; None if it cannot."""
    if not metrics.images:
        return "Expected good and defective ones."
    if not metrics.good or not metrics.defective:
        kind, unknown = ("good", "false alarms") if metrics.defective else ("defective", "misses")
        return f"There is no {kind} photograph to test with, so its {unknown} are unknown."
    good, defective = (
        len({result.group for result in results if bool(result.truth) is kind}) for kind in (False, True)
    )
    guesses = math.comb(good + defective, defective)
    if 1 / guesses <= 1 - LEVEL:
        return None
    parts = f"{count_of(defective, 'defective part')} and {good} good"
    return f"{parts} are too few to test with: one of {guesses} guesses is right by chance."


def _margin(metrics: Metrics) -> float:
    return 1 - metrics.false_negatives / metrics.defective - _not_passed(metrics) / metrics.good


def _not_passed(metrics: Metrics) -> int:
    """Good photographs that are rejected or for review."""
    return metrics.false_positives + metrics.reviews - metrics.defective_reviews


def _misjudges_all(metrics: Metrics) -> bool:
    """Whether at least half of the photographs of the only kind are judged wrong."""
    if bool(metrics.good) is bool(metrics.defective):
        return False
    name = "false_positive_rate" if metrics.good else "false_negative_rate"
    wrong = _not_passed(metrics) if metrics.good else metrics.false_negatives
    return metrics.intervals.get(name) is not None and wrong >= MAX_RATE * metrics.images


def _chance_p_value(results: Sequence[PhotographResult]) -> float:
    """p-value of Fisher's exact test that defective parts are passed as often as good ones.

    Photographs of one part are not independent, so a part counts once, by the majority of its photographs.
    """
    from scipy.stats import fisher_exact  # takes a second to import

    decisions: defaultdict[tuple[bool, str], list[bool]] = defaultdict(list)
    for result in results:
        decisions[bool(result.truth), result.group].append(result.passed)
    table = [[0, 0], [0, 0]]
    for (defective, _), passed in decisions.items():
        table[defective][2 * sum(passed) > len(passed)] += 1
    return float(fisher_exact(table[::-1], alternative="greater").pvalue)


# === Doubts ===


def _list_doubts(metrics: Metrics) -> Iterator[str]:
    """Why a model that is better than chance is weak."""
    missed, not_passed = metrics.false_negatives, _not_passed(metrics)
    if missed > MAX_ERROR_SHARE * metrics.defective or not_passed > MAX_ERROR_SHARE * metrics.good:
        yield (
            f"A usable model misses at most {format_percent(MAX_ERROR_SHARE)} of the defective ones and does "
            f"not pass at most {format_percent(MAX_ERROR_SHARE)} of the good ones."
        )
    yield from _describe_masks(metrics)
    yield from (text for each in metrics.classes if (text := _describe_weak_class(each, metrics)))
    rates = {"false_negative_rate": "miss rate", "false_positive_rate": "rate of false alarms"}
    for name, what in rates.items():
        interval = metrics.intervals.get(name)
        if interval is None:
            yield f"There are too few parts for a 95 % interval of its {what}."
        elif interval.high >= MAX_RATE:
            yield f"With so few photographs its {what} may be {format_percent(interval.high)}."


def _describe_masks(metrics: Metrics) -> Iterator[str]:
    f1 = metrics.pixels.f1
    if f1 is not None and f1 < MIN_PIXEL_F1:
        yield f"Its masks mark other pixels than the annotated ones (pixel F1 {format_figure(f1)})."


def _describe_weak_class(each: ClassMetrics, metrics: Metrics) -> str | None:
    if len(metrics.classes) < 2 or not each.images:
        return None
    of = f"of {count_of(each.images, 'photograph')} of '{each.name}'"
    if each.false_negatives > MAX_RATE * each.images:
        return f"It misses {each.false_negatives} {of}."
    wrong = each.images - each.false_negatives - each.reviews - round((each.accuracy or 0) * each.images)
    return f"It gives another class to {wrong} {of}." if wrong > MAX_RATE * each.images else None


# === Text ===


def _describe(metrics: Metrics, split: str) -> str:
    if not metrics.images:
        return "No photograph was evaluated."
    parts = []
    for count, total, verb, kind, name in (
        (metrics.false_negatives, metrics.defective, "misses", "defective", "false_negative_rate"),
        (metrics.false_positives, metrics.good, "rejects", "good", "false_positive_rate"),
    ):
        if total:
            interval = metrics.intervals.get(name)
            bound = "" if interval is None else f" (up to {format_percent(interval.high)})"
            parts.append(f"{verb} {count} of {total} {kind} ones{bound}")
    if metrics.reviews:
        parts.append(f"leaves {metrics.reviews} for review")
    text = f"On {count_of(metrics.images, f'{split} photograph')} it {_join(parts)}"
    if metrics.average_precision is None:
        return f"{text}."
    chance = format_figure(metrics.defective / metrics.images)
    return f"{text}; AP {format_figure(metrics.average_precision)}, by chance {chance}."


def _join(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _advise(metrics: Metrics, training: TrainingFacts, *, separates: bool) -> Iterator[str]:
    """What is known to be too little: training, defects, masks, one class, tests."""
    if not training.decision_trained:
        yield "Train to the end of the stages 'decision' or 'joint'."
    if separates and metrics.reviews:
        yield (
            "Its scores separate better than its two thresholds: choose another operating point (command "
            "line: python -m training calibrate), or add defective photographs, so that fewer are for review."
        )
    elif separates:
        yield (
            "Its scores separate better than its threshold: choose another threshold (command line: python "
            "-m training calibrate)."
        )
    if training.is_short:
        steps, times = training.steps or 0, math.ceil(ENOUGH_STEPS / max(training.steps or 0, 1))
        yield (
            f"It took {count_of(steps, 'step')}, and a useful model needs at least {ENOUGH_STEPS}: train "
            f"{times} times as many steps; if a time limit ended the training, allow more minutes."
        )
    if not training.defective:
        yield (
            "It learned from good photographs alone, so its threshold may miss defects: add three or more "
            "photographs of each known kind of defect, and train again."
        )
    elif training.defective < ENOUGH_DEFECTS:
        number = count_of(training.defective, "defective photograph")
        yield f"It learned from {number}: add others, at least {ENOUGH_DEFECTS} to train on."
    if training.unlocalized:
        yield (
            f"{training.unlocalized} of {training.defective} defective training photographs have no mask or "
            "box: draw one, it shows where the defect is."
        )
    for each in metrics.classes:
        if _describe_weak_class(each, metrics):
            yield f"Add photographs of '{each.name}', or check their labels."
    fewer, kind = min((metrics.defective, "defective"), (metrics.good, "good"))
    if fewer < ENOUGH_DEFECTS:
        number = count_of(fewer, f"{kind} photograph")
        yield f"It was tested with {number}: test with at least {ENOUGH_DEFECTS}."


def _advise_further_defects(evaluation: Evaluation, training: TrainingFacts) -> Iterator[str]:
    """Whether more defective photographs may help although there are many, and which class is found least."""
    if training.is_short or not training.decision_trained or training.defective < ENOUGH_DEFECTS:
        return
    area = evaluation.metrics.auroc
    if area is not None and area < ENOUGH_AUROC:
        yield (
            f"The scores of good and defective photographs overlap (AUROC {format_figure(area)}): more "
            "defective photographs may help."
        )
    yield from _describe_worst_class(evaluation.results)


def _describe_worst_class(results: Sequence[PhotographResult]) -> Iterator[str]:
    """The class with the largest share of parts that are missed or for review, unless this may be chance.

    Fisher's exact test compares it with the others; its level is divided by the number of classes.
    """
    from scipy.stats import fisher_exact  # takes a second to import

    parts: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for result in results:
        if result.truth:
            parts[result.true_label, result.group].append(result.detected)
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])  # of parts not found, and found
    for (name, _), detected in parts.items():
        counts[name][2 * sum(detected) > len(detected)] += 1
    if len(counts) < 2:
        return
    worst = max(counts, key=lambda name: counts[name][0] / sum(counts[name]))
    others = [sum(column) for column in zip(*(counts[name] for name in counts if name != worst), strict=True)]
    p_value = fisher_exact([counts[worst], others], alternative="greater").pvalue
    if p_value <= (1 - LEVEL) / len(counts):
        yield (
            f"Of the parts of class '{worst}' {counts[worst][0]} of {sum(counts[worst])} are missed or for "
            "review, a larger share than of the others."
        )
