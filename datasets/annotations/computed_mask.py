"""Masks that are computed when they are read, with the reading interface of a file."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from segdec.images import DEFAULT_MAX_PIXELS, ImageFile, encode_png


@dataclass(frozen=True)
class ComputedMask(ABC):
    """A mask made of annotations or of other masks; `str()` returns its name for messages.

    Attributes:
        max_pixels: Limit on height × width.
    """

    max_pixels: int = field(default=DEFAULT_MAX_PIXELS, kw_only=True)

    @property
    @abstractmethod
    def sources(self) -> tuple[ImageFile, ...]:
        """The files or masks that it is made of."""

    @abstractmethod
    def draw(self) -> NDArray[np.uint8]:
        """Returns the mask, uint8 [H, W]; raises OSError or ImageError if a source cannot be read."""

    def within(self, max_pixels: int) -> Self:
        """Returns a copy with another limit."""
        return replace(self, max_pixels=max_pixels)

    def read_bytes(self) -> bytes:
        """Returns the mask as a PNG file; raises the errors of `draw`."""
        return encode_png(self.draw())


def within_limit(file: ImageFile, max_pixels: int) -> ImageFile:
    """Returns a mask with this limit on its pixels, if it is computed."""
    return file.within(max_pixels) if isinstance(file, ComputedMask) else file


@dataclass(frozen=True)
class DerivedMask(ComputedMask):
    """A mask that is made of another one, `mask`, which may be computed, too."""

    mask: ImageFile

    def __str__(self) -> str:
        return str(self.mask)

    @property
    def sources(self) -> tuple[ImageFile]:
        return (self.mask,)

    def within(self, max_pixels: int) -> Self:
        return replace(self, mask=within_limit(self.mask, max_pixels), max_pixels=max_pixels)


def source_files(file: ImageFile | None) -> list[ImageFile]:
    """Returns the files that a photograph or mask is read from; a mask drawn from an annotation has none."""
    if isinstance(file, ComputedMask):
        return [each for source in file.sources for each in source_files(source)]
    return [] if file is None else [file]
