"""Durations as people read them."""


def format_duration(seconds: float) -> str:
    """Writes a duration as `1 h 05 min`, `3 min 20 s` or `12.3 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"
