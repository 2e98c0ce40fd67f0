import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

from segdec.errors import ImageError, MissingExtraError
from segdec.images import (
    SEVERAL_PICTURES,
    decode_image,
    read_header,
    read_image,
    read_mask,
    read_size,
    write_png,
)
from segdec.imaging.png_chunks import essential_chunks
from tests.image_files import chunk, encode, png, png_16, tiff

ORIENTATION = 0x0112


def texture(channels: int = 3) -> NDArray[np.uint8]:
    """Noise, so that every row of the picture costs bytes in the file."""
    return np.random.default_rng(1).integers(0, 256, (40, 56, channels), dtype=np.uint8)


def refusal(data: bytes, **options: Any) -> ImageError:
    with pytest.raises(ImageError) as caught:
        decode_image(data, "part.png", **options)
    assert "part.png" in str(caught.value)
    assert "Expected" in str(caught.value)
    return caught.value


# === Whole files ===


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP"])
def test_lossless_colour_comes_back_exactly(kind: str) -> None:
    photograph = decode_image(encode(texture(), kind, lossless=True), "part", accept_webp=True)
    np.testing.assert_array_equal(photograph.pixels, texture())
    assert (photograph.format, photograph.bit_depth, photograph.warnings) == (kind.lower(), 8, ())


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_has_the_pixels_that_pillow_decodes(channels: int) -> None:
    data = encode(texture(channels), "JPEG", quality=90)
    photograph = decode_image(data, "part")
    expected = np.asarray(Image.open(io.BytesIO(data)), int).reshape(40, 56, channels)
    np.testing.assert_allclose(photograph.pixels.astype(int), expected, atol=2)


def test_palette_becomes_its_colours() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[0] = (204, 51, 0)
    np.testing.assert_array_equal(decode_image(encode(pixels, "PNG", "P"), "part").pixels, pixels)


def with_second(kind: str, size: tuple[int, int] = (56, 40), subfile: int = 0) -> bytes:
    """A file with a second picture of this width and height."""
    second = Image.fromarray(255 - texture(1).squeeze()).resize(size)
    second.encoderinfo = {"tiffinfo": {254: subfile}}
    return encode(texture(1), kind, save_all=True, append_images=[second], lossless=True)


@pytest.mark.parametrize("size", [(56, 40), (20, 40), (29, 21)])
@pytest.mark.parametrize("kind", ["TIFF", "MPO"])
def test_further_pictures_are_a_warning(kind: str, size: tuple[int, int]) -> None:
    data = with_second(kind, size)
    assert decode_image(data, "part").warnings == (SEVERAL_PICTURES,)
    assert read_header(data, "part").has_further_pictures


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_animation_is_a_warning(kind: str) -> None:
    assert decode_image(with_second(kind), "part", accept_webp=True).warnings == (SEVERAL_PICTURES,)


def typed_second(mpo: bytes, kind: int) -> bytes:
    """The MPO file `mpo` with another type of its second picture."""
    first_bytes = mpo.index(b"\xff\xd8\xff", 2)
    entries = mpo.index(struct.pack("<LL", 0x030000, first_bytes))
    return mpo[: entries + 16] + struct.pack("<L", kind) + mpo[entries + 20 :]


def test_a_smaller_copy_or_a_mask_is_no_further_picture() -> None:
    """As cameras, scanners and phones write them: a preview, a transparency mask, a gain map."""
    files = [with_second("TIFF", subfile=flag) for flag in (1, 4)]
    files += [with_second(kind, size) for kind in ("TIFF", "MPO") for size in ((28, 20), (16, 12))]
    files.append(typed_second(with_second("MPO"), 0x010002))
    assert [decode_image(file, "part").warnings for file in files] == [()] * len(files)


