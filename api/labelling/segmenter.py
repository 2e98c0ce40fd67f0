"""Masks of defects from a few clicks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

import cv2
import numpy as np
from numpy.typing import NDArray

from api.errors import RequestError
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
START_EVIDENCE = 0.6
"""Evidence of a pixel of the mask to start from."""
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
MAX_STATES, MAX_STATE_BYTES = 400, 2**26
"""Masks of earlier clicks that are stored; the oldest are computed again when they are needed."""


@dataclass(frozen=True)
class _State:
    """The mask inside a box after some clicks, and how far the mask before each click was wrong, px."""

    box: Box
    mask: Mask
    reaches: tuple[float, ...]


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
        start: Mask [H, W] to start from, for example of a model or drawn; above 0 is a defect.
        box: The mask is 0 outside.
        keep_similar: Keep regions that look like the defect although no click is in them.
        describe: Returns the features [H, W, D] of the pixels of a photograph.

    Raises:
        RequestError: With the code `bad_mask` or `bad_box`, if they do not fit the photograph.
    """

    def __init__(
        self,
        photograph: Image,
        *,
        start: Mask | None = None,
        box: Box | None = None,
        keep_similar: bool = False,
        describe: Callable[[Image], Floats] = describe_pixels,
    ) -> None:
        self.photograph = photograph
        self.height, self.width = photograph.shape[:2]
        self.keep_similar = keep_similar
        self.box = _checked_box(box, self.height, self.width)
        started = _checked_start(start, self.height, self.width)
        self._describe = describe
        self._appearances: dict[Window, _Appearance] = {}
        whole = Box(0, 0, self.width, self.height)
        self._states: dict[tuple[Click, ...], _State] = {(): _crop_to_defects(whole, started, ())}
        self._has_start = bool(started.any())
        first, *others = list_windows(Box(0, 0, 1, 1), self.height, self.width)
        if not others:  # else the features are computed where the clicks are
            self._appearance_of(first)

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
        if not self.box.contains(state.box):
            inside = self.box.crop(mask).copy()
            mask[:] = 0
            self.box.crop(mask)[:] = inside
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
        """Removes the oldest masks above the limits, except the one to start from and the latest."""
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
        for window in list_windows(inside, self.height, self.width):
            state, is_cut = self._step_in(window, clicks, before)
            if not is_cut:
                break
        return state

    def _step_in(self, window: Window, clicks: tuple[Click, ...], before: _State) -> tuple[_State, bool]:
        """The state after the last click, and whether the defect does not fit in the window."""
        scale = window.reduction
        inner = tuple(
            Click((click.x - window.left) // scale, (click.y - window.top) // scale, click.is_defect)
            for click in clicks
        )
        mask = self._reduced(window, before)
        reaches = (*(reach / scale for reach in before.reaches), measure_reach(mask, inner))
        start = self._reduced(window, self._states[()])
        first = self._evidence(window, inner, reaches, mask)
        values = _corrected(first, inner, reaches, mask)
        found = select_clicked(values, inner, reaches, start, keep_similar=self.keep_similar)
        for _ in range(REFINEMENTS if any(click.is_defect for click in inner) else 0):
            values = first.copy()
            refine_edge(values, found, self._appearance_of(window).colours)
            values = _corrected(values, inner, reaches, mask)
            found = select_clicked(values, inner, reaches, start, keep_similar=self.keep_similar)
        if not mask.any():
            reaches = (*reaches[:-1], measure_half_width(found))
        is_cut = window.is_cut(found, self.height, self.width)
        return _enlarge(window, values, found, tuple(reach * scale for reach in reaches)), is_cut

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
        values = np.full(mask.shape, 0 if self._has_start else -1, np.float32)
        if defects:
            sigma = FIRST_SMOOTHING
            if mask.any():
                sigma = float(np.clip(LIKENESS_SMOOTHING * measure_half_width(mask), *SMOOTHING_LIMITS))
            values = smoothed(likeness.measure(defects, others), sigma)
            values = np.clip((values - np.float32(THRESHOLD)) * np.float32(SLOPE), -1, 1)
        if self._has_start:
            started = self._reduced(window, self._states[()])
            values = values * np.float32(1 - START_EVIDENCE)
            values += (2 * started.astype(np.float32) - 1) * np.float32(START_EVIDENCE)
        return values

    def _reduced(self, window: Window, state: _State) -> Mask:
        """The part of a state's mask inside a window, 0 or 1, [h, w] of the window."""
        mask = np.zeros((self.height, self.width), np.uint8)
        state.box.crop(mask)[:] = state.mask * np.uint8(255)
        return (window.reduced(mask) > 127).astype(np.uint8)

    def _appearance_of(self, window: Window) -> _Appearance:
        """What the pixels of a window look like; only that of the last window is stored."""
        if window not in self._appearances:
            photograph = window.reduced(self.photograph)
            likeness = Likeness(self._describe(photograph))
            self._appearances = {window: _Appearance(likeness, describe_colours(photograph))}
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


def _enlarge(window: Window, values: Floats, found: Mask, reaches: tuple[float, ...]) -> _State:
    """The state at full resolution; between the pixels that were worked on, `values` are interpolated."""
    if window.reduction == 1:
        return _crop_to_defects(window, found, reaches)
    near = cv2.dilate(found, np.ones((3, 3), np.uint8))
    signed = np.where(found > 0, np.maximum(values, np.float32(1e-3)), np.minimum(values, np.float32(-1e-3)))
    signed = np.where(near > 0, signed, np.float32(-1))
    size = (window.right - window.left, window.bottom - window.top)
    enlarged = cv2.resize(signed, size, interpolation=cv2.INTER_LINEAR)
    return _crop_to_defects(window, (enlarged > 0).astype(np.uint8), reaches)


def _checked_box(box: Box | None, height: int, width: int) -> Box:
    whole = Box(0, 0, width, height)
    if box is None:
        return whole
    if not whole.contains(box) or box.left >= box.right or box.top >= box.bottom:
        raise RequestError(
            400,
            "bad_box",
            f"The box is x from {box.left} to {box.right}, y from {box.top} to {box.bottom}. Expected a box "
            f"inside the photograph: x from 0 to {width}, y from 0 to {height}.",
        )
    return box


def _checked_start(start: Mask | None, height: int, width: int) -> Mask:
    """The mask to start from, 0 or 1."""
    if start is None:
        return np.zeros((height, width), np.uint8)
    if start.shape != (height, width):
        raise RequestError(
            400,
            "bad_mask",
            f"The mask to start from has the shape {list(start.shape)}. Expected that of the photograph: "
            f"[{height}, {width}].",
        )
    return (start > 0).astype(np.uint8)
