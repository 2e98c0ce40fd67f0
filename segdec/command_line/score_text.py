"""Formats scores and thresholds for the command line."""

MIN_DECIMALS = 3
MAX_DECIMALS = 6


def score_text(score: float, threshold: float, review_threshold: float | None) -> tuple[str, str]:
    """Returns a score and its thresholds, `0.091` or `0.020-0.091`, as text.

    Uses three decimals, or up to six if different numbers would look equal: calibrated scores are often near
    0.
    """
    limits = (threshold,) if review_threshold is None else (review_threshold, threshold)
    numbers = (score, *limits)
    for decimals in range(MIN_DECIMALS, MAX_DECIMALS + 1):
        texts = [f"{number:.{decimals}f}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts[0], "-".join(texts[1:])
