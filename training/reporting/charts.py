"""Charts of the reports as inline SVG. Text and axes use the text colour of the page."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from training.metrics.calibration import BINS, Reliability
from training.metrics.photograph_results import SATURATION, PhotographResult

GOOD, DEFECTIVE, REVIEWED = "#3b8ed0", "#e07b39", "#b04fdc"
"""Readable on white and black, and distinguishable with colour blindness."""

INK = "#010203"
"""Placeholder for the text colour of the page."""

SIZE = (4.6, 3.3)
"""Width and height in inches of 72 px: text stays readable on a phone."""

CURVE_POINTS = 200

LARGEST_DOT, SMALLEST_DOT = 26.0, 4.5
"""Diameters of a dot for all images, and for a few images, in points."""

MOVING = "moving-"
"""Prefix of the ids of elements that the script moves; the rest of the id becomes a class."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledScores:
    """Image scores [N], and whether each image is defective [N]."""

    defective: NDArray[np.bool_]
    scores: Floats

    @classmethod
    def from_results(cls, results: Sequence[PhotographResult]) -> "LabelledScores":
        """Returns scores and labels of results."""
        defective = np.array([result.truth != 0 for result in results], np.bool_)
        return cls(defective, np.array([result.score for result in results], np.float64))

    @property
    def has_both(self) -> bool:
        """Whether there are good and defective images: curves need both."""
        return bool(self.defective.any() and not self.defective.all())


def curve_charts(
    pooled: Sequence[LabelledScores], threshold: float | None = None, runs: Sequence[LabelledScores] = ()
) -> list[tuple[str, Markup]]:
    """Draws step-wise precision over recall, and the ROC curve; returns title and SVG of each.

    Pooled scores (of each seed) are thick, single runs thin. `threshold` marks the operating point of the
    first pool. Nothing is drawn unless there are good and defective images.
    """
    if not any(images.has_both for images in pooled):
        return []
    figure, axes = _chart("recall", "precision")
    roc_figure, roc_axes = _chart("false positive rate", "true positive rate")
    _draw_chance(roc_axes)
    for images, style in _layers(runs, pooled):
        precision, recall, _ = precision_recall_curve(images.defective, images.scores)
        precision[-1] = precision[-2]  # scikit-learn appends a precision of 1
        axes.plot(recall, precision, drawstyle="steps-post", **style)
        false_rate, true_rate, _ = roc_curve(images.defective, images.scores)
        roc_axes.plot(false_rate, true_rate, **style)
    if threshold is not None:
        detected, defective = pooled[0].scores >= threshold, pooled[0].defective
        recall = float(detected[defective].mean())
        _mark(axes, "precision-recall", recall, float(defective[detected].mean()) if detected.any() else None)
        _mark(roc_axes, "roc", float(detected[~defective].mean()), recall)
    for each in (axes, roc_axes):
        _unit_square(each)
    return [
        ("Precision and recall", _svg(figure, "Precision over recall", axes)),
        ("ROC", _svg(roc_figure, "True over false positive rate", roc_axes)),
    ]


def _layers(
    runs: Sequence[LabelledScores], pooled: Sequence[LabelledScores]
) -> list[tuple[LabelledScores, dict[str, Any]]]:
    thin = {"color": GOOD, "linewidth": 1, "alpha": 0.75}
    thick = {"color": DEFECTIVE, "linewidth": 2.4 if len(pooled) == 1 else 1.8, "alpha": 0.9}
    styled = [*((run, thin) for run in runs), *((pool, thick) for pool in pooled)]
    return [(images, style) for images, style in styled if images.has_both]


def _draw_chance(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.35, linewidth=1, linestyle="--")


def _mark(axes: Axes, curve: str, x: float, y: float | None) -> None:
    """The operating point of a curve; hidden if the precision is undefined."""
    style: dict[str, Any] = {"color": INK, "markerfacecolor": "none", "markeredgewidth": 2, "clip_on": False}
    (point,) = axes.plot([x], [0.0 if y is None else y], "o", markersize=7, **style)
    point.set_gid(f"{MOVING}point {curve}{'' if y is not None else ' hidden'}")


def _unit_square(axes: Axes) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)