def test_only_readable_pictures_are_further_ones() -> None:
    tiff, mpo = with_second("TIFF"), with_second("MPO")
    loop = tiff[:-4] + tiff[4:8]  # the second page names the first one as the next
    cut = mpo[: mpo.index(b"\xff\xd8\xff", 2) + 2]
    assert decode_image(cut, "part").warnings == ()
    assert decode_image(loop, "part").warnings == (SEVERAL_PICTURES,)
    flagged = with_second("TIFF", subfile=1)
    start = struct.unpack_from("<L", flagged, 4)[0]
    count = struct.unpack_from("<H", flagged, start)[0]
    place = struct.unpack_from("<L", flagged, start + 2 + 12 * count)[0]
    end = place + 2 + 12 * struct.unpack_from("<H", flagged, place)[0]
    endless = flagged[:end] + struct.pack("<L", place) + flagged[end + 4 :]
    assert decode_image(endless, "part").warnings == ()


# === Orientation ===

# The picture [[1, 2, 3], [4, 5, 6]] as stored, upright by each EXIF orientation.
UPRIGHT = {
    1: [[1, 2, 3], [4, 5, 6]],
    2: [[3, 2, 1], [6, 5, 4]],
    3: [[6, 5, 4], [3, 2, 1]],
    4: [[4, 5, 6], [1, 2, 3]],
    5: [[1, 4], [2, 5], [3, 6]],
    6: [[4, 1], [5, 2], [6, 3]],
    7: [[6, 3], [5, 2], [4, 1]],
    8: [[3, 6], [2, 5], [1, 4]],
}
STORED = np.array(UPRIGHT[1], dtype=np.uint8)


def exif(orientation: int) -> Image.Exif:
    block = Image.Exif()
    block[ORIENTATION] = orientation
    return block


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG", "WEBP"])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_orientation_is_applied_to_pixels_and_size(tmp_path: Path, kind: str, orientation: int) -> None:
    stored = (STORED * 40).repeat(16, axis=0).repeat(16, axis=1)  # flat blocks, which JPEG and WebP keep
    path = tmp_path / "part"
    path.write_bytes(encode(np.repeat(stored[..., None], 3, axis=2), kind, exif=exif(orientation)))
    photograph = read_image(path, accept_webp=True)
    found = np.rint(photograph.pixels[8::16, 8::16, 0] / 40).astype(int)
    assert found.tolist() == UPRIGHT[orientation]
    assert read_size(path) == photograph.pixels.shape[:2]
    assert bool(photograph.warnings) == (orientation != 1)


def test_orientation_of_a_png_does_not_depend_on_the_order_of_its_chunks() -> None:
    """EXIF may be before or after the pixels; the first of two counts."""
    turned, other = (chunk(b"eXIf", exif(n).tobytes().removeprefix(b"Exif\0\0")) for n in (6, 3))
    data = encode(STORED, "PNG")
    pixels, ending = data.index(b"IDAT") - 4, data.index(b"IEND") - 4
    before = data[:pixels] + turned + data[pixels:]
    behind = data[:ending] + turned + data[ending:]
    assert essential_chunks(behind, "part") == essential_chunks(before, "part")
    split = before[: ending + len(turned)] + other + before[ending + len(turned) :]
    both = [data[:place] + turned + other + data[place:] for place in (pixels, ending)]
    for file in (before, behind, split, *both):
        photograph = decode_image(file, "part")
        np.testing.assert_array_equal(photograph.pixels.squeeze(), UPRIGHT[6])
        assert photograph.warnings == decode_image(before, "part").warnings != ()


