"""Refines mask scores, whose grid is coarse, by the pixels of the photograph."""

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

REACH_CELLS = 3
"""Cells around a region in which its boundary is searched."""

MAX_PIXELS = 160_000
"""Limit on the compared pixels of a photograph; regions with higher scores come first."""

MIN_PIXELS = 15.0
"""Smallest sum of weights of a defect, and of its surroundings."""

PASSES = 2
"""Comparisons; each starts from the result of the one before."""

COMPARISON_WEIGHT = 2.0
"""Weight of the comparison, relative to the network's log-odds."""

MAX_LOG_ODDS = 8.0
"""Limit on the network's log-odds, ±; higher ones mean the same."""

MAX_COMPARISON = 6.0
"""Limit on the log-odds of a comparison, ±."""

RIDGE, NOISE = 2.0, 1.0
"""Added to the variance of each feature: relative to it, and absolute."""

NOISE_SIGMA = 0.7
STRUCTURE_SIDES = (7, 15, 31)
"""Structures that are narrower than this are dark or bright lines and spots, px."""


def refine_scores(
    scores: Floats, grid_scores: Floats, photograph: NDArray[np.uint8], threshold: float
) -> None:
    """Changes the mask scores in and around each region, by what the region and its surroundings look like.

    As in GrabCut (Rother et al. 2004), the mask defines the models of a defect and of its surroundings, which
    then decide about each pixel. Each model is one Gaussian of lightness, colour and thin structures; both
    have one covariance (linear discriminant analysis), and scores are the weights of the pixels. A region
    that would vanish does not change. Nothing is trained.

    Args:
        scores: [h, w], 0 to 1, on the pixels of the network's input without its padding; changed in place.
        grid_scores: [h' / s, w' / s], the network's own scores; s is the network's `mask_stride`.
        photograph: [h', w', 1 or 3], the network's input: h' ≥ h, w' ≥ w.
        threshold: Mask score from which a pixel belongs to a defect.
    """
    stride = photograph.shape[0] // grid_scores.shape[0]
    grid_scores = grid_scores[tuple(np.s_[: -(-side // stride)] for side in scores.shape)]  # without padding
    kernel = np.ones((2 * REACH_CELLS + 1, 2 * REACH_CELLS + 1), np.uint8)
    near = cv2.dilate((grid_scores >= threshold).view(np.uint8), kernel)
    count, parts, boxes, _ = cv2.connectedComponentsWithStats(near, connectivity=8)
    numbered = np.asarray(parts, np.int32)
    highest = np.zeros(count, np.float32)
    np.maximum.at(highest, numbered, grid_scores)
    remaining = MAX_PIXELS
    for number in 1 + np.argsort(-highest[1:]):
        x, y, width, height = boxes[number][:4]
        window = np.s_[stride * y : stride * (y + height), stride * x : stride * (x + width)]
        part = scores[window]
        if part.size > remaining:
            continue
        remaining -= part.size
        rows, columns = part.shape
        cells = (numbered[y : y + height, x : x + width] == number).view(np.uint8)
        band = np.kron(cells, np.ones((stride, stride), np.uint8))[:rows, :columns] > 0
        refined = _refine(part, band, photograph[window][:rows, :columns], threshold)
        if refined[band].max() >= threshold:
            part[band] = refined[band]


def to_log_odds(scores: Floats) -> Floats:
    """Returns ln(p / (1 − p)), finite also for 0 and 1."""
    inner = np.clip(np.asarray(scores, np.float32), np.float32(1e-7), np.float32(1 - 1e-7))
    return np.asarray(np.log(inner / (1 - inner)), np.float32)


def to_scores(log_odds: Floats) -> Floats:
    """Returns 1 / (1 + exp(−x))."""
    return np.asarray(1 / (1 + np.exp(-log_odds)), np.float32)


def _refine(
    scores: Floats, band: NDArray[np.bool_], photograph: NDArray[np.uint8], threshold: float
) -> Floats:
    """Returns the refined scores [h, w] of one region and the `band` around it."""
    limit = to_log_odds(np.array(threshold, np.float32))
    network = np.clip(to_log_odds(scores) - limit, -MAX_LOG_ODDS, MAX_LOG_ODDS)
    features, refined = describe_pixels(photograph), network
    for _ in range(PASSES):
        inside = to_scores(refined)
        compared = _compare(features, inside * band, (1 - inside) * band)
        if compared is None:
            break
        refined = network + COMPARISON_WEIGHT * np.clip(compared, -MAX_COMPARISON, MAX_COMPARISON)
    return to_scores(refined + limit)


def _compare(features: Floats, inside: Floats, outside: Floats) -> Floats | None:
    """Returns the log-odds that each pixel is of the `inside`, [h, w]; None if either part is too small.

    `features` are [D, h · w], `inside` and `outside` weights of the pixels [h, w].
    """
    means, covariances = [], []
    for weights in (inside.ravel(), outside.ravel()):
        total = float(weights.sum())
        if total < MIN_PIXELS:
            return None
        means.append(features @ weights / total)
        centred = features - means[-1][:, None]
        covariances.append((centred * weights) @ centred.T / total)
    covariance = (covariances[0] + covariances[1]) / 2
    covariance += np.diag(RIDGE * np.diag(covariance) + NOISE)
    direction = np.linalg.solve(covariance, means[0] - means[1])
    log_odds = direction @ features - direction @ (means[0] + means[1]) / 2
    return np.asarray(log_odds.reshape(inside.shape), np.float32)


def describe_pixels(photograph: NDArray[np.uint8]) -> Floats:
    """Returns features of each pixel, [D, h · w]; D is 7, or 9 in colour."""
    if photograph.shape[2] == 3:
        lab = cv2.cvtColor(photograph / np.float32(255), cv2.COLOR_RGB2LAB)
    else:
        lab = photograph * np.float32(100 / 255)
    features = [
        np.asarray(cv2.GaussianBlur(channel, (0, 0), NOISE_SIGMA, borderType=cv2.BORDER_REPLICATE))
        for channel in cv2.split(lab)
    ]
    for side in STRUCTURE_SIDES:
        element = np.ones((side, side), np.uint8)
        for operation in (cv2.MORPH_BLACKHAT, cv2.MORPH_TOPHAT):
            features.append(np.asarray(cv2.morphologyEx(features[0], operation, element)))
    return np.stack([feature.ravel() for feature in features])
