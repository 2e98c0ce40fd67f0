"""Measures a whole photograph and compares it with those of the training, whatever it shows.

A measure is a vector. Its distance to the mean of training photographs, in units of their spread
(Mahalanobis 1936), has two limits: above the first there is a warning, above the second the photograph
certainly shows something else. `training.photograph_limits` chooses them. A further measure needs a name in
`MEASURES`, and its vector. `surface` is the network's mean patch, `segdec.engines.Logits.surface` (Lee et al.
2018 compare features in this way).
`segdec.photograph_reasons` says why a photograph exceeds a limit.
"""

import base64
import binascii
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Literal, Self

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from segdec.config import Config

Vector = NDArray[np.float64]
Level = NDArray[np.float32]

MIN_SIDE = 32
"""Smaller photographs are enlarged to this side, px, before they are measured."""

LAYOUT_CELLS = 6
"""Cells of the layout along each side."""

DETAIL_SCALES = 5
"""Scales of details: differences within 2, 4, 8, 16 and 32 px."""

QUANTISATION = 0.1
"""Variance of rounding to whole levels, about; it is added to energies, so that their logarithm exists."""

FLAT = 2.0
"""Standard deviation of the cells, levels, below which a photograph has hardly any layout."""

COLOUR_OFFSET = 8.0
"""Levels added to the channels, so that noise in the dark changes their ratios little."""

SURFACE = "surface"
"""Measure that the network makes."""

PROPORTIONS = "proportions"
"""Measure of the photograph before it is prepared."""

MEASURES = "brightness", "colour", "sharpness", "layout", "texture", PROPORTIONS, SURFACE
"""All measures; grey photographs have no `colour`."""

AlterationCause = Literal["darker", "brighter", "less contrast", "blurred", "noisier"]
"""What can have altered a photograph of the right part."""


def measure_photograph(prepared: NDArray[np.uint8]) -> dict[str, Vector]:
    """Measures a photograph as it is fed to the network, uint8 [h, w, C].

    Returns:
        `brightness`: log-odds of the mean, logarithm of the standard deviation.
        `sharpness`: logarithms of the energy of details of 2, 4, 8 and 16 px, as shares of the variance; a
        change of lighting hardly changes them, nor does a defect.
        `texture`: the same up to 32 px, the logarithm of the standard deviation, and those of the ratio of
        horizontal to vertical differences at 2, 4 and 8 px.
        `layout`: brightness of 6 × 6 cells, mean 0 and standard deviation 1.
        `colour`, if C is 3: logarithms of the ratios red : green and blue : green, and of the standard
        deviations of the differences red − green and blue − green.
    """
    prepared = _enlarged(prepared)
    coloured = prepared.shape[2] == 3
    grey = cv2.cvtColor(prepared, cv2.COLOR_RGB2GRAY) if coloured else prepared[..., 0]
    levels = [np.asarray(grey, np.float32)]
    for _ in range(DETAIL_SCALES):
        levels.append(_shrunk(levels[-1], 2))
    mean, contrast = float(cv2.mean(levels[0])[0]), math.log(_deviation(levels[0]) + 1)
    variances = [_deviation(level) ** 2 for level in levels]
    energies = [
        math.log((max(fine - coarse, 0.0) + QUANTISATION) / (variances[0] + QUANTISATION))
        for fine, coarse in pairwise(variances)
    ]
    measured = {
        "brightness": [math.log((mean + 1) / (256 - mean)), contrast],
        "sharpness": energies[:4],
        "texture": [contrast, *energies, *map(_direction, levels[1:4])],
        "layout": _layout(levels[2]),
    }
    if coloured:
        measured["colour"] = _colour(prepared)
    return {name: np.array(values, np.float64) for name, values in measured.items()}


def measure_proportions(height: int, width: int) -> Vector:
    """Returns the logarithm of width : height of a photograph, [1]."""
    return np.array([math.log(width / height)])


