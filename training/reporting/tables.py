"""Evaluations as text for the terminal."""

from collections.abc import Sequence

from training.metrics.aggregation import Aggregate, MeanStd
from training.metrics.comparison import RunComparison
from training.metrics.evaluation import Evaluation
from training.metrics.intervals import Interval
from training.metrics.metrics import ClassMetrics
from training.metrics.regions import RegionClasses, RegionSize

MAX_LISTED = 20
"""Maximum number of names in a list."""

RUN_COLUMNS = {
    "average_precision": "AP",
    "auroc": "AUROC",
    "false_negatives": "FN",
    "false_positives": "FP",
    "reviews": "review",
    "fp_at_full_recall": "FP at FN=0",
    "pixel_f1": "pixel F1",
    "pixel_average_precision": "pixel AP",
    "aupro": "AUPRO",
    "calibration_error": "ECE",
}
"""Columns of the table of joined runs; see `run_columns`."""


def format_number(value: float | int | None) -> str:
    """Formats a metric with 4 decimals, never rounded up to 1; a count; or a dash for None."""
    if value is None or isinstance(value, int):
        return "–" if value is None else str(value)
    return "0.9999" if 0.9999 < value < 1 else f"{value:.4f}"


def run_columns(aggregate: Aggregate) -> dict[str, str]:
    """Returns `RUN_COLUMNS`, without `reviews` if no run has images for review."""
    held = any(run.metrics.reviews or run.metrics.review_threshold is not None for run in aggregate.runs)
    return {name: title for name, title in RUN_COLUMNS.items() if held or name != "reviews"}


def evaluation_table(evaluation: Evaluation) -> str:
    """Returns the metrics of one evaluation with intervals, then tables of classes and region sizes."""
    metrics = evaluation.metrics
    lines = [
        f"  {name:<29}{format_number(value)}{_bracket(metrics.intervals.get(name))}"
        for name, value in metrics.scalars().items()
    ]
    if any(metrics.intervals.values()):
        lines += ["  In brackets: 95 % intervals over the items. An interval without width is not certainty:"]
        lines += ["  all resamples of these photographs give the same value."]
    if len(metrics.classes) > 1:
        lines += ["", *_class_lines(metrics.classes)]
    if any(size.regions for size in metrics.region_sizes):
        lines += ["", *_size_lines(metrics.region_sizes)]
    if metrics.region_classes:
        lines += ["", *_region_lines(metrics.region_classes, evaluation.classes[1:])]
    return "\n".join(lines)


def _bracket(interval: Interval | None) -> str:
    return f"  ({interval.low:.4f} to {interval.high:.4f})" if interval else ""