def reliability_chart(calibrated: Sequence[Reliability], before: Reliability | None = None) -> Markup:
    """Draws the share of defective images over the score, one line per run and one dot per bin of scores.

    The area of a dot grows with the share of images in its bin. Before calibration the line is faint.
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


def _dots(axes: Axes, reliability: Reliability, name: str, **style: Any) -> None:
    axes.plot(reliability.scores, reliability.shares, linewidth=1.2, **style)
    for score, share, weight in zip(reliability.scores, reliability.shares, reliability.weights, strict=True):
        diameter = max(SMALLEST_DOT, LARGEST_DOT * float(np.sqrt(weight)))
        axes.plot([score], [share], "o", markersize=diameter, clip_on=False, **style)
    axes.plot([], [], "o", markersize=6, label=name, **style)


def score_chart(
    images: LabelledScores,
    threshold: float | None,
    full_recall: float | None = None,
    review: float | None = None,
) -> Markup:
    """Draws histograms of good and defective scores, one above the other, on an axis of log-odds.

    `threshold` is a dashed line that the script moves, and a faint line that stays. The highest threshold
    without a missed defect, `full_recall`, is dotted, `review` dash-dotted.
    """
    odds = to_log10_odds(images.scores)
    bins = np.linspace(*odds_range(images.scores, threshold, review), 41)
    figure = Figure(figsize=SIZE, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, part, color, name in (
        (upper, odds[~images.defective], GOOD, "good"),
        (lower, odds[images.defective], DEFECTIVE, "defective"),
    ):
        _style_axes(axes)
        _bars(axes, part, bins, color, name)
        _draw_thresholds(axes, threshold, full_recall, review)
    _label_odds(lower, bins[0], bins[-1])
    return _svg(figure, "Histograms of the scores of good and of defective photographs", lower)


def _draw_thresholds(
    axes: Axes, threshold: float | None, full_recall: float | None, review: float | None
) -> None:
    if review is not None:
        axes.axvline(float(to_log10_odds(review)), color=REVIEWED, linewidth=2, linestyle="-.")
    if full_recall is not None:
        axes.axvline(float(to_log10_odds(full_recall)), color=INK, linewidth=1.2, linestyle=":")
    if threshold is not None:
        axes.axvline(float(to_log10_odds(threshold)), color=INK, linewidth=1, alpha=0.35)
        line = axes.axvline(float(to_log10_odds(threshold)), color=INK, linewidth=1.5, linestyle="--")
        line.set_gid(f"{MOVING}line")


def to_log10_odds(scores: ArrayLike) -> Floats:
    """Returns log10 of the odds of scores, clipped to a distance of `SATURATION` from 0 and 1."""
    clipped = np.clip(np.asarray(scores, np.float64), SATURATION, 1 - SATURATION)
    return np.asarray(np.log10(clipped / (1 - clipped)))


def odds_range(scores: Floats, *limits: float | None) -> tuple[float, float]:
    """Returns the axis limits for scores [N] and thresholds, log10 of the odds, with a margin."""
    odds = to_log10_odds([*scores, *(limit for limit in limits if limit is not None)])
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
    """The score at odds of 10^power, rounded to the nearest power of ten near 0 and 1."""
    if power == 0:
        return "0.5"
    nines = abs(power)
    if nines > 3:
        return f"1e-{nines}" if power < 0 else f"1−1e-{nines}"
    return f"{10.0**-nines:.{nines}f}" if power < 0 else f"{1 - 10.0**-nines:.{nines}f}"


def loss_chart(steps: Sequence[int], losses: Sequence[float]) -> Markup:
    """Draws the training loss of one stage over its steps, averaged over intervals."""
    intervals = min(len(losses), CURVE_POINTS)
    x = [part.mean() for part in np.array_split(np.asarray(steps, np.float64), intervals)]
    y = [part.mean() for part in np.array_split(np.asarray(losses, np.float64), intervals)]
    figure, axes = _chart("step", "loss")
    axes.plot(x, y, color=GOOD, linewidth=1.8)
    if 0 < 20 * min(y) < max(y):
        axes.set_yscale("log")
    return _svg(figure, "Loss over steps")


def _chart(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    _style_axes(axes)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    return figure, axes


def _style_axes(axes: Axes) -> None:
    axes.tick_params(which="both", colors=INK)
    axes.grid(color=INK, alpha=0.12)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def _svg(figure: Figure, label: str, moving: Axes | None = None) -> Markup:
    """A chart for inline use in HTML, with a label for screen readers: no header, size, style and group ids.

    The scale of `moving`, in which the script moves elements, is stored for it.
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
    return Markup(text.replace(INK, "currentColor"))


def _scale(figure: Figure, axes: Axes) -> str:
    """SVG units per data unit; needs the final layout."""
    box, (left, right), (low, high) = axes.get_position(), axes.get_xlim(), axes.get_ylim()
    width, height = figure.get_size_inches() * 72
    x, y = box.width * width / (right - left), box.height * height / (high - low)
    return f' data-scale-x="{x:.4f}" data-scale-y="{y:.4f}"'
