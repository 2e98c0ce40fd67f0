"""Numbers, durations and lines as text; rounding never makes a metric look better than it is."""

import textwrap

INDENT, WIDTH = 12, 110
"""Width of the topics, and of the lines of a command, in characters."""


def format_figure(value: float | None) -> str:
    """Formats a metric with three decimals; values below 1 are never rounded up to 1; a dash for None."""
    if value is None:
        return "–"
    return f"{int(value * 1000) / 1000:.3f}" if value > 0.999 else f"{value:.3f}"


def format_score(value: float | None) -> str:
    """Formats a score with three decimals, or enough to distinguish it from 0 and 1; a dash for None.

    `reporting/templates/threshold.js` formats scores in the same way.
    """
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return f"{value:.0e}"
    if 0.999 < value < 1:
        return f"1 − {1 - value:.0e}"
    return f"{value:.3f}"


def format_percent(value: float) -> str:
    """Formats a fraction as whole percent, with a no-break space."""
    return f"{100 * value:.0f}\N{NO-BREAK SPACE}%"


def format_rate(value: float) -> str:
    """Formats a fraction that may be small as percent with three digits, with a no-break space."""
    return f"{100 * value:.3g}\N{NO-BREAK SPACE}%"


def format_duration(seconds: float) -> str:
    """Formats a duration as `1 h 05 min`, `3 min 20 s` or `12.3 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def format_line(topic: str, text: str) -> str:
    """Returns a topic with its sentence; further lines are indented."""
    wrapped = textwrap.wrap(text, WIDTH - INDENT, break_on_hyphens=False, break_long_words=False)
    return "\n".join(f"{topic if not number else '':<{INDENT}}{part}" for number, part in enumerate(wrapped))
