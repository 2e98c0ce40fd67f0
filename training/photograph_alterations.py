"""Measures how photographs change in darkness, out of focus and so on, for `segdec.photograph_reasons`."""

from collections.abc import Callable, Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.photograph_check import Alteration, AlterationCause, Vector, measure_photograph

Levels = NDArray[np.float32]
Alter = Callable[[Levels, np.random.Generator], Levels]

CAMERA_NOISE = 1.0
"""Standard deviation of a camera's noise, levels; darkness and blur do not reduce it."""

WEAKEST_BLUR, DEFOCUS = 150, 40
"""Shorter side divided by the sigma of the weakest blur, 1.7 of 256 px, and of a strong one."""

DIGITS = 3
"""Decimals of a stored shift."""


def measure_alterations(photographs: Sequence[NDArray[np.uint8]]) -> tuple[Alteration, ...]:
    """Returns the mean changes of the measures of photographs [h, w, C], each cause in several strengths."""
    random = np.random.default_rng(0)
    before = [measure_photograph(photograph) for photograph in photographs]
    alterations = []
    for cause, alter in ALTERATIONS:
        after = [measure_photograph(_alter(photograph, alter, random)) for photograph in photographs]
        shifts = {
            name: np.mean([new[name] - old[name] for new, old in zip(after, before, strict=True)], axis=0)
            for name in before[0]
        }
        rounded = {name: tuple(np.round(shift, DIGITS).tolist()) for name, shift in shifts.items()}
        alterations.append(Alteration(cause=cause, shifts=rounded))
    return tuple(alterations)


def measure_blur(
    photographs: Sequence[NDArray[np.uint8]],
    measure: Callable[[NDArray[np.uint8]], Mapping[str, Vector]],
    share: int = WEAKEST_BLUR,
) -> dict[str, Vector]:
    """Returns the mean change of each measure of photographs [h, w, C] by blur.

    Its sigma is the shorter side divided by `share`.
    """
    random = np.random.default_rng(0)
    changes = []
    for photograph in photographs:
        before, after = measure(photograph), measure(_alter(photograph, _blur(share), random))
        changes.append({name: after[name] - before[name] for name in before})
    return {name: np.mean([change[name] for change in changes], axis=0) for name in changes[0]}


def _alter(photograph: NDArray[np.uint8], alter: Alter, random: np.random.Generator) -> NDArray[np.uint8]:
    levels = alter(photograph.astype(np.float32), random).reshape(photograph.shape)
    noise = random.normal(0, CAMERA_NOISE, (*levels.shape[:2], 1))
    return np.clip(np.round(levels + noise), 0, 255).astype(np.uint8)


def _scale(factor: float) -> Alter:
    return lambda levels, _: levels * np.float32(factor)


def _reduce_contrast(factor: float) -> Alter:
    return lambda levels, _: levels.mean() + np.float32(factor) * (levels - levels.mean())


def _blur(share: int) -> Alter:
    """Blurs with a sigma of the shorter side divided by `share`."""
    return lambda levels, _: np.asarray(
        cv2.GaussianBlur(levels, (0, 0), min(levels.shape[:2]) / share), np.float32
    )


def _add_noise(deviation: float, *, coloured: bool) -> Alter:
    def add(levels: Levels, random: np.random.Generator) -> Levels:
        shape = levels.shape if coloured else (*levels.shape[:2], 1)
        return levels + random.normal(0, deviation, shape).astype(np.float32)

    return add


ALTERATIONS: tuple[tuple[AlterationCause, Alter], ...] = (
    *(("darker", _scale(factor)) for factor in (0.7, 0.4, 0.2)),
    *(("brighter", _scale(factor)) for factor in (1.4, 2.5)),
    *(("less contrast", _reduce_contrast(factor)) for factor in (0.6, 0.3)),
    *(("blurred", _blur(share)) for share in (WEAKEST_BLUR, 80, DEFOCUS, 25)),
    *(("noisier", _add_noise(deviation, coloured=False)) for deviation in (8, 16, 32)),
    *(("noisier", _add_noise(deviation, coloured=True)) for deviation in (8, 16, 32)),
)
"""Causes with their strengths."""
