"""Tiles, transform matrices and kernel spectra of a convolution by Fourier transforms, with NumPy only."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

MIN_SAVING = 3.0
"""Reduction of multiplications from which transforms in bands are faster on a CPU than direct convolution."""

CHANNEL_GROUP_SIZE = 64
"""Output channels that are computed together, which limits the memory between the transforms."""

ALIGNMENT = 64
"""Bytes of an AVX-512 register."""


@dataclass(frozen=True)
class Transforms:
    """Matrices that transform a T × T tile to its spectrum and back; F = T / 2 + 1 rows are sufficient.

    A complex number is stored as two real ones: real part, then imaginary part.

    Attributes:
        tile: T, even.
        kernel: k, the kernel size, odd.
    """

    tile: int
    kernel: int

    @property
    def kept(self) -> int:
        """S = T − k + 1, the side of a tile's result."""
        return self.tile - self.kernel + 1

    @property
    def half(self) -> int:
        """F, the rows of half of a spectrum."""
        return self.tile // 2 + 1

    @cached_property
    def forward_height(self) -> Matrix:
        """Transform along the height, [F · 2, T]; its first index counts rows, and parts within a row."""
        angle = self._angles(self.half, self.tile)
        return _single(np.stack([np.cos(angle), -np.sin(angle)], axis=1).reshape(-1, self.tile))

    @cached_property
    def forward_width(self) -> Matrix:
        """Transform along the width, [T · 2, 2 · T]; indices: (column, part), (part, column)."""
        angle = self._angles(self.tile, self.tile)
        real = np.hstack([np.cos(angle), np.sin(angle)])
        imaginary = np.hstack([-np.sin(angle), np.cos(angle)])
        return _single(np.stack([real, imaginary], axis=1).reshape(2 * self.tile, -1))

    @cached_property
    def inverse_width(self) -> tuple[Matrix, Matrix]:
        """Two inverse transforms along the width for the kept columns, [2 · S, T · 2] each.

        The first is applied to a spectrum times the real part of the other factor, the second to the
        spectrum times its imaginary part. The sum is the inverse transform of the complex product.
        """
        angle = self._angles(self.kept, self.tile)
        real = np.vstack([np.cos(angle), np.sin(angle)]) / self.tile
        imaginary = np.vstack([-np.sin(angle), np.cos(angle)]) / self.tile
        shape = 2 * self.kept, 2 * self.tile
        by_real, by_imaginary = np.stack([real, imaginary], axis=2), np.stack([imaginary, -real], axis=2)
        return _single(by_real.reshape(shape)), _single(by_imaginary.reshape(shape))

    @cached_property
    def inverse_height(self) -> Matrix:
        """Inverse transform along the height for the kept rows, [S, F · 2]."""
        angle = self._angles(self.kept, self.half)
        twice = np.full(self.half, 2.0)  # a row also represents its omitted mirror image
        twice[[0, -1]] = 1.0
        parts = np.stack([twice * np.cos(angle), -twice * np.sin(angle)], axis=2)
        return _single(parts.reshape(self.kept, -1) / self.tile)

    def multiplications(self, channels: int, width: int) -> int:
        """Returns the real multiplications of a tile with `channels` inputs and `width` outputs."""
        forth = self.forward_height.size * self.tile + self.half * self.forward_width.size
        back = 2 * self.half * self.inverse_width[0].size + self.inverse_height.size * self.kept
        return forth * channels + 4 * self.half * self.tile * channels * width + back * width

    def _angles(self, rows: int, columns: int) -> NDArray[np.float64]:
        return 2 * np.pi * np.outer(np.arange(rows), np.arange(columns)) / self.tile


@lru_cache
def transforms(kernel: int) -> Transforms:
    """Returns the matrices for a kernel size; the tile is the next multiple of 8 above twice that size."""
    return Transforms(tile=-(-(2 * kernel + 1) // 8) * 8, kernel=kernel)


def saving(kernel: int, channels: int, width: int) -> float:
    """Returns the factor by which transforms reduce the multiplications of a convolution."""
    by = transforms(kernel)
    return (by.kept * kernel) ** 2 * channels * width / by.multiplications(channels, width)


def channel_groups(width: int) -> int:
    """Returns the number of equal groups in which `width` output channels are computed."""
    return width // CHANNEL_GROUP_SIZE if width % CHANNEL_GROUP_SIZE == 0 else 1


def kernel_spectra(kernel: NDArray[np.float32]) -> NDArray[np.float32]:
    """Computes the conjugate spectrum of a kernel [k, k, C, D]: convolutions of networks are correlations.

    The result [G, 2, F · T, C, D / G], by channel group and part, is aligned, so that engines need no copy.
    """
    side, channels, width = kernel.shape[1:]
    by, groups = transforms(side), channel_groups(width)
    shape = groups, 2, by.half * by.tile, channels, width // groups
    size = 4 * math.prod(shape)
    memory = np.empty(size + ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % ALIGNMENT
    spectra = memory[first : first + size].view(np.float32).reshape(shape)
    forward_width = np.hstack([by.forward_width[:, :side], by.forward_width[:, by.tile :][:, :side]])
    for place, group in zip(spectra, np.split(kernel, groups, axis=3), strict=True):
        x = by.forward_height[:, :side] @ group.reshape(side, -1)
        x = forward_width @ x.reshape(by.half, 2 * side, -1)
        x = x.reshape(by.half * by.tile, 2, channels, -1)
        place[:] = np.stack([x[:, 0], -x[:, 1]])
    return spectra


def _single(matrix: NDArray[np.float64]) -> Matrix:
    return np.asarray(matrix, dtype=np.float32)
