"""Log-odds of scores that no network computed."""

import math

from training.metrics.photograph_results import SATURATION


def score_log_odds(score):
    near = min(max(score, SATURATION), 1 - SATURATION)
    return math.log(near / (1 - near))
