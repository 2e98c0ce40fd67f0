"""Malformed files: truncated, damaged, decompression bombs, other types. Generated, the same in each run.

`malformed_images()` gives them all; the decoder's tests and the service's use them.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import cv2
import numpy as np

from benchmarks.damage import OVERWRITES
from tests.image_files import (
    PNG_SIGNATURE,
    arithmetic_jpeg,
    chunk,
    encode,
    header,
    packed_tiff,
    png,
    png_16,
    run_length_bmp,
    tiff,
    tiff_file,
    webp,
)

Expectation = Literal["refused", "same", "unchecked", "any"]
FLIPS_A_FILE = 4
OVERWRITES_A_FILE = 2
BLOCK = 2**20
BOMB = "bomb"
"""Prefix of the names of bombs."""


@dataclass(frozen=True)
class MalformedImage:
    """A file and its expected result.

    Attributes:
        name: What it is; unique.
        data: The file.
        expectation: `refused`: it must not decode. `same`: if it does, to the pixels of the file `kind`.
            `unchecked`: it may decode to a whole picture, which reports that it could not be checked. `any`:
            the same without that; a picture of 1 × 1 is one.
        kind: Name of the whole file that was damaged, where that matters.
    """

    name: str
    data: bytes
    expectation: Expectation = "refused"
    kind: str = ""


def malformed_images() -> Iterator[MalformedImage]:
    """Yields all malformed files."""
    bombs = (_png_bombs, _tiff_bombs, _noted_bombs, _other_bombs)
    others = (_odd_sizes, _not_images, _unsupported, _strips_cut_short, _contradictory)
    for images in (_truncated, _flipped, _overwritten, *bombs, *others):
        yield from images()


# === Whole files ===


@cache
def whole_files() -> dict[str, bytes]:
    """A valid file of each accepted kind, by name; noise, so that every row needs bytes."""
    rng = np.random.default_rng(4)
    grey, colour, alpha, two = (rng.integers(0, 256, (32, 40, n), dtype=np.uint8) for n in (1, 3, 4, 2))
    lzw = [cv2.IMWRITE_TIFF_COMPRESSION, 5]
    deep, deep_colour = (rng.integers(0, 65536, (32, 40, n), dtype=np.uint16) for n in (1, 3))
    return {
        "grey PNG": encode(grey, "PNG"),
        "colour PNG": encode(colour, "PNG"),
        "PNG with alpha": encode(alpha, "PNG"),
        "grey PNG with alpha": encode(two, "PNG"),
        "palette PNG": encode(colour, "PNG", "P"),
        "1-bit PNG": encode(grey, "PNG", "1"),
        "16-bit grey PNG": png_16(deep),
        "16-bit colour PNG": png_16(deep_colour),
        "baseline JPEG": encode(colour, "JPEG"),
        "JPEG 4:4:4": encode(colour, "JPEG", quality=95, subsampling="4:4:4"),
        "progressive JPEG": encode(colour, "JPEG", progressive=True),
        "grey JPEG": encode(grey, "JPEG"),
        "grey progressive JPEG": encode(grey, "JPEG", progressive=True),
        "colour BMP": encode(colour, "BMP"),
        "grey BMP": encode(grey, "BMP"),
        "TIFF": encode(colour, "TIFF"),
        "LZW TIFF": encode(colour, "TIFF", compression="tiff_lzw"),
        "deflate TIFF": encode(colour, "TIFF", compression="tiff_adobe_deflate"),
        "PackBits TIFF": encode(grey, "TIFF", compression="packbits"),
        "16-bit grey TIFF": tiff(deep),
        "16-bit colour TIFF": tiff(deep_colour, order=">"),
        "16-bit LZW TIFF": cv2.imencode(".tiff", deep_colour, lzw)[1].tobytes(),
        "TIFF with extra channels": tiff(alpha, t262=(1,), t338=(0, 0, 0)),
        "TIFF with extra planes": tiff(alpha, t262=(1,), t338=(0, 0, 0), t284=(2,)),
        "lossy WebP": encode(colour, "WEBP"),
        "lossless WebP": encode(colour, "WEBP", lossless=True),
        "lossless WebP with alpha": encode(alpha, "WEBP", lossless=True),
    }


# === Damage ===


def _truncated() -> Iterator[MalformedImage]:
    for kind, data in whole_files().items():
        for tenth in (1, 3, 5, 7, 9):
            cut = data[: len(data) * tenth // 10]
            yield MalformedImage(f"{kind}, {tenth} tenths of it", cut)
            if "JPEG" in kind:
                yield MalformedImage(f"{kind}, {tenth} tenths of it, closed", cut + b"\xff\xd9")
            if "WebP" in kind:
                yield MalformedImage(f"{kind}, {tenth} tenths of it, closed", _closed_webp(cut))


def _closed_webp(cut: bytes) -> bytes:
    """Adjusts the sizes in the headers to the rest."""
    kind, content = cut[12:16], cut[20:]
    if kind == b"VP8X":  # its alpha needs it: the pixels are the second chunk
        return webp((kind, cut[20:30]), (cut[30:34], cut[38:]))
    return webp((kind, content))


def _flipped() -> Iterator[MalformedImage]:
    rng = np.random.default_rng(5)
    for kind, data in whole_files().items():
        for place in rng.integers(0, 8 * len(data), FLIPS_A_FILE).tolist():
            damaged = bytearray(data)
            damaged[place // 8] ^= 1 << place % 8
            expectation: Expectation = "refused" if "PNG" in kind else "unchecked"
            yield MalformedImage(f"{kind}, bit {place} flipped", bytes(damaged), expectation)


def _overwritten() -> Iterator[MalformedImage]:
    """Files of unchanged length."""
    rng = np.random.default_rng(10)
    for kind, data in whole_files().items():
        expectation: Expectation = "same" if "PNG" in kind else "unchecked"
        for way, overwrite in OVERWRITES.items():
            for number in range(OVERWRITES_A_FILE):
                damaged = overwrite(rng, data)
                yield MalformedImage(f"{kind}, {way}, {number}", damaged, expectation, kind)


# === Bombs ===


@cache
def zeros(length: int) -> bytes:
    """`length` bytes 0 (a multiple of 1 MiB), compressed 1000 to 1, without creating them in memory."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = struct.pack(">HH", length % 65521, 1)  # Adler-32
    return b"\x78\xda" + block * (length // BLOCK) + b"\x03\0" + checksum


def _bomb(name: str, data: bytes, expectation: Expectation = "refused") -> MalformedImage:
    return MalformedImage(f"{BOMB}: {name}", data, expectation)


def _png_bombs() -> Iterator[MalformedImage]:
    dot = zlib.compress(b"\0\5")
    yield _bomb("PNG of 20,000 × 20,000", png(20_000, 20_000, 8, 0, zeros(400 * BLOCK)))
    yield _bomb("PNG of 1 × 1 with 400 MB of pixels", _dot(dot=zeros(400 * BLOCK)))
    profile = chunk(b"iCCP", b"icc\0\0" + zeros(400 * BLOCK))
    yield _bomb("PNG with a profile of 400 MB", _dot(profile), "any")
    text = chunk(b"zTXt", b"text\0\0" + zlib.compress(bytes(BLOCK - 9)))
    yield _bomb("PNG with 60 texts of 1 MB", _dot(text * 60), "any")
    yield _bomb("PNG with 100,000 empty chunks", _dot(chunk(b"teSt", b"") * 100_000))
    second = header(1, 1, 8, 0)
    yield _bomb("PNG with two headers", png(30_000, 30_000, 8, 0, dot, before=second))
    first = header(30_000, 30_000, 8, 0)
    yield _bomb("PNG with a huge second header", png(1, 1, 8, 0, dot, before=first))


def _dot(before: bytes = b"", *, dot: bytes = zlib.compress(b"\0\5")) -> bytes:
    return png(1, 1, 8, 0, dot, before=before)


def _tiff_bombs() -> Iterator[MalformedImage]:
    grey = {258: (8,), 262: (1,), 277: (1,)}
    side = {256: (20_000,), 257: (20_000,), 278: (20_000,)}
    packed = zeros(400 * BLOCK)
    strip = {273: (0,), 279: (len(packed),)}
    yield _bomb("deflate TIFF", tiff_file({**grey, **side, **strip, 259: (8,)}, packed))
    yield _bomb("LZW TIFF", tiff_file({**grey, **side, **strip, 259: (5,)}, bytes(999)))
    plain = {**grey, **side, **strip, 259: (1,), 279: (400_000_000,)}
    yield _bomb("uncompressed TIFF without pixels", tiff_file(plain, b""))
    dot = {**grey, 256: (1,), 257: (1,), 259: (8,)}
    tile = {322: (20_000,), 323: (20_000,), 324: (0,), 325: (len(packed),)}
    yield _bomb("TIFF of 1 × 1 with a huge tile", tiff_file({**dot, **tile}, packed))
    yield _bomb("TIFF of 1 × 1 with a huge strip", tiff_file({**dot, **strip, 278: (1,)}, packed), "any")
    many = {**dot, 278: (1,), 273: (8,) * 300_000, 279: (1,) * 300_000, 259: (1,)}
    yield _bomb("TIFF of 300,000 strips", tiff_file(many, b"\5"))
    values = {**dot, 259: (1,), 258: (8,) * 300_000, 273: (0,), 279: (1,), 278: (1,)}
    yield _bomb("TIFF of 300,000 channels", tiff_file(values, b"\5"))
    yield _bomb("TIFF whose tags share 1 MB", _shared_tags(2_000))
    pages = tiff(np.full((1, 1, 1), 5, np.uint8))
    yield _bomb("TIFF of 30,000 empty pages", _pages(pages, 30_000), "any")
    yield _bomb("TIFF whose next page is itself", _next_page(pages, 8), "any")


RATIONAL, LONG = 5, 4


def notes(tag: int, kind: int, count: int, *, place: int = 8) -> bytes:
    """A TIFF or EXIF file of one tag with `count` values of 8 bytes, its directory at `place`."""
    entry = struct.pack("<HHHLL", 1, tag, kind, count, place + 18)
    return b"II*\0" + struct.pack("<L", place) + bytes(place - 8) + entry + bytes(4) + bytes(8 * count)


def _noted_bombs() -> Iterator[MalformedImage]:
    """Millions of values in tags for orientation or resolution."""
    orientation = notes(274, RATIONAL, 700_000)
    dot = zlib.compress(b"\0\5")
    yield _bomb(
        "PNG with 700,000 orientations", png(1, 1, 8, 0, dot, before=chunk(b"eXIf", orientation)), "any"
    )
    frame = whole_files()["lossless WebP"][20:]
    canvas = bytes([8, 0, 0, 0]) + struct.pack("<I", 39)[:3] + struct.pack("<I", 31)[:3]
    noted = webp((b"VP8X", canvas), (b"VP8L", frame), (b"EXIF", orientation))
    yield _bomb("WebP with 700,000 orientations", noted, "any")
    jpeg = whole_files()["baseline JPEG"]
    resolution, tables = notes(282, RATIONAL, 700_000), jpeg.index(b"\xff\xdb")
    parts = [resolution[start : start + 65_000] for start in range(0, len(resolution), 65_000)]
    segments = b"".join(b"\xff\xe1" + struct.pack(">H", len(part) + 8) + b"Exif\0\0" + part for part in parts)
    yield _bomb("JPEG with 700,000 resolutions", jpeg[:2] + segments + jpeg[tables:])
    tags = {256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: 1, 34665: 122 + 100}
    entries = b"".join(struct.pack("<HHLL", tag, LONG, 1, value) for tag, value in tags.items())
    first = struct.pack("<H", len(tags)) + entries + bytes(4)
    whole = notes(33434, RATIONAL, 700_000, place=222)
    yield _bomb(
        "TIFF with 700,000 exposure times", b"II*\0" + struct.pack("<L", 8) + first + whole[8 + len(first) :]
    )


def _next_page(data: bytes, place: int) -> bytes:
    """Sets the link after the first directory to `place`."""
    count = struct.unpack_from("<H", data, 8)[0]
    link = 10 + 12 * count
    return data[:link] + struct.pack("<L", place) + data[link + 4 :]


def _pages(data: bytes, count: int) -> bytes:
    start = len(data)
    pages = b"".join(
        struct.pack("<HHHLLL", 1, 256, 4, 1, 1, start + 18 * (number + 1)) for number in range(count)
    )
    return _next_page(data, start) + pages


def _shared_tags(count: int) -> bytes:
    """`count` tags that all point to the same megabyte."""
    own = {256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: 1}
    entries = [struct.pack("<HHLL", tag, 4, 1, value) for tag, value in own.items()]
    place = 8 + 2 + 12 * (len(own) + count) + 4
    entries += [struct.pack("<HHLL", 40_000 + number, 7, BLOCK, place) for number in range(count)]
    return b"II*\0" + struct.pack("<LH", 8, len(entries)) + b"".join(entries) + bytes(4) + bytes(BLOCK)


def _other_bombs() -> Iterator[MalformedImage]:
    lossless = webp_lossless_header(1, 1)
    for side in (16_384, 12_000):
        canvas = struct.pack("<I", 0) + struct.pack("<I", side - 1)[:3] * 2
        yield _bomb(
            f"WebP with a canvas of {side} around 1 × 1", webp((b"VP8X", canvas), (b"VP8L", lossless))
        )
        yield _bomb(f"animated WebP with a canvas of {side}", _animation(side))
        yield _bomb(f"lossless WebP of {side}", webp((b"VP8L", webp_lossless_header(side, side))))
    small = whole_files()["baseline JPEG"]
    place = small.index(b"\xff\xc0") + 5
    huge = small[:place] + struct.pack(">HH", 65_500, 65_500) + small[place + 4 :]
    yield _bomb("JPEG of 65,500 × 65,500", huge)
    progressive = whole_files()["progressive JPEG"]
    last = progressive.rindex(b"\xff\xda")
    scans = progressive[:-2] + progressive[last:-2] * 5_000 + b"\xff\xd9"
    yield _bomb("JPEG of 5,000 scans", scans)
    comments = small[:2] + b"\xff\xfe\0\2" * 500_000 + small[2:]
    yield _bomb("JPEG of 500,000 comments", comments)
    padded = small[:2] + b"\xff" * 4_000_000 + small[2:]
    yield _bomb("JPEG with 4 MB between its segments", padded)
    bmp = whole_files()["grey BMP"]
    for width, height in ((30_000, 30_000), (2**31 - 1, 2**31 - 1), (30_000, -30_000)):
        data = bmp[:18] + struct.pack("<ii", width, height) + bmp[26:]
        yield _bomb(f"BMP of {width} × {height}", data)


def webp_lossless_header(width: int, height: int) -> bytes:
    """The first bytes of a lossless WebP frame; the rest is 0."""
    return b"\x2f" + struct.pack("<I", (width - 1) & 0x3FFF | ((height - 1) & 0x3FFF) << 14) + bytes(32)


def _animation(side: int) -> bytes:
    canvas = struct.pack("<I", 2) + struct.pack("<I", side - 1)[:3] * 2
    frame = bytes(15) + b"\0" + b"VP8L" + struct.pack("<I", 37) + webp_lossless_header(1, 1) + b"\0"
    return webp((b"VP8X", canvas), (b"ANIM", bytes(6)), *[(b"ANMF", frame)] * 20)


# === Sizes ===


def _odd_sizes() -> Iterator[MalformedImage]:
    for kind in ("PNG", "JPEG", "BMP", "TIFF", "WEBP"):
        yield MalformedImage(f"{kind} of 1 × 1", encode(np.full((1, 1, 3), 5, np.uint8), kind), "any")
    for width, height in ((100_000, 1), (1, 100_000)):
        row = np.zeros((height, width, 1), np.uint8)
        for kind in ("PNG", "BMP", "TIFF"):
            yield MalformedImage(f"{kind} of {width} × {height}", encode(row, kind))
    for width, height in ((0, 0), (0, 5), (5, 0)):
        yield MalformedImage(f"PNG of {width} × {height}", png(width, height, 8, 0, zlib.compress(b"\0")))
        bmp = whole_files()["grey BMP"]
        yield MalformedImage(
            f"BMP of {width} × {height}", bmp[:18] + struct.pack("<ii", width, height) + bmp[26:]
        )
        sizes = {256: (width,), 257: (height,), 258: (8,), 259: (1,), 262: (1,), 273: (0,), 279: (0,)}
        yield MalformedImage(f"TIFF of {width} × {height}", tiff_file(sizes, b""))


# === Other files ===


def _not_images() -> Iterator[MalformedImage]:
    files = {
        "empty": b"",
        "one byte": b"\x89",
        "zeros": bytes(4096),
        "text": b"this is not an image\n" * 50,
        "EPS": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
        "GIF": encode(np.full((8, 8), 5, np.uint8), "GIF"),
        "PNG after a byte order mark": b"\xef\xbb\xbf" + whole_files()["grey PNG"],
    }
    yield from (MalformedImage(name, data) for name, data in files.items())
    for kind in ("grey PNG", "baseline JPEG", "TIFF", "lossless WebP", "grey BMP"):
        data = whole_files()[kind]
        yield MalformedImage(f"{kind} with the first bytes of a GIF", b"GIF89a" + data[6:])
        yield MalformedImage(f"{kind} with text behind it", data + b"<script>alert(1)</script>", "any")
    yield MalformedImage("JPEG that begins as a PNG", PNG_SIGNATURE + whole_files()["baseline JPEG"][8:])
    yield MalformedImage("PNG that begins as a JPEG", b"\xff\xd8\xff\xe0" + whole_files()["grey PNG"][4:])
    yield MalformedImage("PNG without pixels", PNG_SIGNATURE + header(9, 9, 8, 0) + chunk(b"IEND", b""))
    yield MalformedImage("PNG of one signature", PNG_SIGNATURE)
    yield MalformedImage("JPEG of two markers", b"\xff\xd8\xff\xd9")
    yield MalformedImage("WebP without chunks", webp())


# === Images of other kinds ===


def _unsupported() -> Iterator[MalformedImage]:
    colour = np.random.default_rng(7).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    deep = np.full((8, 8, 1), 9_000, np.uint16)
    baseline = whole_files()["baseline JPEG"]
    files = {
        "CMYK JPEG": encode(colour, "JPEG", "CMYK"),
        "arithmetic-coded JPEG without coded pixels": arithmetic_jpeg(baseline, 0),
        "arithmetic-coded JPEG, cut off and closed": arithmetic_jpeg(baseline, 10),
        "lossless JPEG": baseline.replace(b"\xff\xc0", b"\xff\xc3", 1),
        "hierarchical JPEG": baseline.replace(b"\xff\xc0", b"\xff\xc5", 1),
        "12-bit JPEG": baseline.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc1\0\x11\x0c", 1),
        "run-length BMP": run_length_bmp(16, 16),
        "CMYK TIFF": encode(colour, "TIFF", "CMYK"),
        "Lab TIFF": tiff(colour, t262=(8,)),
        "JPEG in TIFF": tiff(colour, t259=(7,)),
        "reduced picture in TIFF": tiff(colour, t254=(1,)),
        "transparency mask in TIFF": tiff(colour, t254=(4,)),
        "reduced picture in TIFF, by the older tag": tiff(colour, t255=(2,)),
        "float TIFF": encode(np.ones((8, 8), np.float32), "TIFF"),
        "32-bit TIFF": encode(np.ones((8, 8), np.int32), "TIFF"),
        "signed TIFF": tiff(deep, t339=(2,)),
        "TIFF with 0 for white": tiff(deep, t262=(0,)),
        "TIFF of 9 channels": tiff(np.zeros((8, 8, 9), np.uint8)),
        "TIFF of 64 bits": tiff(np.zeros((8, 8, 1), np.uint64)),
        "12-bit PNG": png_16(np.full((8, 8, 1), 4_095, np.uint16)),
    }
    yield from (MalformedImage(name, data) for name, data in files.items())


def _strips_cut_short() -> Iterator[MalformedImage]:
    """Strips of the right length, but with half of the picture, or zeros for the rest."""
    colour = np.random.default_rng(8).integers(0, 256, (32, 40, 3), dtype=np.uint8)
    black_and_white = colour[..., 0] > 127
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "lzma", "zstd"):
        half = packed_tiff(colour, compression, lambda strip: strip[: len(strip) // 2])
        yield MalformedImage(f"{compression} TIFF with half its strip", half)
    for compression in ("tiff_ccitt", "group3", "group4"):
        half = packed_tiff(black_and_white, compression, lambda strip: strip[: len(strip) // 2])
        yield MalformedImage(f"{compression} TIFF with half its strip", half)
    plain = np.full((200, 160), 7, np.uint8)
    plain[::20, 40:49] = colour[:10, :9, 0]
    zeroed = packed_tiff(plain, "tiff_adobe_deflate", _half_zeroed)  # zeros mean long runs there
    yield MalformedImage("deflate TIFF of a scratched part with zeros for half its strip", zeroed)
    for compression in ("lzma", "zstd", "group4"):
        pixels = black_and_white if compression == "group4" else colour
        zeroed = packed_tiff(pixels, compression, _half_zeroed)
        yield MalformedImage(f"{compression} TIFF with zeros for half its strip", zeroed)


def _half_zeroed(strip: bytes) -> bytes:
    return strip[: len(strip) // 2].ljust(len(strip), b"\0")


def _contradictory() -> Iterator[MalformedImage]:
    """Correct checksums of wrong content."""
    rows = b"".join(b"\0" + bytes(range(20)) for _ in range(10))
    whole = zlib.compress(rows)
    yield MalformedImage("PNG with half its rows", png(20, 10, 8, 0, zlib.compress(rows[:105])))
    yield MalformedImage("PNG of 3 bits", png(20, 10, 3, 0, whole))
    yield MalformedImage("PNG of an unknown colour type", png(20, 10, 8, 5, whole))
    yield MalformedImage("palette PNG without a palette", png(20, 10, 8, 3, whole))
    yield MalformedImage("PNG with an unknown filter", png(20, 10, 8, 0, zlib.compress(b"\x09" + rows[1:])))
    yield MalformedImage("PNG with pixels that are not deflated", png(20, 10, 8, 0, rows))
    cut_notes = chunk(b"eXIf", b"II*\0" + struct.pack("<LHHH", 8, 1, 274, 3))
    yield MalformedImage(
        "PNG with cut EXIF behind its pixels", _behind_pixels(png(20, 10, 8, 0, whole), cut_notes), "any"
    )
    two = _behind_pixels(png(20, 10, 8, 0, zlib.compress(rows[:105])), cut_notes * 2)
    yield MalformedImage("PNG with half its rows and EXIF twice behind them", two)
    yield MalformedImage(
        "PNG with an unknown critical chunk", png(20, 10, 8, 0, whole, before=chunk(b"CgBI", bytes(4)))
    )
    grey = np.full((8, 8, 1), 5, np.uint8)
    text = tiff(grey)
    place = text.index(struct.pack("<HHL", 278, 4, 1))
    yield MalformedImage("TIFF with a text for a number", text[: place + 2] + b"\2" + text[place + 3 :])
    yield MalformedImage("TIFF with a strip beyond its end", tiff(grey, t273=(10**6,)))
    yield MalformedImage("TIFF with a strip in its header", tiff(grey, t273=(2,)), "any")
    yield MalformedImage("TIFF with half its strips", tiff(grey, t257=(16,), t278=(8,)))
    yield MalformedImage("TIFF whose strip is half as long", tiff(grey, t279=(32,)))
    yield MalformedImage("TIFF with a strip of no bytes", tiff(grey, t279=(0,)))
    packed = np.frombuffer(zlib.compress(bytes(64)), np.uint8).reshape(1, -1, 1)
    size = {"t256": (8,), "t257": (16,), "t259": (8,)}
    yield MalformedImage("deflate TIFF with half its strips", tiff(packed, **size, t278=(8,)))
    yield MalformedImage("deflate TIFF with half its rows", tiff(packed, **size, t278=(16,)))
    tiles = {256: (32,), 257: (16,), 258: (8,), 259: (1,), 262: (1,), 277: (1,)}
    half = {**tiles, 322: (16,), 323: (16,), 324: (0,), 325: (256,)}
    yield MalformedImage("TIFF with half its tiles", tiff_file(half, bytes(256)))
    again = tiff(grey, t274=(1,)).replace(struct.pack("<HHL", 274, 4, 1), struct.pack("<HHL", 259, 4, 1))
    yield MalformedImage("TIFF with two compressions", again)
    yield MalformedImage("TIFF without strips", tiff(grey, t273=()))
    yield MalformedImage("TIFF of an unknown compression", tiff(grey, t259=(4_242,)))
    yield MalformedImage("deflate TIFF that is not deflated", tiff(grey, t259=(8,)))
    yield MalformedImage("TIFF whose directory lies beyond its end", b"II*\0\xff\xff\xff\x7f")
    yield MalformedImage("BigTIFF whose directory lies beyond its end", b"II+\0\x08\0\0\0" + b"\xff" * 8)
    progressive = whole_files()["progressive JPEG"]
    for scan in re.finditer(b"\xff\xda", progressive):
        closed = progressive[: scan.start()] + b"\xff\xd9"
        yield MalformedImage(f"progressive JPEG, closed at {scan.start()}", closed)


def _behind_pixels(data: bytes, chunks: bytes) -> bytes:
    """A PNG with more chunks before its last one, which has 12 bytes."""
    return data[:-12] + chunks + data[-12:]
