"""Checks what the samples of a TIFF picture are, before a decoder uses them."""

import struct
from dataclasses import dataclass

from segdec.errors import ImageError
from segdec.imaging.tiff_directory import PREMULTIPLIED, SEPARATE, SIGNATURES, WHITE_IS_ZERO, Tag, entries

UNSIGNED = 1
FORMATS = {2: "signed", 3: "floating-point", 4: "undefined", 5: "complex", 6: "complex floating-point"}
"""Sample formats that are not read: nothing says which value is black and which is white."""

COLOUR, PALETTE = 2, 3
DEPTHS = {0: (1, 2, 4, 8, 16), 1: (1, 2, 4, 8, 12, 16), COLOUR: (8, 16), PALETTE: (1, 2, 4, 8)}
"""Photometric interpretation → bits per sample that are read; 0 and 1 are grey."""

INTERPRETATIONS = {
    4: "a transparency mask",
    5: "printing inks (CMYK)",
    6: "luminance and chrominance (YCbCr)",
    8: "CIE Lab colours",
    9: "ICC Lab colours",
    10: "ITU Lab colours",
    32803: "raw values of a colour filter",
    34892: "raw linear values",
}

MAX_CHANNELS = 8
"""All channels are decompressed to read one of them."""

HORIZONTAL = 2
"""A predictor: each value is stored as the difference to the pixel before."""

_TYPES = {1: "B", 3: "H", 4: "L", 6: "b", 8: "h", 9: "l", 13: "L", 16: "Q", 17: "q", 18: "Q"}
"""Types of whole numbers."""


@dataclass(frozen=True)
class Samples:
    """The values of a pixel: `channels` of them, of which the first `colours` are the picture.

    Attributes:
        channels: Number of channels.
        colours: 1 (grey) or 3 (RGB).
        extra: Meanings of the other channels.
        separate: Whether each channel has a plane of its own.
        part_width: Pixels of a row that are coded together.
        differences: Whether each value is stored as the difference to the pixel before.
        white_is_zero: Whether 0 is white.
    """

    channels: int
    colours: int
    extra: tuple[int, ...]
    separate: bool
    part_width: int
    differences: bool
    white_is_zero: bool


def check_samples(data: bytes, name: str) -> None:
    """Rejects a TIFF whose samples are not unsigned grey, RGB or palette values.

    Raises:
        ImageError: With the code `unsupported_depth` or `unsupported_channels`.
    """
    tags = _numbers(data)
    formats, bits = set(tags.get(Tag.SAMPLE_FORMAT, (UNSIGNED,))), set(tags.get(Tag.BITS, (1,)))
    photometric, channels = tags.get(Tag.PHOTOMETRIC, (0,))[0], tags.get(Tag.CHANNELS, (1,))[0]
    if unread := sorted(formats - {UNSIGNED}):
        kind = FORMATS.get(unread[0], f"unknown ({unread[0]})")
        raise _rejected(name, f"has {kind} values", "depth")
    if photometric not in DEPTHS:
        kind = INTERPRETATIONS.get(photometric, f"colours of an unknown kind ({photometric})")
        raise _rejected(name, f"holds {kind}", "channels")
    if len(bits) > 1 or not bits <= set(DEPTHS[photometric]):
        palette = "a palette and " if photometric == PALETTE else ""
        raise _rejected(
            name, f"has {palette}{' and '.join(map(str, sorted(bits)))} bits per channel", "depth"
        )
    if not (3 if photometric == COLOUR else 1) <= channels <= MAX_CHANNELS:
        raise _rejected(name, f"has {channels} channels", "channels")


def find_separable(data: bytes, name: str) -> Samples | None:
    """Returns the samples of a TIFF whose channels Pillow does not read together; None for other files.

    Raises:
        ImageError: With the code `unsupported_channels`, if they cannot be separated either.
    """
    from PIL.TiffImagePlugin import OPEN_INFO  # optional

    if not data.startswith(SIGNATURES):
        return None
    tags = _numbers(data)
    photometric, channels = tags.get(Tag.PHOTOMETRIC, (0,))[0], tags.get(Tag.CHANNELS, (1,))[0]
    depth, extra = tags.get(Tag.BITS, (1,))[0], tags.get(Tag.EXTRA_CHANNELS, ())
    fill, separate = tags.get(Tag.FILL_ORDER, (1,))[0], tags.get(Tag.PLANES, (1,))[0] == SEPARATE
    colours = 3 if photometric == COLOUR else 1
    key = (data[:2], photometric, (UNSIGNED,), fill, (depth,) * channels, extra)
    if not (separate and channels > 1) and (channels == colours or key in OPEN_INFO):
        return None
    if depth not in (8, 16) or photometric == PALETTE or fill != 1 or PREMULTIPLIED in extra:
        raise _rejected(name, f"has {channels} channels of {depth} bits", "channels")
    return Samples(
        channels,
        colours,
        extra,
        separate,
        part_width=max(1, *tags.get(Tag.TILE_WIDTH, tags.get(Tag.WIDTH, (1,)))),
        differences=tags.get(Tag.PREDICTOR, (1,))[0] == HORIZONTAL,
        white_is_zero=photometric == WHITE_IS_ZERO,
    )


def _numbers(data: bytes) -> dict[int, tuple[int, ...]]:
    """Returns the whole numbers of each tag with few values."""
    order = "<" if data[:2] == b"II" else ">"
    values_by_tag = {}
    for entry in entries(data):
        if entry.type in _TYPES and 0 < entry.count <= 2 * MAX_CHANNELS:
            layout = f"{order}{entry.count}{_TYPES[entry.type]}"
            values = data[entry.place : entry.place + struct.calcsize(layout)]
            if len(values) == struct.calcsize(layout):
                values_by_tag[entry.tag] = struct.unpack(layout, values)
    return values_by_tag


def _rejected(name: str, arrived: str, code: str) -> ImageError:
    return ImageError(
        f"{name}, a TIFF file, {arrived}. Expected unsigned values, 8 or 16 bits per channel, in grey or "
        "RGB; convert all photographs by one fixed rule, or save them so.",
        code=f"unsupported_{code}",
    )
