"""Figures as a reader sees them: rounded so that nothing reads as better than it is."""

from training.metrics.intervals import Interval


def format_figure(value: float | None) -> str:
    """Formats a figure with three decimals, cut so that nothing short of 1 reads as 1; a dash for none."""
    if value is None:
        return "–"
    return f"{int(value * 1000) / 1000:.3f}" if value > 0.999 else f"{value:.3f}"


def format_interval(interval: Interval | None) -> str:
    """Formats both ends with two decimals, cut so that nothing short of 1 reads as 1; empty for none."""
    if interval is None:
        return ""
    low, high = (int(end * 100) / 100 if end > 0.99 else end for end in (interval.low, interval.high))
    return f"({low:.2f}–{high:.2f})"


def format_score(value: float | None) -> str:
    """Formats a score with three decimals, or enough to tell it from 0 and 1; a dash for none.

    `templates/threshold.js` writes scores the same way.
    """
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return f"{value:.0e}"
    if 0.999 < value < 1:
        return f"1 − {1 - value:.0e}"
    return f"{value:.3f}"


def format_count(value: int | None) -> str:
    """Formats a count; a dash for none."""
    return "–" if value is None else str(value)


def format_percent(value: float) -> str:
    """Formats a share in whole percent, with a space that does not break."""
    return f"{100 * value:.0f}\N{NO-BREAK SPACE}%"


def format_rate(value: float) -> str:
    """Formats a share that may be small in percent, three digits, with a space that does not break."""
    return f"{100 * value:.3g}\N{NO-BREAK SPACE}%"


def count_of(number: int, word: str, plural: str | None = None) -> str:
    """Returns `1 missed defect`, `3 missed defects`."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
