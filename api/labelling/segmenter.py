"""Masks of defects from a few clicks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from api.labelling.clicks import Click, check_clicks
from api.labelling.corrections import correct
from api.labelling.edges import refine_edge
from api.labelling.likeness import Likeness
from api.labelling.pixel_features import Floats, describe_colours, describe_pixels, smoothed
from api.labelling.regions import (
    FIRST_REACH,
    measure_distance_outside,
    measure_half_width,
    measure_reach,
    select_clicked,
)
from api.labelling.windows import Box, Image, Window, list_windows

Mask = NDArray[np.uint8]

THRESHOLD = 0.35
"""Likeness from which a pixel is part of the defect, without other evidence."""
SLOPE = 1.5
"""Evidence of a likeness of 1 above the threshold."""
REFINEMENTS = 2
"""How often the edge is moved to where the two sides differ most."""
DECAY = 1.0
"""Evidence lost per half width of the defect outside the mask before the click."""
FIRST_SMOOTHING, FIRST_EDGE_SMOOTHING = 2.0, 1.0
"""Standard deviations of the averages while the size of the defect is unknown, px."""
LIKENESS_SMOOTHING, EDGE_SMOOTHING = 0.2, 0.1
"""Standard deviations of the averages of likeness and evidence, relative to the half width of the defect."""
SMOOTHING_LIMITS = (1.0, 6.0)
EDGE_LIMITS = (0.5, 4.0)
"""Smallest and greatest of these standard deviations, px."""
WIDE_SHARE = 0.25
"""Share of a window above which the next one is four times as wide: so wide a defect needs no finer edge."""
MAX_STATES, MAX_STATE_BYTES = 400, 2**26
"""Masks of earlier clicks that are stored; the oldest are computed again when they are needed."""


_EMPTY = np.zeros((0, 0), np.uint8)


@dataclass(frozen=True)
class _State:
    """The mask inside a box after some clicks, and how far the mask before each click was wrong, px."""

    box: Box
    mask: Mask
    reaches: tuple[float, ...]


class _CutMask(NamedTuple):
    """A mask that reaches the side of its window, and the share of the window that it fills."""

    share: float


@dataclass(frozen=True)
class _Appearance:
    """What the pixels of a window look like: for `Likeness`, and their colours [h, w, 1 or 3]."""

    likeness: Likeness
    colours: Floats

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return int(self.likeness.features.nbytes + self.colours.nbytes)


class ClickSegmenter:
    """Segments the defects of one photograph from clicks.

    The same clicks in the same order give the same mask. The masks of the first parts of a sequence of
    clicks are stored, so that the next click and its withdrawal are fast.

    Args:
        photograph: uint8 [H, W] or [H, W, C], C = 1 (grey) or 3 (RGB).
        describe: Returns the features [H, W, D] of the pixels of a photograph.
    """

    def __init__(self, photograph: Image, *, describe: Callable[[Image], Floats] = describe_pixels) -> None:
        self.photograph = photograph
        self.height, self.width = photograph.shape[:2]
        self._describe = describe
        self._appearances: dict[Window, _Appearance] = {}
        self._states: dict[tuple[Click, ...], _State] = {(): _State(Box(0, 0, 0, 0), _EMPTY, ())}
        *_, self._whole = list_windows(Box(0, 0, 1, 1), self.height, self.width)
        self._appearance_of(self._whole)

    def segment(self, clicks: Sequence[Click]) -> Mask:
        """Returns the mask after the clicks, uint8 [H, W]: 255 is defect, 0 is not.

        Raises:
            RequestError: With the code `bad_click`.
        """
        while self.take_step(clicks):
            pass
        state = self._states[check_clicks(clicks, self.height, self.width)]
        mask = np.zeros((self.height, self.width), np.uint8)
        state.box.crop(mask)[:] = state.mask * np.uint8(255)
        return mask

    def take_step(self, clicks: Sequence[Click]) -> bool:
        """Computes the mask after the first click that has none yet; returns False if all have one.

        `segment` does it for all clicks, which may take long.

        Raises:
            RequestError: With the code `bad_click`.
        """
        checked = check_clicks(clicks, self.height, self.width)
        known = next(count for count in range(len(checked), -1, -1) if checked[:count] in self._states)
        if known == len(checked):
            return False
        self._states[checked[: known + 1]] = self._step(checked[: known + 1])
        self._forget_oldest()
        return True

    def _forget_oldest(self) -> None:
        """Removes the oldest masks above the limits, except the empty one without clicks and the latest."""
        total = sum(state.mask.nbytes for state in self._states.values())
        for clicks in list(self._states)[1:-1]:
            if len(self._states) <= MAX_STATES and total <= MAX_STATE_BYTES:
                return
            total -= self._states.pop(clicks).mask.nbytes

    @property
    def nbytes(self) -> int:
        """Size of the photograph, its features and the masks in memory."""
        appearances = sum(appearance.nbytes for appearance in self._appearances.values())
        masks = sum(state.mask.nbytes for state in self._states.values())
        return self.photograph.nbytes + appearances + masks

    def _step(self, clicks: tuple[Click, ...]) -> _State:
        """The state after the last click."""
        before = self._states[clicks[:-1]]
        if not before.mask.any() and not any(click.is_defect for click in clicks):
            return _State(before.box, before.mask, (*before.reaches, FIRST_REACH))
        inside = _surround(before, clicks)
        windows = list(list_windows(inside, self.height, self.width))
        position = 0
        while isinstance(result := self._step_in(windows[position], clicks, before), _CutMask):
            step = 2 if result.share > WIDE_SHARE else 1
            position = min(position + step, len(windows) - 1)
        return result

    def _step_in(self, window: Window, clicks: tuple[Click, ...], before: _State) -> "_State | _CutMask":
        """The state after the last click; a cut mask if the defect does not fit in the window."""
        scale = window.reduction
        inner = tuple(
            Click((click.x - window.left) // scale, (click.y - window.top) // scale, click.is_defect)
            for click in clicks
        )
        mask = self._reduced(window, before)
        reaches = (*(reach / scale for reach in before.reaches), measure_reach(mask, inner))
        first = self._evidence(window, inner, reaches, mask)
        values = _corrected(first, inner, reaches, mask)
        chosen = select_clicked(values, inner, reaches)
        for _ in range(REFINEMENTS if any(click.is_defect for click in inner) else 0):
            values = first.copy()
            refine_edge(values, chosen, self._appearance_of(window).colours)
            values = _corrected(values, inner, reaches, mask)
            chosen = select_clicked(values, inner, reaches)
        if window.is_cut(chosen, self.height, self.width):
            return _CutMask(np.count_nonzero(chosen) / chosen.size)
        if not mask.any():
            reaches = (*reaches[:-1], measure_half_width(chosen))
        return _enlarge(window, values, chosen, tuple(reach * scale for reach in reaches))

    def _evidence(
        self, window: Window, clicks: tuple[Click, ...], reaches: tuple[float, ...], mask: Mask
    ) -> Floats:
        """How much speaks for a defect, −1…1, [h, w] of the window: above 0 it is one."""
        likeness = self._appearance_of(window).likeness
        are_defects = [click.is_defect for click in clicks]
        places = zip(clicks, reaches, strict=True)
        samples = [likeness.sample(click.x, click.y, reach) for click, reach in places]
        defects = list(compress(samples, are_defects))
        others = list(compress(samples, [not is_defect for is_defect in are_defects]))
        values = np.full(mask.shape, -1, np.float32)
        if defects:
            sigma = FIRST_SMOOTHING
            if mask.any():
                sigma = float(np.clip(LIKENESS_SMOOTHING * measure_half_width(mask), *SMOOTHING_LIMITS))
            values = smoothed(likeness.measure(defects, others), sigma)
            values = np.clip((values - np.float32(THRESHOLD)) * np.float32(SLOPE), -1, 1)
        return values

    def _reduced(self, window: Window, state: _State) -> Mask:
        """The part of a state's mask inside a window, 0 or 1, [h, w] of the window."""
        if not state.mask.any():
            return np.zeros(window.reduced_size, np.uint8)
        mask = np.zeros((window.bottom - window.top, window.right - window.left), np.uint8)
        state.box.moved(-window.left, -window.top).crop(mask)[:] = state.mask * np.uint8(255)
        return (window.reduced_part(mask) > 127).astype(np.uint8)

    def _appearance_of(self, window: Window) -> _Appearance:
        """What the pixels of a window look like; only those of the photograph and the last one are stored."""
        if window not in self._appearances:
            photograph = window.reduced(self.photograph)
            likeness = Likeness(self._describe(photograph))
            whole = {self._whole: self._appearances[self._whole]} if window != self._whole else {}
            self._appearances = {**whole, window: _Appearance(likeness, describe_colours(photograph))}
        return self._appearances[window]


