import base64

import numpy as np
import pytest
from pycocotools import mask as coco

from api.inspecting.photograph_request import prefers_png
from segdec.images import decode_image, encode_png
from segdec.mask_decoding import unpack_mask
from segdec.schemas import MaskAnswer
from tests.api.conftest import PNG

DEFECT = np.zeros((24, 40), np.uint8)
DEFECT[8:12, 10:16] = 255


def ask(client, part: bytes, query: str, **headers: str):
    return client.post(f"/v1/predict?{query}", content=part, headers={**PNG, **headers})


def pixels(data: str) -> np.ndarray:
    return decode_image(base64.b64decode(data), "mask").pixels[..., 0]


def test_run_lengths_are_those_of_coco(client, part):
    mask = ask(client, part, "mask=rle").json()["mask"]
    assert mask["encoding"] == "rle"
    assert mask["data"]["size"] == [24, 40]
    assert np.array_equal(coco.decode(mask["data"]) * 255, DEFECT)


def test_polygons_are_outlines_with_their_holes(client):
    image = np.full((24, 40, 1), 40, np.uint8)
    image[4:13, 10:19] = 204  # a ring with a good pixel in its middle, and a dot
    image[8, 14] = 40
    image[20, 30] = 204
    mask = ask(client, encode_png(image), "mask=polygon").json()["mask"]
    found = sorted(mask["data"], key=lambda polygon: len(polygon["holes"]), reverse=True)
    assert found[0]["outer"] == [[10, 4], [10, 13], [19, 13], [19, 4]]
    assert sorted(found[0]["holes"][0]) == [[14, 8], [14, 9], [15, 8], [15, 9]]
    assert found[1] == {"outer": [[30, 20], [30, 21], [31, 21], [31, 20]], "holes": []}


def test_classes_are_values_and_run_lengths(client, predictor, part):
    predictor.have_classes(spot_from=14)
    expected = np.zeros((24, 40), np.uint8)
    expected[8:12, 10:14], expected[8:12, 14:16] = 1, 2
    for form in ("classes", "class_rle"):
        answer = ask(client, part, f"mask={form}").json()
        mask = MaskAnswer.model_validate(answer["mask"])
        assert mask.labels == ["good", "scratch", "spot"]
        np.testing.assert_array_equal(unpack_mask(mask), expected)
        assert [region["label"] for region in answer["regions"]] == ["scratch"]
    assert set(mask.data) == {"scratch", "spot"}
    file = ask(client, part, "mask=classes", Accept="image/png")
    np.testing.assert_array_equal(decode_image(file.content, "mask").pixels[..., 0], expected)
    assert ask(client, part, "mask=classes&space=model").json()["mask"]["width"] == 5
    assert np.array_equal(pixels(ask(client, part, "mask=png").json()["mask"]["data"]), DEFECT)


@pytest.mark.parametrize(("form", "route"), [("classes", "predict"), ("class_rle", "predict/batch")])
def test_model_with_one_mask_has_no_classes(client, predictor, part, form, route):
    predictor.shapes.clear()  # those of the warm-up
    answer = client.post(f"/v1/{route}?mask={form}", content=part, headers=PNG)
    assert (answer.status_code, answer.json()["code"]) == (400, "no_mask_classes")
    assert not predictor.shapes  # it is refused before the photograph is inspected
    assert "the model has one mask for all classes. Expected 'png'" in answer.json()["detail"]


def test_grid_of_a_model_with_a_finer_mask(client, predictor, part):
    predictor.mask_stride = 2
    mask = ask(client, part, "mask=scores&space=model").json()["mask"]
    assert (mask["width"], mask["height"]) == (20, 12)
    assert np.array_equal(pixels(mask["data"]) == 204, DEFECT[::2, ::2] == 255)


def test_mask_of_the_model_space_is_thresholded_there(client):
    image = np.full((24, 40, 1), 40, np.uint8)
    image[8, 16] = 204  # the stub's grid takes every eighth pixel
    mask = ask(client, encode_png(image), "space=model").json()["mask"]
    expected = np.zeros((3, 5), np.uint8)
    expected[1, 2] = 255
    assert np.array_equal(pixels(mask["data"]), expected)
    assert mask["space"] == "model"


def test_accept_png_answers_the_mask(client, predictor, part):
    answer = ask(client, part, "", Accept="image/png")
    headers = answer.headers
    assert headers["Content-Type"] == "image/png"
    assert np.array_equal(decode_image(answer.content, "mask").pixels[..., 0], DEFECT)
    assert (headers["X-Segdec-Label"], headers["X-Segdec-Threshold"]) == ("scratch", "0.5")
    assert float(headers["X-Segdec-Score"]) == pytest.approx(0.8)
    assert (headers["X-Segdec-Model"], headers["X-Segdec-Version"]) == ("unnamed", "0")
    assert headers["X-Segdec-Integrity"] == "checked"
    assert "X-Segdec-Review-Threshold" not in headers
    predictor.review = 0.25
    headers = ask(client, part, "", Accept="image/png").headers
    assert (headers["X-Segdec-Threshold"], headers["X-Segdec-Review-Threshold"]) == ("0.5", "0.25")


@pytest.mark.parametrize(
    ("accept", "png"),
    [
        ("application/json", False),
        ("image/png, application/json", True),
        ("image/png;q=0.5, application/json", False),
        ("image/png;q=0, */*", False),
        ("image/png;q=high", True),
        ("image/*", False),
    ],
)
def test_answer_is_json_unless_png_is_preferred(accept, png):
    assert prefers_png(accept) is png
