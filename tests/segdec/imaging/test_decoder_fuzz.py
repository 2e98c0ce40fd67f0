"""Valid files with random changes: the decoder rejects them or decodes a complete picture."""

import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from segdec.errors import ImageError
from segdec.images import decode_image
from tests.image_files import PNG_SIGNATURE, chunk, webp
from tests.malformed_images import whole_files
from tests.peak_memory import peak_mb, reset_peak

MAX_PIXELS = 2**20
GROWTH_LIMIT_MB = 100
EXTREMES = np.array([0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF], np.uint8)

# Production prints Pillow's warnings and continues, so errors of them would test another path.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore::Warning:PIL.Image")

Mutation = Callable[[np.random.Generator, bytearray], bytearray]


def flip(rng: np.random.Generator, data: bytearray) -> bytearray:
    place = int(rng.integers(0, 8 * len(data)))
    data[place // 8] ^= 1 << place % 8
    return data


def overwrite(rng: np.random.Generator, data: bytearray) -> bytearray:
    """A few bytes become extreme: sizes, offsets and counts of 0 or of billions."""
    place = int(rng.integers(0, min(len(data), 400)))
    count = int(rng.choice([1, 2, 4, 8]))
    data[place : place + count] = rng.choice(EXTREMES, count).tobytes()
    return data


def cut(rng: np.random.Generator, data: bytearray) -> bytearray:
    return data[: int(rng.integers(0, len(data)))]


def remove(rng: np.random.Generator, data: bytearray) -> bytearray:
    place = int(rng.integers(0, len(data)))
    return data[:place] + data[place + int(rng.integers(1, 64)) :]


def repeat(rng: np.random.Generator, data: bytearray) -> bytearray:
    place, length = int(rng.integers(0, len(data))), int(rng.integers(1, 256))
    return data[: place + length] + data[place:]


MUTATIONS: tuple[Mutation, ...] = (flip, flip, overwrite, overwrite, cut, remove, repeat)


def repaired(data: bytes) -> bytes:
    """Corrects checksums of a PNG and sizes of a WebP, so that decoding reaches their content."""
    if data.startswith(PNG_SIGNATURE):
        parts, place = [], len(PNG_SIGNATURE)
        while place + 12 <= len(data):
            length = min(int.from_bytes(data[place : place + 4]), len(data) - place - 12)
            parts.append(chunk(data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
            place += 12 + length
        return PNG_SIGNATURE + b"".join(parts)
    if data[:4] == b"RIFF":
        return webp((data[12:16], data[20:]))
    return data


def repacked(rng: np.random.Generator, data: bytes) -> bytes:
    """A PNG whose rows are changed before they are deflated: filters and values, never checksums."""
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start])
    rows = bytearray(zlib.decompress(data[start + 4 : start + 4 + length]))
    for mutate in rng.choice(np.array(MUTATIONS), 2):
        rows = mutate(rng, rows) or bytearray(1)
    return data[: start - 4] + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")


def mutant(rng: np.random.Generator, data: bytes) -> bytes:
    if data.startswith(PNG_SIGNATURE) and rng.random() < 0.3:
        return repacked(rng, data)
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed = rng.choice(np.array(MUTATIONS))(rng, changed) or bytearray(1)
    return repaired(bytes(changed)) if rng.random() < 0.5 else bytes(changed)


def check(data: bytes) -> bool:
    """Returns whether it decodes; anything but a complete picture or an `ImageError` fails the test."""
    try:
        photograph = decode_image(
            data, "part", max_pixels=MAX_PIXELS, max_side=5_000, white_level=65535, accept_webp=True
        )
    except ImageError:
        return False
    height, width, channels = photograph.pixels.shape
    assert photograph.pixels.dtype == np.uint8
    assert 0 < height * width <= MAX_PIXELS
    assert channels in (1, 3)
    return True


def fuzz(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    files = list(whole_files().values())
    for data in files:
        assert check(data)
    reset_peak()
    before_mb = peak_mb()
    decoded = sum(check(mutant(rng, files[number % len(files)])) for number in range(count))
    grown_mb = peak_mb() - before_mb
    assert 0 < decoded < count  # both ways were gone
    assert grown_mb < GROWTH_LIMIT_MB


def test_a_thousand_changed_files() -> None:
    fuzz(seed=0, count=1_000)


@pytest.mark.slow
def test_many_changed_files() -> None:
    """In a process of their own: what other tests left running would count as growth."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        process.submit(fuzz, seed=1, count=10_000).result()
