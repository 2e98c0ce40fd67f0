"""Numbers of things in sentences."""


def count_of(number: int, word: str, plural: str | None = None) -> str:
    """Returns `1 missed defect`, `3 missed defects`."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