def test_orientation_of_16_bits_is_applied() -> None:
    wide = STORED.astype(np.uint16)[..., None] * 257  # 65535 / 255: comes back as it was
    block = chunk(b"eXIf", exif(6).tobytes().removeprefix(b"Exif\0\0"))
    colour = wide.repeat(3, axis=2)
    turned = [tiff(wide, t274=(6,)), tiff(colour, t274=(6,)), tiff(colour, order=">", t274=(6,))]
    for data in (png_16(wide, before=block), *turned):
        photograph = decode_image(data, "part", white_level=65535)
        assert photograph.pixels[..., 0].tolist() == UPRIGHT[6]
        assert "rotated to its EXIF orientation" in photograph.warnings[0]


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG"])
def test_orientation_in_xmp_is_not_followed(kind: str) -> None:
    note = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", note.decode())
    options: dict[str, Any] = {"PNG": {"pnginfo": text}, "TIFF": {"tiffinfo": {700: note}}}.get(
        kind, {"xmp": note}
    )
    photograph = decode_image(encode(texture(), kind, **options), "part", accept_webp=True)
    assert photograph.pixels.shape == (40, 56, 3)


# === 16 bits ===


def gradient(channels: int) -> NDArray[np.uint16]:
    """Values 0, 1000, …, 65000 and 65535."""
    values = np.minimum(np.arange(66 * channels) // channels * 1000, 65535)
    values[-channels:] = 65535
    return values.astype(np.uint16).reshape(6, 11, channels)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "big-endian TIFF", "BigTIFF", "LZW", "deflate"])
def test_16_bits_are_scaled_by_the_white_level(kind: str, channels: int) -> None:
    values = gradient(channels)
    if kind in ("LZW", "deflate"):
        compression = [cv2.IMWRITE_TIFF_COMPRESSION, 5 if kind == "LZW" else 8]
        data = cv2.imencode(".tiff", values[..., ::-1], compression)[1].tobytes()
    elif kind == "PNG":
        data = png_16(values)
    else:
        data = tiff(values, order=">" if kind == "big-endian TIFF" else "<", big=kind == "BigTIFF")
    photograph = decode_image(data, "part")
    assert (photograph.bit_depth, photograph.warnings) == (16, ())
    expected = [int(value * 255 / 65535 + 0.5) for value in values.ravel().tolist()]
    assert photograph.pixels.ravel().tolist() == expected
    clipped = decode_image(data, "part", white_level=1000)
    assert clipped.pixels.max(axis=2).ravel().tolist() == [0] + [255] * 65
    assert "values above input.white_level = 1000 were clipped: the highest is 65535" in clipped.warnings[0]


def test_scale_is_linear_and_rounds_half_up() -> None:
    values = np.array([[[0], [1], [8], [9], [2048], [4094], [4095], [4096]]], np.uint16)
    pixels = decode_image(png_16(values), "part", white_level=4095).pixels
    # × 255 / 4095: 0.06, 0.498, 0.56, 127.53, 254.94, 255, 255.06
    assert pixels.ravel().tolist() == [0, 0, 0, 1, 128, 255, 255, 255]
    half = np.array([[[1], [3], [510]]], np.uint16)  # × 255 / 510: 0.5, 1.5, 255
    assert decode_image(png_16(half), "part", white_level=510).pixels.ravel().tolist() == [1, 2, 255]


def test_12_bit_data_needs_its_white_level() -> None:
    data = png_16(np.full((8, 8, 1), 4095, np.uint16))
    error = refusal(data)
    assert error.code == "unsupported_depth"
    assert "its brightest value is 4095" in str(error) and "input.white_level" in str(error)
    right = decode_image(data, "part", white_level=4095)
    assert (right.pixels == 255).all() and right.warnings == ()
    meant = decode_image(data, "part", white_level=65535)
    assert (meant.pixels == 16).all()
    assert "nearly black: its brightest value is 4095" in meant.warnings[0]


@pytest.mark.parametrize("hot_px", [1, 2, 4])
def test_hot_pixels_do_not_hide_12_bit_data(hot_px: int) -> None:
    values = np.full((40, 50, 3), 4000, np.uint16)
    values[0, :hot_px, 1] = 65535
    assert "its brightest value is 4000" in str(refusal(png_16(values)))
    clipped = decode_image(png_16(values), "part", white_level=4095)
    assert f"{hot_px} values above input.white_level = 4095 were clipped" in clipped.warnings[0]