def _corrected(values: Floats, clicks: tuple[Click, ...], reaches: tuple[float, ...], mask: Mask) -> Floats:
    """The evidence with corrections around the clicks, smoothed; `mask` is that before the last click."""
    if not mask.any():
        return smoothed(values, FIRST_EDGE_SMOOTHING)
    width = measure_half_width(mask)
    if any(click.is_defect for click in clicks):
        values = values - np.float32(DECAY / width) * measure_distance_outside(mask, clicks, reaches)
    correct(values, clicks, reaches)
    return smoothed(values, float(np.clip(EDGE_SMOOTHING * width, *EDGE_LIMITS)))


def _crop_to_defects(box: Box, mask: Mask, reaches: tuple[float, ...]) -> _State:
    """The state whose box is as small as its defects allow; `mask` [h, w], 0 or 1, is that of `box`."""
    left, top, width, height = cv2.boundingRect(mask)
    inner = Box(box.left + left, box.top + top, box.left + left + width, box.top + top + height)
    return _State(inner, mask[top : top + height, left : left + width].copy(), reaches)


def _surround(state: _State, clicks: Sequence[Click]) -> Box:
    """The smallest box with all clicks and all defects of the state."""
    x, y = [click.x for click in clicks], [click.y for click in clicks]
    if state.mask.any():
        x += [state.box.left, state.box.right - 1]
        y += [state.box.top, state.box.bottom - 1]
    return Box(min(x), min(y), max(x) + 1, max(y) + 1)


