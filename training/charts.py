"""Charts of the report as inline SVG. Text and axes take the colour of the page around them."""

import io
import re
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from training.thresholds import SATURATION

GOOD, DEFECTIVE = "#3b8ed0", "#e07b39"
"""Both readable on white and on black; told apart by colour-blind eyes."""

INK = "#010203"
"""Stands for the page's own text colour until the SVG is written."""

SIZE = (4.6, 3.3)
"""Width and height in inches of 72 px: its text stays readable on a phone."""

CURVE_POINTS = 200

Floats = NDArray[np.float64]


def precision_recall_chart(defective: NDArray[np.bool_], scores: Floats, threshold: float) -> str:
    """Precision over recall [N images], step-wise as AP is, with the operating point."""
    precision, recall, _ = precision_recall_curve(defective, scores)
    precision[-1] = precision[-2]  # scikit-learn ends at 1, where AP has no area
    figure, axes = _chart("recall", "precision")
    axes.plot(recall, precision, color=DEFECTIVE, drawstyle="steps-post", linewidth=2)
    detected = scores >= threshold
    if detected.any():
        hits = np.count_nonzero(detected & defective)
        _mark(axes, hits / np.count_nonzero(defective), hits / np.count_nonzero(detected))
    _unit_square(axes)
    return _svg(figure)


def roc_chart(defective: NDArray[np.bool_], scores: Floats, threshold: float) -> str:
    """True over false positive rate [N images], with the operating point."""
    false_rate, true_rate, _ = roc_curve(defective, scores)
    figure, axes = _chart("false positive rate", "true positive rate")
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.35, linewidth=1, linestyle="--")
    axes.plot(false_rate, true_rate, color=DEFECTIVE, linewidth=2)
    detected = scores >= threshold
    _mark(axes, float(detected[~defective].mean()), float(detected[defective].mean()))
    _unit_square(axes)
    return _svg(figure)


def _mark(axes: Axes, x: float, y: float) -> None:
    axes.plot(
        [x], [y], "o", color=INK, markersize=7, markerfacecolor="none", markeredgewidth=2, clip_on=False
    )


def _unit_square(axes: Axes) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)


def score_chart(defective: NDArray[np.bool_], scores: Floats, threshold: float) -> str:
    """Histograms of good and defective scores [N images], one over the other, and the threshold.

    The axis is logarithmic in the odds, because scores crowd near 0 and 1.
    """
    odds, limit = _log_odds(scores), float(_log_odds(np.array([threshold]))[0])
    ends = np.append(odds, limit)
    bins = np.linspace(ends.min() - 0.5, ends.max() + 0.5, 41)
    figure = Figure(figsize=SIZE, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, part, color, name in (
        (upper, odds[~defective], GOOD, "good"),
        (lower, odds[defective], DEFECTIVE, "defective"),
    ):
        _neutralise(axes)
        _bars(axes, part, bins, color, name)
        axes.axvline(limit, color=INK, linewidth=1.5, linestyle="--")
    _label_odds(lower, bins[0], bins[-1])
    return _svg(figure)


def _log_odds(scores: Floats) -> Floats:
    clipped = np.clip(scores, SATURATION, 1 - SATURATION)
    return np.asarray(np.log10(clipped / (1 - clipped)))


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
    """Training loss of one stage over its steps, each point the mean of a stretch of them."""
    stretches = min(len(losses), CURVE_POINTS)
    x = [part.mean() for part in np.array_split(np.asarray(steps, np.float64), stretches)]
    y = [part.mean() for part in np.array_split(np.asarray(losses, np.float64), stretches)]
    figure, axes = _chart("step", "loss")
    axes.plot(x, y, color=GOOD, linewidth=1.8)
    if 0 < 20 * min(y) < max(y):
        axes.set_yscale("log")
    return _svg(figure)


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


def _svg(figure: Figure) -> str:
    """Writes a chart as HTML wants it: no header, no fixed size, no style and no group ids of its own."""
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "segdec"}):
        figure.savefig(file, format="svg", transparent=True)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', r'<svg \1 role="img">', text, count=1)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    return text.replace(INK, "currentColor")
