"""Photographs that people label now, prepared for clicks."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from api.labelling.clicks import Click
from api.labelling.segmenter import ClickSegmenter, Mask
from api.labelling.windows import Image

MAX_BYTES = 2**28
"""Size of the prepared photographs with their features; the latest one stays in any case."""


class Segmenter(Protocol):
    """Segments the defects of one photograph from clicks, as `ClickSegmenter`."""

    @property
    def nbytes(self) -> int: ...
    def take_step(self, clicks: Sequence[Click]) -> bool: ...
    def segment(self, clicks: Sequence[Click]) -> Mask: ...


class OpenPhotographs:
    """Keeps the photographs that were used last prepared, so that a click takes little time.

    `make_segmenter` prepares a photograph, uint8 [H, W, C], for clicks.
    """

    def __init__(self) -> None:
        self.make_segmenter: Callable[[Image], Segmenter] = ClickSegmenter
        self._segmenters: OrderedDict[bytes, Segmenter] = OrderedDict()
        self._opening = asyncio.Lock()

    async def find(self, sha256: bytes, prepare: Callable[[], Awaitable[Segmenter]]) -> Segmenter:
        """Returns the segmenter of a photograph, known by the digest of its file; `prepare` makes it."""
        async with self._opening:
            segmenter = self._segmenters.pop(sha256, None) or await prepare()
            self._segmenters[sha256] = segmenter
            while len(self._segmenters) > 1 and self._bytes() > MAX_BYTES:
                self._segmenters.popitem(last=False)
            return segmenter

    def _bytes(self) -> int:
        return sum(segmenter.nbytes for segmenter in self._segmenters.values())
