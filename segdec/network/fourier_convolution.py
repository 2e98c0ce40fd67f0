"""Convolution with large kernels by Fourier transforms of tiles: the same result, fewer multiplications.

The image is split into overlapping tiles of T × T pixels (overlap-save). The inverse transform of a tile's
spectrum times the kernel's gives the S × S = (T − k + 1)² pixels of the convolution that depend only on the
tile. Because T is small, the transforms are products with constant real matrices: every engine supports them
and runs them fast. With k = 15: T = 32, S = 18, and F = 17 rows are sufficient, because the spectrum of real
pixels is symmetric. N is the number of tiles of a band, in all images of the batch.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from segdec.network.fourier import Transforms, saving, transforms

TILES_PER_PX = 3
"""Tiles per band and pixel of the kernel size. Few tiles stay in the cache; more tiles read the kernel's
spectrum, which does not fit, less often. With a kernel of 15 × 15 px, 64 channels need 0.28 MB per tile, 13
MB per band."""

_settings: ContextVar[tuple[Mapping[str, Any], bool]] = ContextVar("settings", default=({}, False))
"""Arguments of `fourier_transforms`; no layer uses transforms outside it."""


@contextmanager
def fourier_transforms(spectra: Mapping[str, Any], *, bounded: bool) -> Iterator[None]:
    """Makes `FourierConv2D` layers inside the block use Fourier transforms.

    Args:
        spectra: `segdec.network.fourier.kernel_spectra` by layer name; other layers convolve directly.
        bounded: Whether images are processed in bands, in a loop, which limits the memory.
    """
    token = _settings.set((spectra, bounded))
    try:
        yield
    finally:
        _settings.reset(token)


@keras.saving.register_keras_serializable(package="segdec")
class FourierConv2D(keras.layers.Conv2D):
    """A convolution [B, H, W, C] → [B, H, W, filters] that can use Fourier transforms.

    Weights and results are those of `keras.layers.Conv2D`, which it uses outside `fourier_transforms`. It
    needs padding `same`, stride 1 and a square kernel of odd size. The spectra of a kernel need
    2 · F · T / k² times its memory, about 5 times.
    """

    @property
    def saving(self) -> float:
        """Factor by which transforms, always in float32, reduce the multiplications."""
        directly = 1 if self.compute_dtype == "float32" else 2  # direct convolution is faster in bfloat16
        return saving(self.kernel_size[0], *self.kernel.shape[2:]) / directly

    def call(self, inputs: Any) -> Any:
        spectra, bounded = _settings.get()
        if self.name not in spectra:
            return super().call(inputs)
        inputs = ops.cast(inputs, "float32")
        return convolve(inputs, spectra[self.name], self.kernel_size[0], self._finish, bounded=bounded)

    def _finish(self, x: Any) -> Any:
        x = x if self.bias is None else x + ops.cast(self.bias, "float32")
        return self.activation(ops.cast(x, self.compute_dtype))


def convolve(image: Any, spectra: Any, kernel: int, finish: Callable[[Any], Any], *, bounded: bool) -> Any:
    """Convolves an image, with zero padding, with the kernel that has these spectra.

    Args:
        image: [B, H, W, C] float32.
        spectra: [G, 2, F · T, C, D / G], see `segdec.network.fourier.kernel_spectra`.
        kernel: Kernel size, px, odd.
        finish: Applied to the result (bias and activation).
        bounded: Whether to process the image in bands of `TILES_PER_PX` tiles per pixel of the kernel size,
            at least one row of tiles.

    Returns:
        [B, H, W, D].
    """
    by = transforms(kernel)
    batch, height, width, channels = ops.shape(image)
    rows, columns = -(-height // by.kept), -(-width // by.kept)  # of tiles
    # As many rows of tiles as fit into the cache, spread evenly, because bands must have the same shape.
    bands = -(-rows // ops.maximum(1, TILES_PER_PX * kernel // (batch * columns))) if bounded else 1
    at_once = -(-rows // bands)
    step, around = at_once * by.kept, by.kernel // 2
    below, right = bands * step - height, columns * by.kept - width  # padding of the last tiles
    padded = ops.pad(image, ((0, 0), (around, around + below), (around, around + right), (0, 0)))
    size = batch, step + 2 * around, width + right + 2 * around, channels

    def convolve_band(band: Any) -> Any:
        convolved = _convolve(ops.slice(padded, (0, band * step, 0, 0), size), spectra, by, at_once, columns)
        return finish(convolved[:, :, :width])

    if not bounded:
        return convolve_band(0)[:, :height]
    # Bands overlap by k − 1 rows, so each is cut from the padded image in the loop.
    convolved = ops.map(convolve_band, ops.arange(bands))  # [bands, B, step, W, D]
    convolved = ops.transpose(convolved, (1, 0, 2, 3, 4))
    return ops.reshape(convolved, (batch, bands * step, width, ops.shape(convolved)[-1]))[:, :height]


def _convolve(image: Any, spectra: Any, by: Transforms, rows: Any, columns: Any) -> Any:
    """Convolves an image [B, rows · S + k − 1, columns · S + k − 1, C] to [B, rows · S, columns · S, D].

    The height comes first, because horizontal neighbours then share the transform.
    """
    batch, _, width, channels = ops.shape(image)
    count, place = batch * rows * columns, ops.arange(by.tile, dtype="int32")[:, None]

    # Split into overlapping rows of tiles; transform their T pixel rows to F rows of two parts.
    x = ops.take(image, by.kept * ops.arange(rows, dtype="int32") + place, axis=1)  # [B, T, rows, width, C]
    x = ops.reshape(ops.transpose(x, (1, 0, 2, 3, 4)), (by.tile, -1))
    x = ops.reshape(ops.matmul(by.forward_height, x), (2 * by.half, batch * rows, width, channels))

    # Split these into tiles and transform their T columns, with real and imaginary parts together.
    x = ops.take(x, by.kept * ops.arange(columns, dtype="int32") + place, axis=2)
    x = ops.transpose(x, (0, 2, 1, 3, 4))  # [F · 2, T, B · rows, columns, C]
    x = ops.reshape(x, (by.half, 2 * by.tile, count * channels))
    x = ops.matmul(by.forward_width, x)  # [F, T · 2, N · C]

    # The convolution is now one product over the channels at each frequency. Groups of output channels are
    # computed one after another, because all at once would not fit into the cache.
    x = ops.reshape(x, (by.half * by.tile, 2 * count, channels))
    x = ops.concatenate([_multiply(x, group, count, by) for group in ops.unstack(spectra)], axis=-1)

    # The kept parts of the tiles are adjacent, without overlap.
    x = ops.reshape(x, (by.kept, by.kept, batch, rows, columns, ops.shape(x)[-1]))
    x = ops.transpose(x, (2, 3, 0, 4, 1, 5))  # [B, rows, S, columns, S, D]
    return ops.reshape(x, (batch, rows * by.kept, columns * by.kept, ops.shape(x)[-1]))


def _multiply(tiles: Any, spectra: Any, count: Any, by: Transforms) -> Any:
    """Multiplies spectra [F · T, 2 · N, C] and [2, F · T, C, D] and transforms back: [S, S, N, D]."""
    width = spectra.shape[3]
    shape = (by.half, 2 * by.tile, count * width)
    # A complex product has four real ones. Because the inverse transform is linear, each is transformed with
    # its own matrix, which includes the sign, and only the kept parts are summed.
    x = sum(
        ops.matmul(inverse_width, ops.reshape(ops.matmul(tiles, part), shape))
        for inverse_width, part in zip(by.inverse_width, ops.unstack(spectra), strict=True)
    )
    x = ops.matmul(by.inverse_height, ops.reshape(x, (2 * by.half, -1)))  # [S, S · N · D]
    return ops.reshape(x, (by.kept, by.kept, count, width))
