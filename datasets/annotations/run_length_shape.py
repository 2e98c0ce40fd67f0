"""Masks written as runs of pixels down the columns: COCO's counts and Severstal's starts and lengths.

COCO's counts are the lengths of alternating runs of good and defect pixels, good first, column by column
from the left, each from top to bottom. Their sum is the number of pixels. They are a list of numbers, or a
string that encodes the list. Severstal writes "start length start length …"; its first pixel is number 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segdec.imaging.run_lengths import decode_run_lengths

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RunLengthShape:
    """Runs of defect pixels, counted down the columns of a picture of `height` × `width` px."""

    height: int
    width: int
    runs: bytes
    """int32 pairs of start (from 0) and length, ascending; packed to save memory."""

    @classmethod
    def from_coco(cls, counts: object, height: int, width: int) -> "RunLengthShape":
        """Reads COCO's `counts`, a list or the compressed string.

        Raises:
            ValueError: If they are neither, do not add up to the picture, or mark nothing.
        """
        lengths = _whole_numbers(decode_run_lengths(counts)) if isinstance(counts, str) else _listed(counts)
        if lengths.size and lengths.min() < 0:
            raise ValueError(f"a run has {lengths.min()} pixels")
        total = int(lengths.sum())
        if total != height * width:
            raise ValueError(
                f"the run lengths have {total} pixels, the picture of {width}×{height} has {height * width}"
            )
        ends = np.cumsum(lengths)
        return cls._from_runs(ends[:-1:2], lengths[1::2], height, width)

    @classmethod
    def from_starts(cls, text: str, height: int, width: int) -> "RunLengthShape":
        """Reads Severstal's "start length start length …"; the first pixel has the number 1.

        Raises:
            ValueError: If the text does not hold pairs of whole numbers, or a run is empty, exceeds the
                picture or overlaps another.
        """
        values = _whole_numbers(text.split())
        if values.size % 2:
            raise ValueError(f"{values.size} numbers arrived; expected pairs of start and length")
        starts, lengths = values[::2] - 1, values[1::2]
        if (lengths < 1).any():
            raise ValueError(f"a run has {lengths.min()} pixels")
        return cls._from_runs(starts, lengths, height, width)

    @classmethod
    def _from_runs(cls, starts: Numbers, lengths: Numbers, height: int, width: int) -> "RunLengthShape":
        order = np.argsort(starts[lengths > 0], kind="stable")
        starts, lengths = starts[lengths > 0][order], lengths[lengths > 0][order]
        if not starts.size:
            raise ValueError("the run lengths mark no pixel")
        ends = starts + lengths
        if starts[0] < 0 or ends.max() > height * width:
            run = 0 if starts[0] < 0 else int(ends.argmax())
            raise ValueError(
                f"the run of {lengths[run]} pixels from pixel {starts[run] + 1} exceeds the picture of "
                f"{width}×{height} = {height * width} pixels"
            )
        overlaps = np.flatnonzero(starts[1:] < ends[:-1])
        if overlaps.size:
            run = int(overlaps[0])
            raise ValueError(
                f"the runs from pixel {starts[run] + 1} and from pixel {starts[run + 1] + 1} overlap"
            )
        return cls(height, width, np.stack([starts, lengths], axis=1).astype(np.int32).tobytes())

    @property
    def area_px(self) -> float:
        return float(self._pairs()[:, 1].sum())

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the picture, px: run lengths cannot exceed it."""
        return 0.0, 0.0, float(self.width), float(self.height)

    def fill(self, mask: NDArray[np.uint8]) -> None:
        starts, lengths = self._pairs().T
        steps = np.zeros(self.height * self.width + 1, np.int8)
        steps[starts] += 1
        steps[starts + lengths] -= 1
        inside = np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)
        mask[inside.reshape(self.width, self.height).T] = 255

    def _pairs(self) -> NDArray[np.int32]:
        return np.frombuffer(self.runs, np.int32).reshape(-1, 2)


def _listed(counts: object) -> Numbers:
    if not isinstance(counts, list):
        raise ValueError(f"the run lengths have the type {type(counts).__name__}; expected a list or string")
    array = _whole_numbers(counts) if set(map(type, counts)) <= {int, float} else None
    if array is None or any(array != counts):
        raise ValueError("the run lengths are not whole numbers")
    return array


def _whole_numbers(values: Sequence[object]) -> Numbers:
    try:
        array = np.array(values, dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"the run lengths are not whole numbers ({error})") from error
    if array.size and np.abs(array).max() > np.iinfo(np.int32).max:
        raise ValueError(f"the run lengths hold {np.abs(array).max()}, which exceeds any picture")
    return array
