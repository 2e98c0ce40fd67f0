"""Evaluated runs made by hand: results, histograms and the folders that keep them."""

import numpy as np
import pytest

from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.photograph_results import PhotographResult, score_log_odds
from training.metrics.pixel_counts import PixelCounts
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.storage import save_evaluation

NOTHING = PixelCounts()


@pytest.fixture(scope="session")
def make_result():
    """A result of the classes `good` and `defect`, found, left for review or missed by its score alone."""

    def make(
        name,
        truth,
        score,
        *,
        group=None,
        threshold=0.5,
        review=None,
        log_odds=None,
        pixels=NOTHING,
        overlaps=(),
    ):
        labels = ("good", "defect")
        held = review is not None and review <= score < threshold
        return PhotographResult(
            name=name,
            split="test",
            group=group or name,
            truth=truth,
            true_label=labels[truth],
            predicted_label="review" if held else labels[score >= threshold],
            score=score,
            log_odds=score_log_odds(score) if log_odds is None else log_odds,
            threshold=threshold,
            regions=0,
            pixels=pixels,
            overlaps=overlaps,
            review_threshold=review,
        )

    return make


@pytest.fixture(scope="session")
def make_run():
    """Writes a run folder as an evaluation leaves it; the mask scores are those of one 2 × 2 photograph."""

    def make(folder, results, *, classes=("good", "defect"), split="test", seed=1, defect_rate=None):
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("")
        histogram = PixelHistogram()
        histogram.add(np.array([[0.9, 0.1], [0.6, 0.2]], np.float32), np.array([[255, 0], [0, 0]], np.uint8))
        metrics = compute_metrics(results, classes, histogram, defect_rate=defect_rate)
        evaluation = Evaluation(classes, tuple(results), metrics, histogram, defect_rate)
        save_evaluation(folder, evaluation, split=split, seed=seed)
        return folder

    return make
