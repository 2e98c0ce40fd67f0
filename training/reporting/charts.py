"""Charts of the report as inline SVG. Text and axes take the colour of the page around them."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from training.metrics.calibration import BINS, Reliability
from training.metrics.photograph_results import SATURATION, PhotographResult

GOOD, DEFECTIVE, REVIEWED = "#3b8ed0", "#e07b39", "#b04fdc"
"""All readable on white and on black; told apart by colour-blind eyes."""

INK = "#010203"
"""Stands for the page's own text colour until the SVG is written."""

SIZE = (4.6, 3.3)
"""Width and height in inches of 72 px: its text stays readable on a phone."""

CURVE_POINTS = 200

LARGEST_DOT, SMALLEST_DOT = 26.0, 4.5
"""Diameters of a dot that stands for all photographs, and of one for a few, in points."""

MOVING = "moving-"
"""Begins the ids of parts that a script of the page moves; each becomes a class without it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledScores:
    """Photographs with their scores.

    Attributes:
        defective: Which of them are [N].
        scores: Their image scores [N].
    """

    defective: NDArray[np.bool_]
    scores: Floats

    @classmethod
    def from_results(cls, results: Sequence[PhotographResult]) -> "LabelledScores":
        """Returns the scores of results, beside the truth."""
        defective = np.array([result.truth != 0 for result in results])
        return cls(defective, np.array([result.score for result in results], np.float64))

    @property
    def has_both(self) -> bool:
        """Whether there are good and defective ones: curves need both."""
        return bool(self.defective.any() and not self.defective.all())

    def precision_recall(self) -> tuple[Floats, Floats]:
        """Returns recall and precision over all thresholds, the largest recall first."""
        precision, recall, _ = precision_recall_curve(self.defective, self.scores)
        precision[-1] = precision[-2]  # scikit-learn ends at 1, where AP has no area
        return recall, precision

    def roc(self) -> tuple[Floats, Floats]:
        """Returns false and true positive rate over all thresholds."""
        false_rate, true_rate, _ = roc_curve(self.defective, self.scores)
        return false_rate, true_rate


def precision_recall_chart(images: LabelledScores, threshold: float | None) -> str:
    """Draws precision over recall, step-wise as AP is, with the operating point."""
    figure, axes = _chart("recall", "precision")
    axes.plot(*images.precision_recall(), color=DEFECTIVE, drawstyle="steps-post", linewidth=2)
    if threshold is not None:
        detected = images.scores >= threshold
        hits = np.count_nonzero(detected & images.defective)
        precision = hits / np.count_nonzero(detected) if detected.any() else None
        _mark(axes, "precision-recall", hits / np.count_nonzero(images.defective), precision)
    _unit_square(axes)
    return _svg(figure, "Precision over recall", axes)


def roc_chart(images: LabelledScores, threshold: float | None) -> str:
    """Draws true over false positive rate, with the operating point."""
    figure, axes = _chart("false positive rate", "true positive rate")
    _draw_chance(axes)
    axes.plot(*images.roc(), color=DEFECTIVE, linewidth=2)
    if threshold is not None:
        detected = images.scores >= threshold
        false_rate, true_rate = detected[~images.defective].mean(), detected[images.defective].mean()
        _mark(axes, "roc", float(false_rate), float(true_rate))
    _unit_square(axes)
    return _svg(figure, "True over false positive rate", axes)


def aggregate_precision_recall_chart(runs: Sequence[LabelledScores], pooled: Sequence[LabelledScores]) -> str:
    """Draws precision over recall: thin for each run, thick for each pool of runs."""
    figure, axes = _chart("recall", "precision")
    for images, style in _layers(runs, pooled):
        axes.plot(*images.precision_recall(), drawstyle="steps-post", **style)
    _unit_square(axes)
    return _svg(figure, "Precision over recall of each run and of the pool")


def aggregate_roc_chart(runs: Sequence[LabelledScores], pooled: Sequence[LabelledScores]) -> str:
    """Draws true over false positive rate: thin for each run, thick for each pool of runs."""
    figure, axes = _chart("false positive rate", "true positive rate")
    _draw_chance(axes)
    for images, style in _layers(runs, pooled):
        axes.plot(*images.roc(), **style)
    _unit_square(axes)
    return _svg(figure, "True over false positive rate of each run and of the pool")


def _layers(
    runs: Sequence[LabelledScores], pooled: Sequence[LabelledScores]
) -> list[tuple[LabelledScores, dict[str, Any]]]:
    thin = {"color": GOOD, "linewidth": 1, "alpha": 0.75}
    thick = {"color": DEFECTIVE, "linewidth": 2.4 if len(pooled) == 1 else 1.8, "alpha": 0.9}
    return [
        *((run, thin) for run in runs if run.has_both),
        *((pool, thick) for pool in pooled if pool.has_both),
    ]


def _draw_chance(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.35, linewidth=1, linestyle="--")


def _mark(axes: Axes, curve: str, x: float, y: float | None) -> None:
    """The operating point of a curve; a script shows it once there is one."""
    (point,) = axes.plot(
        [x],
        [0.0 if y is None else y],
        "o",
        color=INK,
        markersize=7,
        markerfacecolor="none",
        markeredgewidth=2,
        clip_on=False,
    )
    point.set_gid(f"{MOVING}point {curve}{'' if y is not None else ' hidden'}")


def _unit_square(axes: Axes) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)


def reliability_chart(calibrated: Sequence[Reliability], before: Reliability | None = None) -> str:
    """Draws the share of defective photographs over the score, a dot a bin of scores; right is the diagonal.

    A dot's area grows with the share of the photographs that its bin holds.

    Args:
        calibrated: Of the scores; several for runs on the same photographs, each.
        before: Of the same scores without calibration, drawn faintly.
    """
    figure, axes = _chart("score", "share of defective photographs")
    _draw_chance(axes)
    if before is not None:
        _dots(axes, before, "before calibration", color=INK, alpha=0.38)
    for each in calibrated:
        _dots(axes, each, "score" if before is None else "calibrated", color=DEFECTIVE, alpha=0.9)
    if before is not None:
        axes.legend(frameon=False, labelcolor=INK, loc="upper left", fontsize="small", handlelength=1.2)
    _unit_square(axes)
    axes.set_xticks(np.linspace(0, 1, BINS // 2 + 1))
    axes.set_yticks(np.linspace(0, 1, BINS // 2 + 1))
    return _svg(figure, "Share of defective photographs over the score, with the diagonal of a probability")


def _dots(axes: Axes, found: Reliability, name: str, **style: Any) -> None:
    axes.plot(found.scores, found.shares, linewidth=1.2, **style)
    for score, share, weight in zip(found.scores, found.shares, found.weights, strict=True):
        diameter = max(SMALLEST_DOT, LARGEST_DOT * float(np.sqrt(weight)))
        axes.plot([score], [share], "o", markersize=diameter, clip_on=False, **style)
    axes.plot([], [], "o", markersize=6, label=name, **style)


def score_chart(
    images: LabelledScores,
    threshold: float | None,
    full_recall: float | None = None,
    review: float | None = None,
) -> str:
    """Draws histograms of good and defective scores, one over the other.

    The axis is logarithmic in the odds, because scores crowd near 0 and 1.

    Args:
        images: The photographs.
        threshold: Stands as a dashed line, which a script may move, and as a faint one that stays.
        full_recall: The highest threshold that misses none of them, a dotted line.
        review: The score from which they are for review, a dash-dotted line of a colour of its own.
    """
    odds = to_odds(images.scores)
    bins = np.linspace(*odds_range(images.scores, threshold, review), 41)
    figure = Figure(figsize=SIZE, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, part, color, name in (
        (upper, odds[~images.defective], GOOD, "good"),
        (lower, odds[images.defective], DEFECTIVE, "defective"),
    ):
        _neutralise(axes)
        _bars(axes, part, bins, color, name)
        _draw_thresholds(axes, threshold, full_recall, review)
    _label_odds(lower, bins[0], bins[-1])
    return _svg(figure, "Histograms of the scores of good and of defective photographs", lower)


def _draw_thresholds(
    axes: Axes, threshold: float | None, full_recall: float | None, review: float | None
) -> None:
    if review is not None:
        axes.axvline(float(to_odds(review)), color=REVIEWED, linewidth=2, linestyle="-.")
    if full_recall is not None:
        axes.axvline(float(to_odds(full_recall)), color=INK, linewidth=1.2, linestyle=":")
    if threshold is not None:
        axes.axvline(float(to_odds(threshold)), color=INK, linewidth=1, alpha=0.35)
        line = axes.axvline(float(to_odds(threshold)), color=INK, linewidth=1.5, linestyle="--")
        line.set_gid(f"{MOVING}line")


def to_odds(scores: ArrayLike) -> Floats:
    """Returns log10 of the odds of scores; those nearer to 0 or 1 than `SATURATION` count as this near."""
    clipped = np.clip(np.asarray(scores, np.float64), SATURATION, 1 - SATURATION)
    return np.asarray(np.log10(clipped / (1 - clipped)))


def odds_range(scores: Floats, *limits: float | None) -> tuple[float, float]:
    """Ends of the axis that scores [N] and thresholds share, log10 of the odds, with room beside them."""
    odds = to_odds([*scores, *(limit for limit in limits if limit is not None)])
    return float(odds.min() - 0.5), float(odds.max() + 0.5)


def _bars(axes: Axes, odds: Floats, bins: Floats, color: str, name: str) -> None:
    axes.hist(odds, bins=bins.tolist(), color=color)
    axes.set_ylabel("images", color=INK)
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
    axes.set_title(f"{name} ({len(odds)})", loc="left", color=color, fontsize="medium", pad=3)
    axes.locator_params(axis="y", nbins=4, integer=True)


def _label_odds(axes: Axes, low: float, high: float) -> None:
    steps = range(int(np.ceil(low)), int(np.floor(high)) + 1)
    stride = 1 + len(steps) // 7
    ticks = [step for step in steps if step % stride == 0]
    axes.set_xticks(ticks, [_name_odds(tick) for tick in ticks])
    axes.set_xlim(low, high)
    axes.set_xlabel("score", color=INK)


def _name_odds(power: int) -> str:
    """Odds 10^power as the score they stand for, rounded to the nearest power of ten at the ends."""
    if power == 0:
        return "0.5"
    nines = abs(power)
    if nines > 3:
        return f"1e-{nines}" if power < 0 else f"1−1e-{nines}"
    return f"{10.0**-nines:.{nines}f}" if power < 0 else f"{1 - 10.0**-nines:.{nines}f}"


def loss_chart(steps: Sequence[int], losses: Sequence[float]) -> str:
    """Draws the training loss of one stage over its steps, each point the mean of a stretch of them."""
    stretches = min(len(losses), CURVE_POINTS)
    x = [part.mean() for part in np.array_split(np.asarray(steps, np.float64), stretches)]
    y = [part.mean() for part in np.array_split(np.asarray(losses, np.float64), stretches)]
    figure, axes = _chart("step", "loss")
    axes.plot(x, y, color=GOOD, linewidth=1.8)
    if 0 < 20 * min(y) < max(y):
        axes.set_yscale("log")
    return _svg(figure, "Loss over steps")


def _chart(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    _neutralise(axes)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    return figure, axes


def _neutralise(axes: Axes) -> None:
    axes.tick_params(which="both", colors=INK)
    axes.grid(color=INK, alpha=0.12)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def _svg(figure: Figure, label: str, moving: Axes | None = None) -> str:
    """Writes a chart as HTML wants it: no header, no fixed size, no style and no group ids of its own.

    Args:
        figure: The chart.
        label: What it shows, for those who do not see it.
        moving: Axes in which a script moves parts; their scale is noted for it.
    """
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "segdec"}):
        figure.savefig(file, format="svg", transparent=True)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    scale = _scale(figure, moving) if moving else ""
    head = rf'<svg \1 role="img" aria-label="{escape(label)}"{scale}>'
    text = re.sub(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', head, text, count=1)
    text = re.sub(rf'<g id="{MOVING}([^"]*)"', r'<g class="\1"', text)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    return text.replace(INK, "currentColor")


def _scale(figure: Figure, axes: Axes) -> str:
    """Units of the SVG for one unit of the data, known once the layout is."""
    box, (left, right), (low, high) = axes.get_position(), axes.get_xlim(), axes.get_ylim()
    width, height = figure.get_size_inches() * 72
    x, y = box.width * width / (right - left), box.height * height / (high - low)
    return f' data-scale-x="{x:.4f}" data-scale-y="{y:.4f}"'