def _enlarge(window: Window, values: Floats, chosen: Mask, reaches: tuple[float, ...]) -> _State:
    """The state at full resolution; between the pixels that were worked on, `values` are interpolated."""
    if window.reduction == 1:
        return _crop_to_defects(window, chosen, reaches)
    window, values, chosen = _crop_to_surroundings(window, values, chosen)
    near = cv2.dilate(chosen, np.ones((3, 3), np.uint8))
    signed = np.where(chosen > 0, np.maximum(values, np.float32(1e-3)), np.minimum(values, np.float32(-1e-3)))
    signed = np.where(near > 0, signed, np.float32(-1))
    size = (window.right - window.left, window.bottom - window.top)
    enlarged = cv2.resize(signed, size, interpolation=cv2.INTER_LINEAR)
    return _crop_to_defects(window, (enlarged > 0).astype(np.uint8), reaches)


def _crop_to_surroundings(window: Window, values: Floats, chosen: Mask) -> tuple[Window, Floats, Mask]:
    """The part of a window with the defects and the pixels that are interpolated around them."""
    if not window.has_whole_pixels():
        return window, values, chosen
    left, top, width, height = cv2.boundingRect(chosen)
    bottom, right = min(top + height + 2, chosen.shape[0]), min(left + width + 2, chosen.shape[1])
    part = Box(max(0, left - 2), max(0, top - 2), right, bottom)
    sides = (side * window.reduction for side in (part.left, part.top, part.right, part.bottom))
    inner = Box(*sides).moved(window.left, window.top)
    cropped = Window(inner.left, inner.top, inner.right, inner.bottom, window.reduction)
    return cropped, part.crop(values), part.crop(chosen)
