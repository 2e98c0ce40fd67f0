"""Fits the linear maps from an encoder's features to the mask logits, before the first step."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from segdec.config import STRIDE
from segdec.encoders import JOINED_STRIDES
from segdec.network.network import SegDecNet
from training.config import ExperimentConfig
from training.data.array_cache import Arrays
from training.data.example_source import ExampleSource
from training.data.input_pipeline import InputPipeline
from training.data.subsets import pick_of_both_kinds

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.intp]

LINEAR_STEPS = 300
"""Steps after which the maps are 0: by then trained heads alone are better, since the maps are overfitted."""

MAX_EXAMPLES = 200
"""Good examples, and defective ones, on which the maps are fitted: others need not be encoded for this."""

MAX_CELLS = 20_000
"""Cells of defective and of good examples, half of each, on which the maps are fitted."""

L2_WEIGHT = 1e-3
"""Factor of half the squared weights, of features with a deviation of 1, in the loss, nats."""

MAX_ITERATIONS = 60
MIN_DEVIATION = 0.03
SEED = 2**32 - 6
"""Separates these random numbers from those of training."""


def fit_linear_masks(
    pipeline: InputPipeline, examples: ExampleSource, config: ExperimentConfig
) -> NDArray[np.float32]:
    """Returns kernel and bias [heads, C + 1] of each head's linear map, for the features of `JOINED_STRIDES`.

    They are fitted by logistic regression to the masks of examples without the head's fold, with the weights
    of the training loss. A map is 0 if these masks have no defect that counts.
    """
    random = np.random.default_rng([config.seed, SEED])
    known = [index for index in range(len(examples)) if examples.supervised[index]]
    known = pick_of_both_kinds(known, examples.labels, MAX_EXAMPLES)
    defective = np.array([examples.labels[index] != 0 for index in known], bool)
    kinds = np.bincount(defective, minlength=2)  # numbers of good and defective examples
    numbers = [max(1, MAX_CELLS // 2 // max(count, 1)) for count in kinds]
    factors = 1.0 / np.maximum(kinds, 1) if config.balanced else np.ones(2)
    cells, rows = [], []
    for index, kind in zip(known, defective.astype(int).tolist(), strict=True):
        features, target, weight = _sample(pipeline.load_unaugmented(index), numbers[kind], random)
        cells.append((features, target, weight * factors[kind]))
        rows.append(np.full(len(target), examples.fold(index) or 0))
    features, target, weight = (np.concatenate(part) for part in zip(*cells, strict=True))
    heads, fold = config.network.heads, np.concatenate(rows)
    fitted = np.zeros((heads, features.shape[1] + 1), np.float32)
    for head in range(heads):
        used = (weight > 0) & ((fold != head + 1) | (heads == 1))
        if target[used].any():
            positive_weight, start = config.target.cross_entropy_weight, fitted[max(head - 1, 0)]
            fitted[head] = fit_logistic(features[used], target[used], weight[used], positive_weight, start)
    return fitted


class LinearMasks:
    """The linear part of a network's masks, which decreases to 0 within `LINEAR_STEPS` steps.

    Args:
        network: The trained network.
        fitted: Kernel and bias [heads, C + 1] of each head.
        earlier_steps: Steps of earlier stages.
    """

    def __init__(self, network: SegDecNet, fitted: NDArray[np.float32], earlier_steps: int = 0) -> None:
        self._heads, self._fitted, self._earlier_steps = network.heads, fitted, earlier_steps

    def set_after(self, steps: int) -> None:
        """Sets the maps for the next step, after so many steps of the stage."""
        remaining = 1.0 - (self._earlier_steps + steps) / LINEAR_STEPS
        if remaining <= -1.0 / LINEAR_STEPS:  # they are 0 already
            return
        for head, values in zip(self._heads, self._fitted * np.float32(max(remaining, 0.0)), strict=True):
            layers = [head.get_layer(f"linear_{stride}") for stride in JOINED_STRIDES]
            ends = np.cumsum([layer.kernel.shape[2] for layer in layers])
            for layer, part in zip(layers, np.split(values[:-1], ends[:-1]), strict=True):
                layer.kernel.assign(part[None, None, :, None])
            layers[0].bias.assign(values[-1:])


def fit_logistic(
    features: Floats, target: Floats, weight: Floats, positive_weight: float, start: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Returns kernel and bias [C + 1] of a logistic regression of targets [N], 0…1, on features [N, C].

    `weight` [N] is that of each row, `positive_weight` a factor of the loss of the positive part; the
    iterations begin at `start` [C + 1].
    """
    weight = (weight / weight.sum()).astype(np.float32)
    mean = weight @ features
    scaled = features - mean
    deviation = np.sqrt(weight @ np.square(scaled)) + MIN_DEVIATION
    scaled /= deviation

    def loss(values: Floats) -> tuple[float, Floats]:
        kernel = values[:-1]
        logits = scaled @ kernel.astype(np.float32) + values[-1]
        missed, alarmed = np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits)
        total = weight @ (positive_weight * target * missed + (1.0 - target) * alarmed)
        probability = expit(logits)
        slope = weight * ((1.0 - target) * probability - positive_weight * target * (1.0 - probability))
        gradient = slope.astype(np.float32) @ scaled + L2_WEIGHT * kernel
        return float(total + 0.5 * L2_WEIGHT * kernel @ kernel), np.append(gradient, slope.sum())

    first = np.append(start[:-1] * deviation, start[-1] + mean @ start[:-1]).astype(np.float64)
    values = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS}).x
    kernel = values[:-1] / deviation
    return np.append(kernel, values[-1] - mean @ kernel).astype(np.float32)


