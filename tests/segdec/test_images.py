import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from segdec.errors import ImageError, MissingExtraError
from segdec.images import decode_image, encode_png, read_image, read_mask, write_png

ORIENTATION = 0x0112
END_OF_IMAGE = b"\xff\xd9"


def texture(channels: int = 3) -> NDArray[np.uint8]:
    """Noise, so that every row of the picture costs bytes in the file."""
    return np.random.default_rng(1).integers(0, 256, (40, 56, channels), dtype=np.uint8)


def encode(pixels: NDArray[Any], kind: str, mode: str | None = None, **options: Any) -> bytes:
    picture = Image.fromarray(pixels.squeeze())
    stream = io.BytesIO()
    (picture.convert(mode) if mode else picture).save(stream, kind, **options)
    return stream.getvalue()


def refusal(data: bytes, **options: Any) -> ImageError:
    with pytest.raises(ImageError) as caught:
        decode_image(data, "part.png", **options)
    assert "part.png" in str(caught.value)
    assert "Expected" in str(caught.value)
    return caught.value


def png(width: int, height: int, depth: int, color: int, pixels: bytes) -> bytes:
    """A PNG from its parts, with correct checksums whatever the parts are."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))]
    parts += [(b"IDAT", pixels), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


# === Whole files ===


@pytest.mark.parametrize(
    ("kind", "options"), [("PNG", {}), ("BMP", {}), ("TIFF", {}), ("WEBP", {"lossless": True})]
)
def test_lossless_colour_comes_back_exactly(kind: str, options: dict[str, Any]) -> None:
    photograph = decode_image(encode(texture(), kind, **options), "part")
    np.testing.assert_array_equal(photograph.pixels, texture())
    assert (photograph.format, photograph.bit_depth, photograph.warnings) == (kind.lower(), 8, ())


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_grey_keeps_one_channel(kind: str) -> None:
    np.testing.assert_array_equal(decode_image(encode(texture(1), kind), "part").pixels, texture(1))


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_has_the_pixels_that_pillow_decodes(channels: int) -> None:
    data = encode(texture(channels), "JPEG", quality=90)
    photograph = decode_image(data, "part")
    expected = np.asarray(Image.open(io.BytesIO(data))).reshape(40, 56, channels)
    np.testing.assert_allclose(photograph.pixels.astype(int), expected.astype(int), atol=2)
    assert photograph.format == "jpeg"


def test_one_bit_image_becomes_0_and_255() -> None:
    photograph = decode_image(encode(np.array([[True, False], [False, True]]), "PNG"), "part")
    assert photograph.pixels[..., 0].tolist() == [[255, 0], [0, 255]]
    assert photograph.bit_depth == 1


def test_palette_becomes_its_colours() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[0] = (204, 51, 0)
    np.testing.assert_array_equal(decode_image(encode(pixels, "PNG", "P"), "part").pixels, pixels)


def test_further_pictures_are_a_warning() -> None:
    second = Image.fromarray(texture(1).squeeze())
    data = encode(texture(1), "TIFF", save_all=True, append_images=[second])
    assert "several pictures" in decode_image(data, "part").warnings[0]


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


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_orientation_is_applied(kind: str, orientation: int) -> None:
    photograph = decode_image(encode(STORED, kind, exif=exif(orientation)), "part")
    assert photograph.pixels[..., 0].tolist() == UPRIGHT[orientation]


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_orientation_of_a_jpeg_is_applied(orientation: int) -> None:
    stored = (STORED * 40).repeat(16, axis=0).repeat(16, axis=1)  # one flat block a pixel: JPEG keeps it
    photograph = decode_image(encode(stored, "JPEG", exif=exif(orientation)), "part")
    found = np.rint(photograph.pixels[8::16, 8::16, 0] / 40).astype(int)
    assert found.tolist() == UPRIGHT[orientation]
    assert bool(photograph.warnings) == (orientation != 1)


# === Bad input ===


def test_empty_file() -> None:
    assert refusal(b"").code == "empty_image"


def test_text_named_png() -> None:
    assert refusal(b"this is not an image\n" * 20).code == "unsupported_type"


def test_type_outside_the_accepted_ones() -> None:
    assert refusal(encode(texture(), "GIF")).code == "unsupported_type"


@pytest.mark.parametrize("ending", [b"", END_OF_IMAGE], ids=["cut", "cut and closed"])
@pytest.mark.parametrize("share", [0.5, 0.7, 0.9, 0.99])
def test_truncated_jpeg(share: float, ending: bytes) -> None:
    data = encode(texture(), "JPEG")
    assert refusal(data[: int(len(data) * share)] + ending).code == "truncated_image"


@pytest.mark.parametrize("kind", ["PNG", "BMP"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_truncated_lossless_file(kind: str, share: float) -> None:
    data = encode(texture(), kind)
    assert refusal(data[: int(len(data) * share)]).code == "truncated_image"


@pytest.mark.parametrize("kind", ["TIFF", "WEBP"])
def test_other_truncated_files_are_refused_too(kind: str) -> None:
    data = encode(texture(), kind)
    assert refusal(data[: len(data) // 2]).code in ("truncated_image", "corrupt_image")


def test_png_whose_last_chunk_is_missing() -> None:
    assert refusal(encode(texture(), "PNG")[:-12]).code == "truncated_image"


def test_png_with_half_the_rows_behind_correct_checksums() -> None:
    rows = b"".join(b"\0" + bytes(range(20)) for _ in range(10))
    decode_image(png(20, 10, 8, 0, zlib.compress(rows)), "whole")
    assert refusal(png(20, 10, 8, 0, zlib.compress(rows[: len(rows) // 2]))).code == "corrupt_image"


def test_header_cut_off() -> None:
    assert refusal(encode(texture(), "PNG")[:20]).code == "corrupt_image"


def test_png_with_a_damaged_byte() -> None:
    data = bytearray(encode(texture(), "PNG"))
    data[len(data) // 2] ^= 1
    assert refusal(bytes(data)).code == "corrupt_image"


@pytest.mark.parametrize(
    "data",
    [
        encode(np.full((8, 8), 4095, np.uint16), "PNG"),
        encode(np.full((8, 8), 4095, np.uint16), "TIFF"),
        encode(np.ones((8, 8), np.float32), "TIFF"),
        png(2, 1, 16, 2, zlib.compress(b"\0" + bytes(12))),
    ],
    ids=["grey PNG", "grey TIFF", "float TIFF", "colour PNG"],
)
def test_more_than_8_bits(data: bytes) -> None:
    assert refusal(data).code == "unsupported_depth"


@pytest.mark.parametrize(
    ("kind", "mode"), [("PNG", "RGBA"), ("PNG", "LA"), ("WEBP", "RGBA"), ("JPEG", "CMYK"), ("TIFF", "CMYK")]
)
def test_wrong_channels(kind: str, mode: str) -> None:
    data = encode(texture(), kind, mode)
    if kind == "WEBP":  # an opaque alpha channel is not stored
        data = encode(np.dstack([texture(), texture(1)]), kind)
    assert refusal(data).code == "unsupported_channels"


def test_transparent_colour() -> None:
    assert refusal(encode(texture(), "PNG", transparency=(1, 2, 3))).code == "unsupported_channels"


def test_too_many_pixels_is_refused_from_the_header() -> None:
    error = refusal(encode(texture(), "PNG"), max_pixels=2239)
    assert error.code == "too_many_pixels"
    assert "56 × 40 = 2,240" in str(error)
    assert decode_image(encode(texture(), "PNG"), "part", max_pixels=2240).pixels.shape == (40, 56, 3)


@pytest.mark.parametrize("side", [10_000, 20_000, 2**31 - 1])
def test_small_file_of_a_huge_picture(side: int) -> None:
    assert refusal(png(side, side, 8, 2, b"")).code == "too_many_pixels"


def test_limit_of_pillow_is_named_where_it_is_the_lower_one() -> None:
    error = refusal(png(20_000, 20_000, 8, 2, b""), max_pixels=10**9)
    assert "more than 178,956,970 pixels. Expected at most 178,956,970;" in str(error)


@pytest.mark.parametrize(("module", "package"), [("PIL.Image", "pillow"), ("simplejpeg", "simplejpeg")])
def test_missing_decoder_names_its_extra(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(texture(), "JPEG")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*'\.\[images\]'"):
        decode_image(data, "part")


# === Files ===


def test_missing_file_names_its_path(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"absent\.png cannot be read: No such file") as caught:
        read_image(tmp_path / "absent.png")
    assert caught.value.code == "unreadable_file"


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="directory"):
        read_image(tmp_path)


def test_mask_is_255_above_the_threshold_in_any_channel(tmp_path: Path) -> None:
    pixels = np.zeros((1, 4, 3), np.uint8)
    pixels[0, 1, 2] = 1
    pixels[0, 2, 0] = 128
    pixels[0, 3] = 255
    write_png(tmp_path / "mask.png", pixels)
    assert read_mask(tmp_path / "mask.png").tolist() == [[0, 255, 255, 255]]
    assert read_mask(tmp_path / "mask.png", threshold=128).tolist() == [[0, 0, 0, 255]]


@pytest.mark.parametrize("channels", [1, 3])
def test_written_png_reads_back(channels: int, tmp_path: Path) -> None:
    write_png(tmp_path / "part.png", texture(channels))
    np.testing.assert_array_equal(read_image(tmp_path / "part.png").pixels, texture(channels))
    assert [path.name for path in tmp_path.iterdir()] == ["part.png"]


def test_encoding_refuses_what_is_no_image() -> None:
    with pytest.raises(ValueError, match=r"float32 \(2, 2\)\. Expected uint8"):
        encode_png(np.zeros((2, 2), np.float32))  # type: ignore[arg-type]
