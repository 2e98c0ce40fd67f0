"""Builds image files from their parts, including invalid ones."""

import io
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode(pixels: NDArray[Any], kind: str, mode: str | None = None, **options: Any) -> bytes:
    """A file written by Pillow."""
    picture = Image.fromarray(pixels.squeeze())
    stream = io.BytesIO()
    (picture.convert(mode) if mode else picture).save(stream, kind, **options)
    return stream.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    """A PNG chunk with a correct checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width: int, height: int, depth: int, color: int) -> bytes:
    """The first chunk of a PNG."""
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))


def png(width: int, height: int, depth: int, color: int, pixels: bytes, *, before: bytes = b"") -> bytes:
    """A PNG from its parts, with correct checksums; `before` are chunks before the pixels."""
    ending = chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return PNG_SIGNATURE + header(width, height, depth, color) + before + ending


def png_16(values: NDArray[np.uint16], *, before: bytes = b"") -> bytes:
    """A PNG with 16 bits per channel: values [H, W, C], C is 1 (grey), 2, 3 or 4 (the last one alpha)."""
    height, width, channels = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    return png(width, height, 16, color, zlib.compress(rows), before=before)


def tiff(
    values: NDArray[Any],
    *,
    order: str = "<",
    big: bool = False,
    pack: Callable[[bytes], bytes] = bytes,
    **tags: Sequence[int],
) -> bytes:
    """A TIFF of one strip: values [H, W, C]; `tags` are `t258=(16,)` and so on, added or replaced.

    With t284=(2,), each channel has a strip of its own.
    """
    height, width, channels = values.shape
    planes = np.moveaxis(values, 2, 0) if tags.get("t284") == (2,) else values[None]
    strips = [pack(plane.astype(values.dtype.newbyteorder(order)).tobytes()) for plane in planes]
    found: dict[int, Sequence[int]] = {
        256: (width,),
        257: (height,),
        258: (8 * values.dtype.itemsize,) * channels,
        259: (1,),
        262: (1 if channels == 1 else 2,),
        273: tuple(sum(map(len, strips[:number])) for number in range(len(strips))),  # in the pixels
        277: (channels,),
        278: (height,),
        279: tuple(map(len, strips)),
    }
    found |= {int(name[1:]): numbers for name, numbers in tags.items()}
    return tiff_file(found, b"".join(strips), order, big)


def tiff_file(tags: dict[int, Sequence[int]], pixels: bytes, order: str = "<", big: bool = False) -> bytes:
    """A TIFF from its tags (all of 32 bits) and its pixels; 0 first in tag 273 or 324 is their start."""
    size, number = (8, "Q") if big else (4, "L")
    start = 16 if big else 8
    after = start + (8 if big else 2) + len(tags) * (20 if big else 12) + size
    outside = {tag: numbers for tag, numbers in sorted(tags.items()) if 4 * len(numbers) > size}
    begin = after + sum(4 * len(numbers) for numbers in outside.values())
    found = {
        tag: [begin + n for n in numbers] if tag in (273, 324) and tuple(numbers[:1]) == (0,) else numbers
        for tag, numbers in tags.items()
    }
    extra = b"".join(_pack(order, found[tag]) for tag in outside)
    entries, place = b"", after
    for tag, values in sorted(found.items()):
        packed = _pack(order, values)
        if len(packed) > size:
            field, place = struct.pack(order + number, place), place + len(packed)
        else:
            field = packed.ljust(size, b"\0")
        entries += struct.pack(order + "HH" + number, tag, 4, len(values)) + field
    mark = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    mark += struct.pack(order + "HHQ", 8, 0, start) if big else struct.pack(order + "L", start)
    count = struct.pack(order + ("Q" if big else "H"), len(tags))
    return mark + count + entries + bytes(size) + extra + pixels


def _pack(order: str, numbers: Sequence[int]) -> bytes:
    return struct.pack(f"{order}{len(numbers)}L", *numbers)


def run_length_bmp(width: int, height: int) -> bytes:
    """A grey BMP of 8 bits in runs of 7, one for each row, of at most 255 pixels."""
    rows = bytes([width, 7, 0, 0]) * height + b"\0\1"
    palette = b"".join(bytes([level, level, level, 0]) for level in range(256))
    start = 14 + 40 + len(palette)
    sizes = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + sizes + palette + rows


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    """A WebP from its chunks, with correct sizes whatever the chunks are."""
    body = b"".join(
        kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for kind, data in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def arithmetic_jpeg(baseline: bytes, kept: int) -> bytes:
    """A baseline JPEG declared as arithmetic-coded, with `kept` bytes of its coded pixels, closed."""
    frame, scan = baseline.index(b"\xff\xc0") + 1, baseline.index(b"\xff\xda") + 2
    pixels = scan + int.from_bytes(baseline[scan : scan + 2])
    return baseline[:frame] + b"\xc9" + baseline[frame + 1 : pixels + kept] + b"\xff\xd9"


def packed_tiff(pixels: NDArray[Any], compression: str, kept: Callable[[bytes], bytes]) -> bytes:
    """A TIFF of one strip: pixels [H, W] or [H, W, C], packed by libtiff, then changed by `kept`."""
    data = encode(pixels, "TIFF", compression=compression, strip_size=2**30)
    with Image.open(io.BytesIO(data)) as picture:
        found: dict[int, Any] = dict(picture.tag_v2)  # type: ignore[attr-defined]
    (place,), (length,) = found.pop(273), found.pop(279)
    strip = kept(data[place : place + length])
    tags = {tag: value if isinstance(value, tuple) else (value,) for tag, value in found.items()}
    return tiff_file({**tags, 273: (0,), 279: (len(strip),)}, strip)