def _sample(arrays: Arrays, number: int, random: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Returns features [N, C], target [N] and weight [N] of at most `number` cells of an example.

    Up to half of them are defective; the weights compensate for that.
    """
    factor = arrays["target"].shape[0] // arrays[f"joined_{STRIDE}"].shape[0]
    target, weight = (_pool(arrays[name][..., 0], factor) for name in ("target", "weight"))
    candidates = [np.flatnonzero(target > 0), np.flatnonzero(target <= 0)]
    most = [(number + 1) // 2, number - (number + 1) // 2] if len(candidates[0]) else [0, number]
    drawn = [random.permutation(one)[:limit] for one, limit in zip(candidates, most, strict=True)]
    shares = [
        np.full(len(few), len(all_) / max(len(few), 1) / target.size)
        for few, all_ in zip(drawn, candidates, strict=True)
    ]
    rows, columns = np.unravel_index(np.concatenate(drawn), target.shape)
    features = [
        _interpolate(arrays[f"joined_{stride}"], rows, columns, max(1, stride // STRIDE))
        for stride in JOINED_STRIDES
    ]
    weights = np.concatenate(shares) * weight[rows, columns]
    return np.concatenate(features, axis=1), target[rows, columns], weights


def _pool(grid: Floats, factor: int) -> Floats:
    """Returns the means [h / factor, w / factor] of squares of a grid [h, w]."""
    height, width = (side // factor for side in grid.shape)
    return np.asarray(grid.reshape(height, factor, width, factor).mean(axis=(1, 3)))


def _interpolate(grid: Floats, rows: Places, columns: Places, factor: int) -> Floats:
    """Returns values [N, C] at cells of a grid [h, w, C] that is enlarged bilinearly by `factor`."""
    values = np.zeros((len(rows), grid.shape[2]), np.float32)
    for y, share_y in _neighbours(rows, grid.shape[0], factor):
        for x, share_x in _neighbours(columns, grid.shape[1], factor):
            values += (share_y * share_x)[:, None] * grid[y, x]
    return values


def _neighbours(places: Places, side: int, factor: int) -> list[tuple[Places, Floats]]:
    """Returns the two cells before the enlargement that each place lies between, and their shares."""
    position = (places + 0.5) / factor - 0.5
    before = np.floor(position).astype(np.intp)
    share = (position - before).astype(np.float32)
    return [(np.clip(before, 0, side - 1), 1 - share), (np.clip(before + 1, 0, side - 1), share)]