def test_a_small_bright_area_is_not_a_hot_pixel() -> None:
    values = np.zeros((40, 50, 1), np.uint16)
    values[0, :5] = 60_000
    assert decode_image(png_16(values), "part").warnings == ()


# === Alpha ===


@pytest.mark.parametrize("lowest", [255, 254, 0])
@pytest.mark.parametrize("file", ["PNG RGBA", "PNG LA", "TIFF RGBA", "TIFF LA", "TIFF PA", "WEBP RGBA"])
def test_alpha_is_dropped(file: str, lowest: int) -> None:
    kind, mode = file.split()
    grey = mode == "LA"
    colour = texture(1).repeat(3, axis=2) if grey else (texture() > 127).astype(np.uint8) * 255
    alpha = np.full((40, 56, 1), 255, np.uint8)
    alpha[3, 4] = lowest
    picture = Image.fromarray(np.concatenate([colour, alpha], axis=2)).convert(mode)
    picture.putalpha(Image.fromarray(alpha[..., 0]))
    stream = io.BytesIO()
    picture.save(stream, kind, lossless=True, exact=True)
    photograph = decode_image(stream.getvalue(), "part", accept_webp=True)
    np.testing.assert_array_equal(photograph.pixels, colour[..., :1] if grey else colour)
    assert bool(photograph.warnings) == (lowest < 255)
    assert all("alpha was dropped" in warning for warning in photograph.warnings)


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("lowest", [65535, 0])
def test_alpha_of_16_bits_is_dropped(channels: int, lowest: int) -> None:
    values = np.full((4, 4, channels), 257 * 9, np.uint16)
    values[..., -1] = 65535
    values[2, 3, -1] = lowest
    files = [png_16(values)] + ([tiff(values, t338=(2,))] if channels == 4 else [])
    for data in files:
        photograph = decode_image(data, "part", white_level=65535)
        assert photograph.pixels.shape == (4, 4, channels - 1)
        assert (photograph.pixels == 9).all()
        assert any("alpha" in warning for warning in photograph.warnings) == (lowest == 0)


PALETTE = chunk(b"PLTE", bytes(6))
TRANSPARENT_VALUE = {
    "grey": png(2, 1, 8, 0, zlib.compress(b"\0\5\7"), before=chunk(b"tRNS", b"\0\7")),
    "grey of 4 bits": png(2, 1, 4, 0, zlib.compress(b"\0\x57"), before=chunk(b"tRNS", b"\0\7")),
    "grey of 16 bits": png_16(np.array([[[7], [60000]]], np.uint16), before=chunk(b"tRNS", b"\0\7")),
    "colour": png(1, 1, 8, 2, zlib.compress(b"\0\1\2\3"), before=chunk(b"tRNS", b"\0\1\0\2\0\3")),
    "palette": png(2, 1, 8, 3, zlib.compress(b"\0\0\1"), before=PALETTE + chunk(b"tRNS", b"\xff\x80")),
}


@pytest.mark.parametrize("data", TRANSPARENT_VALUE.values(), ids=TRANSPARENT_VALUE)
def test_transparent_value_is_a_warning_where_it_occurs(data: bytes) -> None:
    assert "alpha was dropped" in decode_image(data, "part").warnings[0]


# === Bad input ===


def test_side_is_rejected_from_the_header() -> None:
    error = refusal(png(100_000, 1, 8, 0, b""))
    assert error.code == "too_many_pixels"
    assert "100000 × 1 pixels. Expected sides of at most 65,536" in str(error)
    assert refusal(encode(texture(), "PNG"), max_side=55).code == "too_many_pixels"
    assert decode_image(encode(texture(), "PNG"), "part", max_side=56).pixels.shape == (40, 56, 3)


