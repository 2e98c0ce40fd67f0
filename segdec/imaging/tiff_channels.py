"""Separates the channels of TIFF pictures with extra channels, so that Pillow can decode them.

The same pixels get another directory: of one plane, or of a wider grey picture that has the channels of a
pixel side by side.
"""

import struct

from segdec.imaging.tiff_directory import TYPE_BYTES, Entry, Tag, entries
from segdec.imaging.tiff_samples import Samples

LONG = 4
BLACK_IS_ZERO = 1

Change = int | slice | None
"""The new value of a tag, its values that remain, or None to remove it."""

ALL = slice(0, None)


def picture_header(data: bytes, samples: Samples) -> bytes:
    """Returns the file with a directory that has only the picture's channels; its pixels do not fit."""
    changes: dict[int, Change] = dict.fromkeys((Tag.PLANES, Tag.SAMPLE_FORMAT, Tag.EXTRA_CHANNELS))
    return _with_tags(data, {**changes, Tag.CHANNELS: samples.colours, Tag.BITS: slice(0, samples.colours)})


def as_grey(data: bytes, samples: Samples, channel: int) -> bytes:
    """Returns the file as grey and not rotated: the plane of `channel`, or all channels side by side.

    In the latter, column `channels` × x + c has channel c of the pixel x, or its difference to the pixel
    before.
    """
    changes: dict[int, Change] = {
        Tag.CHANNELS: 1,
        Tag.BITS: slice(0, 1),
        Tag.PHOTOMETRIC: BLACK_IS_ZERO,
        Tag.PLANES: 1,
        Tag.ORIENTATION: None,
        Tag.SAMPLE_FORMAT: None,
        Tag.EXTRA_CHANNELS: None,
    }
    for entry in entries(data):
        if samples.separate and entry.tag in (Tag.STRIPS, Tag.STRIP_BYTES, Tag.TILES, Tag.TILE_BYTES):
            parts = entry.count // samples.channels
            changes[entry.tag] = slice(channel * parts, (channel + 1) * parts)
        elif not samples.separate and entry.tag in (Tag.WIDTH, Tag.TILE_WIDTH):
            changes[entry.tag] = min(entry.value * samples.channels, 2**32 - 1)
        elif not samples.separate and entry.tag == Tag.PREDICTOR:
            changes[entry.tag] = None
    return _with_tags(data, changes)


def _with_tags(data: bytes, changes: dict[int, Change]) -> bytes:
    """Returns the file with a changed first directory, at its end."""
    order, big = "<" if data[:2] == b"II" else ">", b"+" in data[2:4]
    pointer, number = order + ("Q" if big else "L"), order + ("Q" if big else "H")
    kept = [
        _with_values(data, entry, changes.get(entry.tag, ALL), order, big)
        for entry in entries(data)
        if changes.get(entry.tag, ALL) is not None
    ]
    start = data[: 8 if big else 4] + struct.pack(pointer, len(data))
    return start + data[len(start) :] + struct.pack(number, len(kept)) + b"".join(kept) + bytes(8)


def _with_values(data: bytes, entry: Entry, change: Change, order: str, big: bool) -> bytes:
    head, size = (order + "HHQ", 8) if big else (order + "HHL", 4)
    if isinstance(change, int):
        return struct.pack(head, entry.tag, LONG, 1) + struct.pack(order + "L", change).ljust(size, b"\0")
    first, end, _ = (change or ALL).indices(entry.count)
    width = TYPE_BYTES.get(entry.type, 0)
    place, count = entry.place + first * width, end - first
    inline = count * width <= size
    value = (
        data[place : place + count * width] if inline else struct.pack(order + ("Q" if big else "L"), place)
    )
    return struct.pack(head, entry.tag, entry.type, count) + value.ljust(size, b"\0")