def align_rows(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Returns the lines of a table: the first column to the left, the others to the right."""
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        right = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{indent}{name:<{first}}{right}".rstrip())
    return lines


def _class_lines(classes: Sequence[ClassMetrics]) -> list[str]:
    held = any(each.reviews for each in classes)
    rows = [["class", "images", "AP", "recall", "FN", *["review"] * held, "accuracy", "pixel F1"]]
    for each in classes:
        counts = (each.images, each.average_precision, each.recall, each.false_negatives)
        shares = (each.accuracy, each.pixels.f1)
        rows.append([each.name, *map(format_number, (*counts, *[each.reviews] * held, *shares))])
    return align_rows(rows)


def _size_lines(sizes: Sequence[RegionSize]) -> list[str]:
    rows = [["true regions", "number", "found", "marked", "marked outside"]]
    for size in sizes:
        end = (
            f"from {size.from_px} px"
            if size.below_px is None
            else f"{size.from_px} to {size.below_px - 1} px"
        )
        shares = size.mean_overlap, size.mean_outside
        rows.append([end, *map(format_number, (size.regions, size.found, *shares))])
    return align_rows(rows)


def _region_lines(regions: RegionClasses, defects: Sequence[str]) -> list[str]:
    rows = [["true region, found as", *defects, "not found"]]
    rows += [[name, *map(str, counts)] for name, counts in zip(defects, regions.confusion, strict=False)]
    return align_rows([*rows, ["no defect", *map(str, regions.confusion[-1][:-1]), ""]])


def aggregate_table(aggregate: Aggregate) -> str:
    """Returns one line per run, then the pooled metrics."""
    first = aggregate.pooled[0].metrics
    each, pooled = "run", "Pooled"
    if aggregate.seeds > 1:
        each, pooled = "runs", f"Pooled for each seed, mean ± std of {aggregate.seeds} seeds"
    lines = [
        f"  {name:<29}{_format_spread(aggregate, name, spread)}{_bracket(aggregate.intervals.get(name))}"
        for name, spread in aggregate.figures.items()
    ]
    return "\n".join(
        [
            f"{len(aggregate.runs)} runs: {aggregate.folds} sets of photographs with {aggregate.seeds} "
            f"{each} each, split '{aggregate.split}'; {first.images} photographs, "
            f"{first.defective} defective.",
            "",
            *_run_lines(aggregate),
            "",
            f"{pooled}, in brackets 95 % intervals over the items:",
            *lines,
        ]
    )


def _run_lines(aggregate: Aggregate) -> list[str]:
    columns = run_columns(aggregate)
    cells = [["run", "fold", "seed", *columns.values()]]
    for run in aggregate.runs:
        figures = run.metrics.scalars()
        place = [str(run.path), str(run.fold), format_number(run.seed)]
        cells.append([*place, *(format_number(figures[name]) for name in columns)])
    spreads = [_format_spread(aggregate, name, aggregate.metrics_over_runs[name]) for name in columns]
    return align_rows([*cells, ["mean ± std", "", "", *spreads]], indent="")


def _format_spread(aggregate: Aggregate, name: str, spread: MeanStd) -> str:
    """Mean ± standard deviation; one decimal for counts, none if all counts are equal."""
    counted = isinstance(aggregate.pooled[0].metrics.scalars()[name], int)
    if spread.mean is None or (counted and not spread.std):
        return "–" if spread.mean is None else f"{spread.mean:.0f}"
    digits = 1 if counted else 4
    deviation = "" if spread.std is None else f" ± {spread.std:.{digits}f}"
    return f"{spread.mean:.{digits}f}{deviation}"


def comparison_table(comparison: RunComparison) -> str:
    """Returns the metrics of both runs, their differences, disagreements and the conclusion."""
    ignored = f" ({comparison.ignored} are in one alone)" if comparison.ignored else ""
    lines = [
        f"A: {comparison.first}",
        f"B: {comparison.second}",
        f"{comparison.photographs} photographs in both{ignored}.",
        "",
        f"  {'':<21}{'A':>9}{'B':>9}{'B − A':>10}   95 % interval over the items",
    ]
    for name, each in comparison.differences.items():
        interval = f"{each.interval.low:+.4f} to {each.interval.high:+.4f}" if each.interval else "–"
        value = "–" if each.value is None else f"{each.value:+.4f}"
        cells = f"{format_number(each.first):>9}{format_number(each.second):>9}{value:>10}"
        lines.append(f"  {name:<21}{cells}   {interval}")
    neither, reviews = "Wrong in both", []
    if any(comparison.reviews):
        neither, (first, second) = "Correct in neither", comparison.reviews
        note = "They count as not correct, but neither as missed nor as false alarms."
        reviews = [f"For review: {first} in A, {second} in B. {note}"]
    lines += [
        "",
        f"{neither}: {comparison.both_wrong}.",
        *_list_names("Correct only in A", comparison.first_right),
        *_list_names("Correct only in B", comparison.second_right),
        f"McNemar's exact test on the labels: p = {comparison.p_value:.3g}.",
        *reviews,
        "",
        *comparison.conclusion(),
    ]
    return "\n".join(lines)


def _list_names(title: str, names: Sequence[str]) -> list[str]:
    more = [f"  … and {len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return [f"{title}: {len(names)}.", *(f"  {name}" for name in names[:MAX_LISTED]), *more]
