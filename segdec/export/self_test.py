"""The self-test: a photograph in the artifact, with the result that it must get on every machine.

    model/
    └── self_test/
        ├── photograph.png
        └── mask_scores.png    the network's result during the export, 255 = 1.0

It shows that this machine's decoder and engine give the same result.
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import SCORE_TOLERANCE, Manifest, SelfTest, read_file
from segdec.config import STRIDE, ModelConfig
from segdec.errors import ArtifactError, ImageError, MissingExtraError, SegdecError
from segdec.images import decode_image, write_png
from segdec.inference.postprocessing import Prediction
from segdec.predictor import DEFAULT_SIZE, Predictor

ADVICE = (
    "This machine computes differently or its engine is damaged: do not serve this model here. Export it "
    "again, or install the versions that it was exported with."
)

MAX_LOG_ODDS_DIFFERENCE = 0.02
"""Maximum difference of the network's log-odds between machines."""


def run_self_test(predictor: Predictor, folder: Path) -> None:
    """Predicts the photograph in the artifact `folder` and compares the result with the stored one.

    It compares mask scores instead of the mask, which would hide a shift by one pixel and differ by chance
    near the threshold. The label is not compared if a score within the tolerance could change it.

    Raises:
        ArtifactError: If the stored files cannot be read or the results differ.
        MissingExtraError: If the extra `images` is not installed.
        ValueError: If the predictor was not loaded from an artifact.
    """
    if predictor.manifest is None:
        raise ValueError("The predictor has no manifest. Expected one that was loaded from an artifact.")
    expected, variant = predictor.manifest.self_test, predictor.manifest.variants[predictor.engine_name]
    tolerance = expected.score_tolerance + variant.score_tolerance
    mask_tolerance = expected.mask_tolerance + variant.mask_tolerance
    photograph, mask_scores = _read(folder, predictor.manifest)
    try:
        predicted = predict_unrefined(predictor, photograph)
    except MissingExtraError:
        raise
    except SegdecError as error:
        raise ArtifactError(f"The self-test of {folder} failed: {error} {ADVICE}") from error
    mask_difference = float(np.abs(predicted.mask_scores - mask_scores).max())
    if abs(predicted.score - expected.score) > tolerance:
        problem = f"the score is {predicted.score:.6f}, expected {expected.score:.6f} ± {tolerance:g}"
    elif predicted.label != expected.label and _is_certain(predicted, tolerance, mask_tolerance):
        problem = f"the label is '{predicted.label}', expected '{expected.label}'"
    elif mask_difference > mask_tolerance:
        problem = f"a mask score differs by {mask_difference:.3f}, expected at most {mask_tolerance:g}"
    else:
        return
    raise ArtifactError(f"The self-test of {folder} failed: {problem}. {ADVICE}")


def predict_unrefined(predictor: Predictor, photograph: NDArray[np.uint8]) -> Prediction:
    """Predicts without refinement of the mask, which would add to the differences of machines."""
    config = predictor.config.with_mask_refinement(0.0, refine=False)
    return predictor.with_config(config).predict([photograph])[0]


def write_self_test(
    folder: Path, stored: SelfTest, photograph: NDArray[np.uint8], answer: Prediction
) -> None:
    """Writes the photograph [H, W, C] and the mask scores of its result to the paths in the manifest."""
    (folder / stored.photograph).parent.mkdir()
    write_png(folder / stored.photograph, photograph)
    write_png(folder / stored.mask_scores, np.rint(answer.mask_scores * 255).astype(np.uint8))


def make_self_test(photograph: NDArray[np.uint8], answer: Prediction, slope: float = 1.0) -> SelfTest:
    """Returns the manifest section for a photograph [H, W, C] and its result.

    The tolerance of the network's own score is converted to that of the score calibrated with `slope`.
    """
    height, width = photograph.shape[:2]
    own = 1 / (1 + math.exp(-abs(answer.log_odds)))
    log_odds = min(SCORE_TOLERANCE / max(own * (1 - own), 1e-9), MAX_LOG_ODDS_DIFFERENCE)
    calibrated = slope * answer.score * (1 - answer.score) * log_odds
    tolerance = min(max(SCORE_TOLERANCE, calibrated), 1.0)
    return SelfTest(
        height=height, width=width, label=answer.label, score=answer.score, score_tolerance=tolerance
    )


def random_photograph(config: ModelConfig) -> NDArray[np.uint8]:
    """Returns seeded noise uint8 [H, W, C] of the input's size, or slightly larger than a tile."""
    height, width = config.input.height or DEFAULT_SIZE, config.input.width or DEFAULT_SIZE
    if config.input.policy == "tile":
        height, width = height + STRIDE, width + STRIDE
    shape = (height, width, config.network.input_channels)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def _read(folder: Path, manifest: Manifest) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Reads the photograph [H, W, C] and the mask scores [H, W] with the usual decoder."""
    expected = manifest.self_test
    names = expected.photograph, expected.mask_scores
    try:
        photograph, stored = (
            decode_image(read_file(folder, manifest, name), str(folder / name)).pixels for name in names
        )
    except ImageError as error:
        raise ArtifactError(f"The self-test of {folder} cannot be run: {error}") from error
    size = (expected.height, expected.width)
    if photograph.shape[:2] != size or stored.shape != (*size, 1):
        raise ArtifactError(
            f"The self-test of {folder} has a photograph {photograph.shape} and mask scores {stored.shape}. "
            f"Expected {size}, and 1 channel for the scores, as in the manifest; export it again."
        )
    return photograph, np.asarray(stored[..., 0] / 255, dtype=np.float32)


def _is_certain(predicted: Prediction, tolerance: float, mask_tolerance: float) -> bool:
    """Returns whether the label cannot change if probabilities and mask scores move by the tolerances."""
    limits = (
        predicted.threshold if predicted.review_threshold is None else predicted.review_threshold,
        predicted.threshold,
    )
    if any(abs(predicted.score - limit) <= tolerance for limit in limits):
        return False
    if predicted.regions and predicted.class_mask is not None:
        worst = predicted.regions[0]
        others = (region.score_max for region in predicted.regions if region.label != worst.label)
        next_limit = max([predicted.mask_threshold, *others])
        return predicted.score < predicted.threshold or worst.score_max - next_limit > 2 * mask_tolerance
    ranked = sorted(list(predicted.probabilities.values())[1:], reverse=True)
    return predicted.score < predicted.threshold or len(ranked) < 2 or ranked[0] - ranked[1] > 2 * tolerance
