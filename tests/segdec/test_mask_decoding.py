import base64

import numpy as np
import pytest
from numpy.typing import NDArray
from pycocotools import mask as coco

from segdec.errors import ImageError
from segdec.images import encode_png
from segdec.mask_decoding import unpack_mask
from segdec.schemas import MaskAnswer, PolygonAnswer, RunLengths


def sent(data: object, height: int, width: int, encoding: str = "png") -> MaskAnswer:
    facts = {"encoding": encoding, "width": width, "height": height, "space": "input", "threshold": 0.5}
    return MaskAnswer.model_validate({**facts, "data": data})


def as_png(pixels: NDArray[np.uint8]) -> str:
    return base64.b64encode(encode_png(pixels)).decode()


@pytest.mark.parametrize(
    ("encoding", "pixels"), [("png", [[0, 255, 255], [0, 0, 255]]), ("scores", [[0, 255, 128], [1, 0, 255]])]
)
def test_pictures_come_back_as_they_are(encoding: str, pixels: list[list[int]]) -> None:
    drawn = np.array(pixels, np.uint8)
    np.testing.assert_array_equal(unpack_mask(sent(as_png(drawn), 2, 3, encoding)), drawn)


PICTURE = as_png(np.array([[0, 255], [0, 0]], np.uint8))
RUNS = {"size": (2, 2), "counts": "4"}


@pytest.mark.parametrize(
    ("encoding", "data", "expected", "arrived"),
    [
        ("png", RUNS, "the base64 of a PNG", "run lengths"),
        ("rle", PICTURE, "run lengths", "the base64 of a PNG"),
        ("polygon", RUNS, "contours", "run lengths"),
    ],
)
def test_data_of_another_encoding_are_rejected(
    encoding: str, data: object, expected: str, arrived: str
) -> None:
    with pytest.raises(ImageError) as caught:
        unpack_mask(sent(data, 2, 2, encoding))
    assert f"its encoding '{encoding}' needs {expected}, but it has {arrived}" in str(caught.value)


def polygons_of(mask: NDArray[np.uint8]) -> list[PolygonAnswer]:
    """The outline of each pixel."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1))
    return [
        PolygonAnswer(outer=[(x + right, y + down) for right, down in corners], holes=[])
        for y, x in np.argwhere(mask).tolist()
    ]


def run_lengths_of(mask: NDArray[np.uint8]) -> RunLengths:
    encoded = coco.encode(np.asfortranarray(mask > 0))
    return RunLengths(size=mask.shape, counts=encoded["counts"].decode())


@pytest.mark.parametrize("share", [0.02, 0.1, 0.4, 0.6, 0.9, 0.98])
def test_masks_survive_common_encoders(share: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(10):
        mask = np.where(random.random((24, 31)) < share, 255, 0).astype(np.uint8)
        for encoding, data in (("rle", run_lengths_of(mask)), ("polygon", polygons_of(mask))):
            np.testing.assert_array_equal(unpack_mask(sent(data, 24, 31, encoding)), mask)


@pytest.mark.parametrize(
    "answer",
    [
        sent("no base64!", 2, 2),
        sent(base64.b64encode(b"no picture").decode(), 2, 2),
        sent(as_png(np.zeros((2, 3), np.uint8)), 2, 2),
        sent({"size": (2, 2), "counts": "5"}, 2, 2, "rle"),
        sent({"size": (2, 2), "counts": "1O4"}, 2, 2, "rle"),
        sent({"size": (2, 2), "counts": ""}, 2, 2, "rle"),
        sent({"size": (2, 2), "counts": "4o"}, 2, 2, "rle"),
        sent({"size": (2, 2), "counts": "1é"}, 2, 2, "rle"),
        sent({"size": (2, 2), "counts": "o" * 10_000}, 2, 2, "rle"),
        sent([{"outer": [], "holes": []}], 2, 2, "polygon"),
        sent([{"outer": [(0, 3)], "holes": []}], 2, 2, "polygon"),
    ],
)
def test_damaged_masks_are_reported(answer: MaskAnswer) -> None:
    with pytest.raises(ImageError, match=r"mask cannot be decoded \(.*\)\. Send") as caught:
        unpack_mask(answer)
    assert caught.value.code == "corrupt_mask"
