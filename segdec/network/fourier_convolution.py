"""Convolution with large kernels by Fourier transforms of tiles: the same numbers, fewer multiplications.

The image is cut into overlapping tiles of T × T pixels (overlap-save). The spectrum of a tile times that of
the kernel, and back, gives the S × S = (T − k + 1)² pixels of the convolution that do not depend on what
lies beyond the tile. Transforms are products with constant real matrices, for T is small: matrix products
are what every engine does best, have gradients, and need no operation that an engine may lack.

With k = 15: T = 32, S = 18, and F = 17 rows tell all of a tile's spectrum, for that of real pixels mirrors
itself. Each step reshapes until the axis to be transformed stands where a matrix product takes it; comments
name the axes. N counts the tiles of a band, in all images of the batch.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from segdec.network.fourier import Transforms, channel_groups, saving, spectrum, transforms

TILES_PER_PX = 3
"""Tiles that are multiplied together, a pixel of the kernel's side, whatever the size of the image: few where
all of it stays in the cache; more where the kernel's spectrum, which does not, is read anew each time. With a
kernel of 15 × 15 px, the 64 channels that are computed at once take 0.28 MB a tile, 13 MB together."""

_transforming: ContextVar["FourierTransforms | None"] = ContextVar("transforming", default=None)

Finish = Callable[[Any], Any]


@dataclass(frozen=True)
class FourierTransforms:
    """How the convolutions within `fourier_transforms` compute.

    Attributes:
        spectra: Of the kernels, by the names of their layers; None for all layers.
        bounded: Whether images are gone through in bands.
    """

    spectra: Mapping[str, Any] | None
    bounded: bool

    def includes(self, layer: str) -> bool:
        """Returns whether the layer of this name shall convolve so."""
        return self.spectra is None or layer in self.spectra


@contextmanager
def fourier_transforms(spectra: Mapping[str, Any] | None = None, *, bounded: bool = True) -> Iterator[None]:
    """Lets each `FourierConv2D` within the block convolve by Fourier transforms.

    Args:
        spectra: Of kernels that do not change meanwhile, by the names of their layers, as
            `FourierConv2D.spectra` gives them; the other layers convolve directly. None for all layers, with
            spectra that are computed anew for each call.
        bounded: Whether images are gone through in bands, in a loop, which bounds the memory.
    """
    token = _transforming.set(FourierTransforms(spectra, bounded))
    try:
        yield
    finally:
        _transforming.reset(token)


@keras.saving.register_keras_serializable(package="segdec")
class FourierConv2D(keras.layers.Conv2D):
    """A convolution, stride 1 and zeros around the image, by Fourier transforms where that is asked for.

    Weights and answers are those of `keras.layers.Conv2D`, which is what it is outside `fourier_transforms`.
    The spectra of a kernel take 2 · F · T / k² times its memory, about 5 times.

    Input shape:
        `[B, H, W, C]`

    Output shape:
        `[B, H, W, filters]`

    Example:
        >>> layer = FourierConv2D(4, 15, padding="same")
        >>> with fourier_transforms():
        ...     layer(np.zeros((1, 40, 60, 2))).shape
        (1, 40, 60, 4)
    """

    def __init__(self, filters: int, kernel_size: Any, **kwargs: Any) -> None:
        super().__init__(filters, kernel_size, **kwargs)
        sides, strides = set(self.kernel_size), set(self.strides) | set(self.dilation_rate)
        if len(sides) > 1 or sides.pop() % 2 == 0 or strides != {1} or self.groups != 1:
            raise ValueError(
                f"Kernel {self.kernel_size}, strides {self.strides}, dilation {self.dilation_rate}, "
                f"{self.groups} groups. Expected a square kernel of odd side and all others 1; use Conv2D."
            )
        if (self.padding, self.data_format) != ("same", "channels_last"):
            raise ValueError(
                f"Padding '{self.padding}', {self.data_format}. Expected padding 'same' and channels_last; "
                "use Conv2D."
            )

    @property
    def saving(self) -> float:
        """How many times less transforms multiply, which they do in float32, than the direct convolution."""
        directly = 1 if self.compute_dtype == "float32" else 2  # times as fast in bfloat16
        return saving(self.kernel_size[0], *self.kernel.shape[2:]) / directly

    def spectra(self) -> Any:
        """Computes those of the present kernel, float32, see `segdec.network.fourier.kernel_spectra`."""
        kernel, groups = ops.cast(self.kernel, "float32"), channel_groups(self.filters)
        return ops.stack([spectrum(group, ops) for group in ops.split(kernel, groups, axis=3)])

    def call(self, inputs: Any) -> Any:
        """Convolves `inputs` [B, H, W, C]."""
        way = _transforming.get()
        if way is None or not way.includes(self.name):
            return super().call(inputs)
        spectra = self.spectra() if way.spectra is None else way.spectra[self.name]
        inputs = ops.cast(inputs, "float32")
        return convolve(inputs, spectra, self.kernel_size[0], self._finish, bounded=way.bounded)

    def _finish(self, x: Any) -> Any:
        x = x if self.bias is None else x + ops.cast(self.bias, "float32")
        return self.activation(ops.cast(x, self.compute_dtype))


def convolve(image: Any, spectra: Any, kernel: int, finish: Finish, *, bounded: bool) -> Any:
    """Convolves an image with the kernel that has these spectra, zeros around the image.

    Args:
        image: [B, H, W, C] float32.
        spectra: [G, 2, F · T, C, D / G], see `segdec.network.fourier.kernel_spectra`.
        kernel: Side of the kernel, px, odd.
        finish: What becomes of the result, pixel by pixel.
        bounded: Whether the image is gone through in bands, of `TILES_PER_PX` tiles a pixel of the
            kernel, or one row of them.

    Returns:
        [B, H, W, D].
    """
    by = transforms(kernel)
    batch, height, width, channels = ops.shape(image)
    rows, columns = -(-height // by.kept), -(-width // by.kept)  # of tiles
    # As many rows of tiles at once as the cache holds, spread evenly: a loop wants bands of one shape.
    bands = -(-rows // ops.maximum(1, TILES_PER_PX * kernel // (batch * columns))) if bounded else 1
    at_once = -(-rows // bands)
    step, around = at_once * by.kept, by.kernel // 2
    below, right = bands * step - height, columns * by.kept - width  # fill up the last tiles, cut off again
    padded = ops.pad(image, ((0, 0), (around, around + below), (around, around + right), (0, 0)))
    size = batch, step + 2 * around, width + right + 2 * around, channels

    def convolve_band(band: Any) -> Any:
        found = _convolve(ops.slice(padded, (0, band * step, 0, 0), size), spectra, by, at_once, columns)
        return finish(found[:, :, :width])

    if not bounded:
        return convolve_band(0)[:, :height]
    # Bands overlap by k − 1 rows, so each is cut from the padded image only in its turn.
    found = ops.map(convolve_band, ops.arange(bands))  # [bands, B, step, W, D]
    found = ops.transpose(found, (1, 0, 2, 3, 4))
    return ops.reshape(found, (batch, bands * step, width, ops.shape(found)[-1]))[:, :height]


def _convolve(image: Any, spectra: Any, by: Transforms, rows: Any, columns: Any) -> Any:
    """Convolves an image [B, rows · S + k − 1, columns · S + k − 1, C] to [B, rows · S, columns · S, D].

    Along the height first: as long as a tile is not cut along the width, its neighbours share the transform.
    """
    batch, _, width, channels = ops.shape(image)
    count, place = batch * rows * columns, ops.arange(by.tile, dtype="int32")[:, None]

    # Cut into rows of tiles, which overlap; transform their T rows of pixels to F rows of two parts.
    x = ops.take(image, by.kept * ops.arange(rows, dtype="int32") + place, axis=1)  # [B, T, rows, width, C]
    x = ops.reshape(ops.transpose(x, (1, 0, 2, 3, 4)), (by.tile, -1))
    x = ops.reshape(ops.matmul(by.to_half, x), (2 * by.half, batch * rows, width, channels))

    # Cut these into tiles, and transform their T columns; real and imaginary part enter together.
    x = ops.take(x, by.kept * ops.arange(columns, dtype="int32") + place, axis=2)
    x = ops.transpose(x, (0, 2, 1, 3, 4))  # [F · 2, T, B · rows, columns, C]
    x = ops.matmul(by.to_whole, ops.reshape(x, (by.half, 2 * by.tile, count * channels)))  # [F, T · 2, N · C]

    # A convolution is now one product over the channels at each place of the spectrum. Groups of channels of
    # the result go one after another, for all of them at once would not stay in the cache.
    x = ops.reshape(x, (by.half * by.tile, 2 * count, channels))
    x = ops.concatenate([_multiply(x, group, count, by) for group in ops.unstack(spectra)], axis=-1)

    # What is kept of the tiles lies side by side, without overlap.
    x = ops.reshape(x, (by.kept, by.kept, batch, rows, columns, ops.shape(x)[-1]))
    x = ops.transpose(x, (2, 3, 0, 4, 1, 5))  # [B, rows, S, columns, S, D]
    return ops.reshape(x, (batch, rows * by.kept, columns * by.kept, ops.shape(x)[-1]))


def _multiply(tiles: Any, spectra: Any, count: Any, by: Transforms) -> Any:
    """The products of spectra [F · T, 2 · N, C] and [2, F · T, C, D], transformed back: [S, S, N, D]."""
    width = spectra.shape[3]
    shape = (by.half, 2 * by.tile, count * width)
    # A complex product is four real ones, of both parts of the tiles and of the kernel. They are not added up
    # here: the way back is linear, so each has a matrix with its signs, and only what is kept is summed.
    x = sum(
        ops.matmul(from_whole, ops.reshape(ops.matmul(tiles, part), shape))
        for from_whole, part in zip(by.from_whole, ops.unstack(spectra), strict=True)
    )
    x = ops.matmul(by.from_half, ops.reshape(x, (2 * by.half, -1)))  # [S, S · N · D]
    return ops.reshape(x, (by.kept, by.kept, count, width))
