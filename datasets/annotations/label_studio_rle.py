"""Decodes the run lengths of Label Studio's brush strokes.

The bytes are a stream of bits, most significant bit first, in the format of `@thi.ng/rle-pack`:

    32 bits     number of words
    5 bits      size of a word - 1
    4 × 4 bits  sizes of a count - 1, one for each class of counts
    then chunks until all words are read:
    1 bit       1: one word, repeated `count` times; 0: `count` words
    2 bits      class of the count
    n bits      count - 1
    words

The words are the pixel values, height × width × RGBA; only alpha shows the brush.

Reference:
    https://github.com/thi-ng/umbrella, packages/rle-pack, section "Encoding format"
"""

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.shapes import numbers
from segdec.images import DEFAULT_MAX_PIXELS

CHANNELS = 4
WORD_BITS = 8


def decode(values: object, height: int, width: int) -> NDArray[np.uint8]:
    """Returns the alpha channel of a brush stroke, uint8 [height, width]; above 0 for painted pixels.

    `values` are the `rle` of a result: bytes as a list of numbers.

    Raises:
        ValueError: If the list does not hold bytes, ends too early, or belongs to another size.
    """
    words = height * width * CHANNELS
    if words > DEFAULT_MAX_PIXELS * CHANNELS:
        raise ValueError(
            f"the picture of {width}×{height} pixels is too large for a brush; expected at most "
            f"{DEFAULT_MAX_PIXELS} pixels: draw polygons instead"
        )
    stream = _Bits(_bytes(values))
    arrived = stream.number(32)
    if arrived != words:
        raise ValueError(
            f"the run lengths have {arrived} values; expected {words} for {width}×{height} pixels of RGBA"
        )
    word_bits = stream.number(5) + 1
    if word_bits != WORD_BITS:
        raise ValueError(f"the run lengths have words of {word_bits} bits; expected {WORD_BITS}")
    rgba = _unpack(stream, [stream.number(4) + 1 for _ in range(4)], words)
    return np.ascontiguousarray(rgba.reshape(height, width, CHANNELS)[..., -1])


def _unpack(stream: "_Bits", count_bits: list[int], words: int) -> NDArray[np.uint8]:
    out = np.empty(words, np.uint8)
    done = 0
    while done < words:
        repeated = stream.number(1)
        count = stream.number(count_bits[stream.number(2)]) + 1
        if done + count > words:
            raise ValueError(f"the run lengths exceed the {words} values")
        out[done : done + count] = stream.bytes(1 if repeated else count)
        done += count
    return out


def _bytes(values: object) -> NDArray[np.uint8]:
    listed = numbers(values)
    if not all(0 <= value <= 255 and value == int(value) for value in listed):
        raise ValueError("the run lengths are not bytes; expected whole numbers from 0 to 255")
    return np.array(listed, np.uint8)


class _Bits:
    """Reads a stream of bits."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._bits = np.unpackbits(data)
        self._place = 0

    def number(self, bits: int) -> int:
        """Reads a number of `bits` bits."""
        value = 0
        for bit in self._next(bits).tolist():
            value = value << 1 | bit
        return int(value)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        """Reads `count` bytes."""
        return np.packbits(self._next(count * WORD_BITS))

    def _next(self, bits: int) -> NDArray[np.uint8]:
        taken = self._bits[self._place : self._place + bits]
        if taken.size < bits:
            raise ValueError("the run lengths end too early")
        self._place += bits
        return taken
