"""Scores as the command line writes them."""

MIN_DECIMALS = 3
MAX_DECIMALS = 6


def score_text(score: float, threshold: float, review_threshold: float | None) -> tuple[str, str]:
    """Returns a score and its thresholds, `0.091` or `0.020-0.091`, as text.

    They have three decimals, or as many more as tell different ones apart: calibrated scores crowd near 0.
    """
    limits = (threshold,) if review_threshold is None else (review_threshold, threshold)
    numbers = (score, *limits)
    for places in range(MIN_DECIMALS, MAX_DECIMALS + 1):
        texts = [f"{number:.{places}f}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts[0], "-".join(texts[1:])
