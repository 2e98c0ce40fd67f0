import base64

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from segdec.config import InputConfig, ModelConfig, config_error
from segdec.engines import Engine
from segdec.images import encode_png
from segdec.imaging.inspected_area import fill_outside
from segdec.inference.postprocessing import interpret
from segdec.inference.preprocessing import prepare_area
from segdec.predictor import Predictor
from tests.segdec.first_pixel_engine import FirstPixelEngine

LEFT_HALF = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))
UPPER_HALF = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 0.5))
WHOLE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def area(height: int, width: int, **settings: object) -> NDArray[np.uint8]:
    found = InputConfig.model_validate(settings).inspected_area(height, width)
    assert found is not None
    return found


def packed(mask: NDArray[np.uint8]) -> str:
    return base64.b64encode(encode_png(mask)).decode("ascii")


def refusal(**settings: object) -> str:
    with pytest.raises(ValidationError) as caught:
        InputConfig.model_validate(settings)
    return str(config_error(caught.value, InputConfig))


def noise(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 1), dtype=np.uint8)


def test_without_settings_all_is_inspected() -> None:
    assert InputConfig().inspected_area(4, 6) is None
    assert not InputConfig().is_partial


def test_several_regions_add_up_and_ignored_areas_are_taken_away() -> None:
    found = area(
        4, 4, regions_of_interest=[LEFT_HALF, UPPER_HALF], ignored_areas=[[(0, 0), (0.25, 0), (0, 1)]]
    )
    # The triangle holds the centres (0.5, 0.5) and (0.5, 1.5) of the first column: x + y / 4 < 1 in pixels.
    assert (found > 0).astype(int).tolist() == [[0, 1, 1, 1], [0, 1, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]


def test_a_mask_is_stretched_to_the_photograph() -> None:
    mask = np.array([[0, 255], [1, 0]], np.uint8)
    found = area(4, 6, interest_mask=packed(mask))
    np.testing.assert_array_equal(found > 0, (mask > 0).repeat(2, axis=0).repeat(3, axis=1))


@pytest.mark.parametrize("key", ["regions_of_interest", "ignored_areas"])
def test_a_corner_outside_of_the_picture_is_rejected(key: str) -> None:
    text = refusal(**{key: [[(0, 0), (320, 0), (320, 240)]]})
    assert text.startswith(f"{key}.0: ")
    assert "the corner (320, 0) is outside the picture; expected x and y from 0 to 1" in text
    assert "divide pixels by the photograph's sides" in text
    assert "outside the picture" in refusal(**{key: [[(0, 0), (1, float("nan")), (1, 1)]]})


def test_settings_that_leave_nothing_are_rejected() -> None:
    assert "2 different corners has no area" in refusal(regions_of_interest=[[(0, 0), (1, 1), (0, 0)]])
    assert "leave nothing to inspect" in refusal(ignored_areas=[WHOLE])
    assert "leave nothing to inspect" in refusal(interest_mask=packed(np.zeros((8, 8), np.uint8)))


@pytest.mark.parametrize(
    "data",
    [
        "/etc/passwd",
        "AAAA",
        base64.b64encode(encode_png(np.zeros((4, 4), np.uint8))[:40]).decode(),
        base64.b64encode(encode_png(np.zeros((4, 4, 3), np.uint8))).decode(),
        base64.b64encode(cv2.imencode(".png", np.ones((4, 4), np.uint16))[1].tobytes()).decode(),
        "A" * 2**21,
    ],
    ids=["path", "short", "cut", "colour", "16 bits", "long"],
)
def test_an_invalid_mask_is_rejected(data: str) -> None:
    assert "expected the base64 of a grey 8-bit PNG" in refusal(interest_mask=data)


def test_outside_becomes_the_mean_of_the_inside() -> None:
    pixels = np.array([[[10, 0], [20, 1], [99, 9]]], np.uint8).reshape(1, 3, 2)[..., :1].copy()
    inside = np.array([[255, 255, 0]], np.uint8)
    assert fill_outside(pixels, inside).ravel().tolist() == [10, 20, 15]
    assert fill_outside(pixels.astype(np.float32), inside).dtype == np.float32


@pytest.mark.parametrize("policy", ["native", "resize", "letterbox", "tile"])
def test_prediction_does_not_depend_on_the_outside(
    policy: str, tiny_network: Engine, tiny_config: ModelConfig
) -> None:
    from segdec.engines.tensorflow import NetworkEngine

    settings = {"regions_of_interest": [LEFT_HALF], "ignored_areas": [[(0, 0), (0.2, 0), (0, 0.2)]]}
    size = {} if policy == "native" else {"height": 40, "width": 56}
    overlap = {"overlap_px": 16} if policy == "tile" else {}
    geometry = InputConfig.model_validate({"policy": policy, **settings, **size, **overlap})
    predictor = Predictor(NetworkEngine(tiny_network), tiny_config.model_copy(update={"input": geometry}))
    photograph = noise(61, 130)
    inside = geometry.inspected_area(61, 130)
    assert inside is not None
    changed = np.where(inside[..., None] > 0, photograph, noise(61, 130, seed=1))
    one, other = predictor.predict([photograph, changed])
    assert one.label == other.label
    assert one.log_odds == pytest.approx(other.log_odds, abs=1e-6)  # places in a batch round differently
    np.testing.assert_allclose(one.mask_scores, other.mask_scores, atol=1e-6)
    np.testing.assert_allclose(one.grid_scores, other.grid_scores, atol=1e-6)
    assert not one.mask_scores[inside == 0].any()
    assert one.mask_scores[inside > 0].all()
    prepared = prepare_area(geometry, 61, 130)
    assert prepared is not None
    outside = ~(prepared > 0).reshape(prepared.shape[0] // 8, 8, prepared.shape[1] // 8, 8).any(axis=(1, 3))
    assert outside.any()
    assert not one.grid_scores[outside].any()


def test_mask_is_empty_outside_even_with_threshold_0(tiny_config: ModelConfig) -> None:
    limits = tiny_config.thresholds.model_copy(update={"mask": 0.0})
    geometry = InputConfig(regions_of_interest=(LEFT_HALF,))
    config = tiny_config.model_copy(update={"input": geometry, "thresholds": limits})
    found = interpret(np.zeros((2, 4, 1), np.float32), np.zeros(2, np.float32), (16, 32), config)
    assert (found.mask[:, :16] == 255).all()
    assert not found.mask[:, 16:].any()
    assert [region.bbox for region in found.regions] == [(0, 0, 16, 16)]
    np.testing.assert_array_equal(found.area, geometry.inspected_area(16, 32))


TILED = InputConfig(policy="tile", height=16, width=16, overlap_px=0, regions_of_interest=(LEFT_HALF,))


def test_skipped_tiles_do_not_affect_the_result(tiny_config: ModelConfig) -> None:
    engine = FirstPixelEngine()
    predictor = Predictor(engine, tiny_config.model_copy(update={"input": TILED}))
    columns = np.arange(100, 180, dtype=np.uint8)  # the last tiles would be the most defective
    found = predictor.infer(np.tile(columns[:, None], (1, 16, 1, 1)))
    assert engine.shapes == [(3, 16, 16, 1)]
    assert found.classes.tolist() == [[0.0, 32.0]]
    assert found.mask[0, 0, :, 0].tolist() == [0.0] * 6 + [-20.0] * 4