def test_limit_of_pillow_is_named_where_it_is_the_lower_one() -> None:
    error = refusal(png(20_000, 20_000, 8, 2, b""), max_pixels=10**9)
    assert "part.png has 20000 × 20000 = 400,000,000 pixels. Expected at most 178,956,970;" in str(error)
    assert str(error).endswith("raise the limit PIL.Image.MAX_IMAGE_PIXELS.")
    error = refusal(png(20_000, 20_000, 8, 2, b""), max_pixels=10**6)
    assert "part.png has 20000 × 20000 = 400,000,000 pixels. Expected at most 1,000,000;" in str(error)
    bmp = bytearray(encode(texture(), "BMP"))
    bmp[18:26] = struct.pack("<ii", 20_000, 20_000)
    error = refusal(bytes(bmp), max_pixels=10**9)
    assert "part.png has more than 178,956,970 pixels. Expected at most 178" in str(error)


def test_messages_describe_the_input() -> None:
    assert "is not an image of a known type (it starts with 'hello wo')." in str(refusal(b"hello world"))
    assert "(it starts with the bytes 00 01 ff)." in str(refusal(b"\0\1\xff"))
    whole = encode(texture(), "PNG")
    place = whole.index(b"IDAT") + 8
    damaged = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    expected = "part.png is not a complete PNG file: the checksum of its pixels (IDAT) is wrong."
    assert str(refusal(damaged)).startswith(expected)
    nameless = png(8, 8, 8, 0, b"").replace(b"IHDR", b"\0HDR")
    assert "the checksum of its first part is wrong" in str(refusal(nameless))


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        (b"\xff\x4f\xff\x51\0\x29", "JPEG 2000"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", "AVIF"),
        (b"\xff\x0a\xfa\x7f", "JPEG XL"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"GIF89a", "GIF"),
        (b"P5\n4 4\n255\n", "PBM, PGM or PPM"),
        (bytes(128) + b"DICM", "DICOM"),
    ],
)
def test_other_formats_are_named(start: bytes, kind: str) -> None:
    assert f"part.png is a {kind} file, which is not read" in str(refusal(start + bytes(64)))


@pytest.mark.parametrize("kind", ["BMP", "PNG", "TIFF"])
def test_palette_of_one_colour_is_a_warning(kind: str) -> None:
    picture = Image.fromarray(STORED).convert("P")
    picture.putpalette(bytes(768))
    stream = io.BytesIO()
    picture.save(stream, kind)
    photograph = decode_image(stream.getvalue(), "part")
    assert (photograph.pixels == 0).all()
    assert "all colours of the file's palette are the same" in photograph.warnings[0]


@pytest.mark.parametrize("mode", ["1", "L"])
def test_pixel_limit_is_an_argument(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    Image.fromarray(texture(1)[..., 0]).convert(mode).save(path)
    for read in (read_image, read_mask, read_size):
        with pytest.raises(ImageError, match=r"mask\.png has 56 × 40 = 2,240 pixels\. .* limit max_pixels"):
            read(path, max_pixels=2239)
    assert read_image(path, max_pixels=2240).pixels.shape == (40, 56, 1)
    assert read_mask(path, max_pixels=2240).shape == read_size(path, max_pixels=2240) == (40, 56)


@pytest.mark.parametrize(("module", "package"), [("PIL.Image", "pillow"), ("simplejpeg", "simplejpeg")])
def test_missing_decoder_names_its_extra(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(texture(), "JPEG")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*'\.\[images\]'"):
        decode_image(data, "part")


def test_mask_is_255_above_the_threshold_in_any_channel(tmp_path: Path) -> None:
    pixels = np.zeros((1, 4, 3), np.uint8)
    pixels[0, 1, 2] = 1
    pixels[0, 2, 0] = 128
    pixels[0, 3] = 255
    write_png(tmp_path / "mask.png", pixels)
    assert read_mask(tmp_path / "mask.png").tolist() == [[0, 255, 255, 255]]
    assert read_mask(tmp_path / "mask.png", threshold=128).tolist() == [[0, 0, 0, 255]]