def _enlarged(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = image.shape[:2]
    if min(height, width) >= MIN_SIDE:
        return image
    size = max(width, MIN_SIDE), max(height, MIN_SIDE)
    return np.asarray(cv2.resize(image, size), np.uint8).reshape(*size[::-1], image.shape[2])


def _shrunk(level: NDArray[np.float32], factor: int) -> Level:
    size = max(level.shape[1] // factor, 1), max(level.shape[0] // factor, 1)
    return np.asarray(cv2.resize(level, size, interpolation=cv2.INTER_AREA), np.float32)


def _deviation(level: Level) -> float:
    return float(cv2.meanStdDev(level)[1][0, 0])


def _direction(level: Level) -> float:
    across, down = (
        cv2.norm(after, before, cv2.NORM_L2SQR) / after.size + QUANTISATION
        for after, before in ((level[:, 1:], level[:, :-1]), (level[1:], level[:-1]))
    )
    return math.log(across / down)


def _layout(level: Level) -> list[float]:
    size = LAYOUT_CELLS, LAYOUT_CELLS
    cells = np.asarray(cv2.resize(level, size, interpolation=cv2.INTER_AREA), np.float64).ravel()
    cells -= cells.mean()
    scaled: list[float] = (cells / math.hypot(float(cells.std()), FLAT)).tolist()
    return scaled


def _colour(image: NDArray[np.uint8]) -> list[float]:
    height, width = image.shape[:2]
    small = cv2.resize(image, (width // 4, height // 4), interpolation=cv2.INTER_AREA).astype(np.float32)
    red, green, blue = cv2.split(small)
    means = [float(cv2.mean(channel)[0]) + COLOUR_OFFSET for channel in (red, green, blue)]
    ratios = [math.log(means[0] / means[1]), math.log(means[2] / means[1])]
    return [*ratios, *(math.log(_deviation(channel - green) + 1) for channel in (red, blue))]


# === Limits ===


CONFIRMED_DISTANCE = 0.8
"""Highest distance, as a multiple of the limit, of a photograph that a person confirmed as usual."""


def encode_numbers(values: NDArray[np.float64]) -> str:
    """Returns the base64 of the values as little-endian float16."""
    return base64.b64encode(values.astype("<f2").tobytes()).decode("ascii")


@lru_cache(maxsize=64)
def decode_numbers(text: str) -> NDArray[np.float64]:
    """Returns the values of `encode_numbers`; raises ValueError for other text."""
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), "<f2").astype(np.float64)
    except (binascii.Error, ValueError) as error:
        raise ValueError("not the base64 of float16 numbers; export the model again") from error
    if not np.isfinite(values).all():
        raise ValueError("numbers that are not finite; export the model again")
    return values


def encode_measures(measured: Mapping[str, Vector]) -> dict[str, str]:
    """Returns the measures of a photograph as texts, see `encode_numbers`; clips them to its range."""
    largest = float(np.finfo(np.float16).max)
    return {name: encode_numbers(vector.clip(-largest, largest)) for name, vector in measured.items()}


def decode_measures(encoded: Mapping[str, str]) -> dict[str, Vector]:
    """Returns the measures of `encode_measures`; raises ValueError for other texts."""
    return {name: decode_numbers(text) for name, text in encoded.items()}


def _check_numbers(text: str) -> str:
    decode_numbers(text)
    return text


Numbers = Annotated[str, AfterValidator(_check_numbers)]


class MeasureLimit(Config):
    """Mean of a measure of training photographs, and the limits of the distance to it.

    Attributes:
        lowest: Lowest value of each element.
        highest: Highest value of each element.
        centre: Mean of each element.
        scale: Matrix [P, P] that converts a difference from the centre to units of the limit.
        blur: Direction [P] in which slight blur changes the measure, in units of its limit (the linear
            discriminant of Fisher 1936); empty: unknown.
        defocus: Direction [P] in which strong defocus changes the measure, in units of its limit; empty:
            unknown.
        refused: Multiple of the limit above which a photograph certainly shows something else; absent: never.
    """

    lowest: tuple[FiniteFloat, ...] = Field(min_length=1)
    highest: tuple[FiniteFloat, ...]
    centre: tuple[FiniteFloat, ...]
    scale: Numbers
    blur: Numbers = ""
    defocus: Numbers = ""
    refused: float | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        size, ranges = len(self.centre), (len(self.lowest), len(self.highest))
        directions = {decode_numbers(text).size for text in (self.blur, self.defocus)}
        if ranges != (size, size) or decode_numbers(self.scale).size != size**2 or directions - {0, size}:
            raise ValueError(f"the numbers do not fit a measure of {size} elements; export the model again")
        return self

    def distance(self, vector: Vector) -> float:
        """Returns the distance to the centre (root mean square), at least the blur, in units of the limit."""
        return max(self._distance(vector), self._change_along(self.blur, vector))

    def refuses(self, vector: Vector) -> bool:
        """Returns whether a photograph certainly shows something else, or is strongly defocused."""
        far = self.refused is not None and self._distance(vector) > self.refused
        return far or self._change_along(self.defocus, vector) > 1

    def widen(self, vectors: Iterable[Vector]) -> Self:
        """Returns wider limits that include `vectors`; orthogonal to their differences from the centre, in
        units of the limit, the limits stay as they are.

        The limit of defocus stays, and with one element that of refusing.
        """
        size = len(self.centre)
        scale, blur = decode_numbers(self.scale).reshape(size, size), decode_numbers(self.blur)
        narrow = float(np.linalg.norm(scale))
        for vector in vectors:
            difference = vector - self.centre
            scaled = difference @ scale
            distance = math.sqrt(float(np.mean(scaled**2)))
            if distance > CONFIRMED_DISTANCE:
                along = scaled / np.linalg.norm(scaled)
                # The inverse of the covariance plus a multiple of the squared difference (Sherman, Morrison).
                scale = scale - (1 - CONFIRMED_DISTANCE / distance) * np.outer(scale @ along, along)
            blurred = float(difference @ blur) if blur.size else 0.0
            blur = blur * CONFIRMED_DISTANCE / max(blurred, CONFIRMED_DISTANCE)
        refused = self.refused
        if refused is not None and size == 1:
            refused *= float(np.linalg.norm(scale)) / narrow
        numbers = {"scale": encode_numbers(scale), "blur": encode_numbers(blur)}
        return self.model_copy(update={**numbers, "refused": refused})

    def _distance(self, vector: Vector) -> float:
        scaled = (vector - self.centre) @ decode_numbers(self.scale).reshape(len(self.centre), -1)
        return math.sqrt(float(np.mean(scaled**2)))

    def _change_along(self, direction: str, vector: Vector) -> float:
        return float((vector - self.centre) @ decode_numbers(direction)) if direction else 0.0


class Alteration(Config):
    """A known alteration of a photograph, measured on training photographs.

    Attributes:
        cause: What alters the photograph.
        shifts: Mean change of each element, by measure.
    """

    cause: AlterationCause
    shifts: dict[str, tuple[FiniteFloat, ...]]


class PhotographLimits(Config):
    """Limits of the measures of a photograph that is like the training photographs."""

    photographs: int = Field(description="number of measured training photographs")
    measures: dict[str, MeasureLimit]
    alterations: tuple[Alteration, ...] = Field((), description="known causes of a difference")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in self.measures.keys() - set(MEASURES):
            raise ValueError(f"unknown measure '{name}'; expected one of {', '.join(MEASURES)}")
        for alteration in self.alterations:
            if self.measures.keys() - alteration.shifts.keys() - {PROPORTIONS, SURFACE}:
                raise ValueError("a measure does not fit the alterations; export the model again")
            for name, shift in alteration.shifts.items():
                if name not in self.measures or len(shift) != len(self.measures[name].centre):
                    raise ValueError(f"'{name}' does not fit the alterations; export the model again")
        return self

    def distances(self, measured: Mapping[str, Vector]) -> dict[str, float]:
        """Returns the distance of each measure that has a limit to the training photographs, as a multiple of
        the limit.
        """
        return {
            name: self.measures[name].distance(measured[name])
            for name in MEASURES
            if name in self.measures and name in measured
        }

    def widen(self, confirmed: Sequence[Mapping[str, Vector]]) -> Self:
        """Returns wider limits that include the measures of photographs that people confirmed as usual; see
        `MeasureLimit.widen`.

        Raises:
            ValueError: If a measure has no limit here, or another number of elements.
        """
        vectors: dict[str, list[Vector]] = {}
        for measured in confirmed:
            for name, vector in measured.items():
                if name not in self.measures or len(self.measures[name].centre) != vector.size:
                    raise ValueError(f"there is no measure '{name}' of {vector.size} elements")
                vectors.setdefault(name, []).append(vector)
        widened = {name: self.measures[name].widen(each) for name, each in vectors.items()}
        return self.model_copy(update={"measures": {**self.measures, **widened}})

    def refuses(self, measured: Mapping[str, Vector]) -> bool:
        """Returns whether a measure shows that the photograph is certainly not like those of the training."""
        return any(limit.refuses(measured[name]) for name, limit in self.measures.items() if name in measured)
