"""Every malformed file is rejected or decodes to a complete picture; none needs much memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.damage import OVERWRITES
from segdec.errors import ImageError
from segdec.images import decode_image
from tests.malformed_images import BOMB, malformed_images, whole_files

ROOT = Path(__file__).parents[3]
BOMB_LIMIT_MB = 50
IMAGES = list(malformed_images())

# Production prints Pillow's warnings and continues, so errors of them would test another path.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")

MEASURE = """
import sys
from pathlib import Path
from segdec.errors import ImageError
from segdec.images import decode_image
from tests.peak_memory import peak_mb, reset_peak

for path in sorted(Path(sys.argv[1]).glob("whole-*")):
    decode_image(path.read_bytes(), "warm-up", accept_webp=True)
reset_peak()
before = peak_mb()
for path in sorted(Path(sys.argv[1]).glob("bomb-*")):
    try:
        decode_image(path.read_bytes(), "bomb", accept_webp=True)
    except ImageError:
        pass
    print(path.name, peak_mb() - before)
"""


def test_malformed_files_are_many_and_distinct() -> None:
    assert len({image.name for image in IMAGES}) == len(IMAGES) >= 300


@pytest.mark.parametrize("name", whole_files())
def test_files_are_valid_before_they_are_damaged(name: str) -> None:
    photograph = decode_image(whole_files()[name], name, accept_webp=True)
    assert photograph.pixels.shape[:2] == (32, 40)
    assert photograph.integrity == ("checked" if "PNG" in name else "unchecked")


CODES = {
    "CMYK JPEG": "unsupported_channels",
    "CMYK TIFF": "unsupported_channels",
    "arithmetic-coded JPEG, cut off and closed": "unsupported_type",
    "lossless JPEG": "unsupported_type",
    "hierarchical JPEG": "unsupported_type",
    "12-bit JPEG": "unsupported_type",
    "Lab TIFF": "unsupported_channels",
    "float TIFF": "unsupported_depth",
    "32-bit TIFF": "unsupported_depth",
    "signed TIFF": "unsupported_depth",
    "TIFF with 0 for white": "unsupported_depth",
    "reduced picture in TIFF": "unsupported_type",
    "transparency mask in TIFF": "unsupported_type",
    "reduced picture in TIFF, by the older tag": "unsupported_type",
    "lzma TIFF with half its strip": "unsupported_type",
    "group4 TIFF with half its strip": "unsupported_type",
    "GIF": "unsupported_type",
    "PNG with half its rows": "corrupt_image",
}
"""Error codes of some of them; those of damaged files depend on where the damage is noticed."""


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_malformed_image(image) -> None:
    try:
        photograph = decode_image(image.data, "part", accept_webp=True)
    except ImageError as error:
        assert error.code == CODES.get(image.name, error.code)
        assert "part" in str(error)
        assert "Expected" in str(error)
        return
    assert image.expectation != "refused"
    if image.expectation == "unchecked":
        assert photograph.integrity == "unchecked"
    if image.expectation == "same":
        whole = decode_image(whole_files()[image.kind], "part")
        np.testing.assert_array_equal(photograph.pixels, whole.pixels)
    assert photograph.pixels.dtype == np.uint8
    assert photograph.pixels.ndim == 3
    assert photograph.pixels.size > 0


@pytest.mark.parametrize("kind", [kind for kind in whole_files() if "WebP" in kind])
def test_webp_is_rejected_unless_its_risk_is_accepted(kind: str) -> None:
    with pytest.raises(ImageError, match=r"part is a WebP file.*accept_webp") as caught:
        decode_image(whole_files()[kind], "part")
    assert caught.value.code == "unsupported_type"
    damaged = [image.data for image in IMAGES if image.kind == kind]
    assert len(damaged) > len(OVERWRITES)
    for data in damaged:
        with pytest.raises(ImageError):
            decode_image(data, "part")


def test_bombs_cost_little_memory(tmp_path: Path) -> None:
    for number, data in enumerate(whole_files().values()):
        (tmp_path / f"whole-{number}").write_bytes(data)
    bombs = [image for image in IMAGES if image.name.startswith(BOMB)]
    assert len(bombs) >= 30
    for number, image in enumerate(bombs):
        (tmp_path / f"bomb-{number:02}").write_bytes(image.data)
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == len(bombs)
    growth_mb = float(lines[-1][1])
    first = next(bombs[int(name[5:])].name for name, mb in lines if float(mb) == growth_mb)
    assert growth_mb < BOMB_LIMIT_MB, f"{first} costs {growth_mb:.0f} MB"
