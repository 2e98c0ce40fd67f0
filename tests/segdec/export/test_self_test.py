from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.artifact import Manifest, read_manifest, write_artifact
from segdec.artifact.variants import Variant
from segdec.config import InputConfig, ModelConfig, NetworkConfig, Thresholds
from segdec.engines import Logits
from segdec.errors import ArtifactError, ImageError
from segdec.export.self_test import (
    make_self_test,
    predict_unrefined,
    random_photograph,
    run_self_test,
    write_self_test,
)
from segdec.images import read_image
from segdec.predictor import Predictor
from tests.forged_artifact import forge

PHOTOGRAPH = np.random.default_rng(3).integers(0, 256, (40, 50, 1), dtype=np.uint8)
SURE = (0.1, 0.7, 0.2)
CONFIG = ModelConfig(
    network=NetworkConfig(preset="compact", num_classes=3),
    input=InputConfig(),
    classes=("good", "scratch", "spot"),
    thresholds=Thresholds(score=0.6, mask=0.5),
)


class StubEngine:
    """Returns the same class probabilities and mask score for every photograph."""

    batch_pixels = 2**24

    def __init__(self, probabilities: tuple[float, float, float], mask_score: float) -> None:
        self.classes = np.log(probabilities).astype(np.float32)
        self.mask = np.float32(np.log(mask_score / (1 - mask_score)))

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        batch, height, width, _ = images.shape
        mask = np.full((batch, height // 8, width // 8, 1), self.mask, np.float32)
        return Logits(mask, np.repeat(self.classes[None], batch, axis=0))


def answering(config: ModelConfig, probabilities: Any = SURE, mask_score: float = 0.8) -> Predictor:
    return Predictor(StubEngine(probabilities, mask_score), config)


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., Path]:
    """Writes an artifact without an engine; its stored result comes from a stub or from the test."""

    def write(probabilities: tuple[float, float, float] = SURE, **changes: Any) -> Path:
        answer = answering(CONFIG, probabilities).predict([PHOTOGRAPH])[0]
        right = make_self_test(PHOTOGRAPH, answer)
        described = {name: getattr(CONFIG, name) for name in ModelConfig.model_fields}
        described |= {"name": "part", "version": "1", "segdec_version": "0.1.0"}
        described |= {"variants": {"tensorflow": Variant()}, "self_test": right.model_copy(update=changes)}

        def build(folder: Path) -> Manifest:
            write_self_test(folder, right, PHOTOGRAPH, answer)
            return Manifest(**described)

        write_artifact(tmp_path / "model", build)
        return tmp_path / "model"

    return write


def run(folder: Path, *answer: Any) -> None:
    run_self_test(answering(read_manifest(folder), *answer), folder)


def refusal(folder: Path, *answer: Any) -> str:
    with pytest.raises(ArtifactError) as caught:
        run(folder, *answer)
    return str(caught.value)


# === An exported model ===


def test_changed_answer_with_right_checksums_is_rejected(artifact_copy: Path) -> None:
    found = read_manifest(artifact_copy).self_test
    assert abs(found.score - 0.25) > 0.01
    forge(artifact_copy, self_test={**found.model_dump(), "score": 0.25})
    words = rf"the score is {found.score:.4f}\d\d, expected 0\.250000 ± 0\.001\. .*do not"
    with pytest.raises(ArtifactError, match=words):
        run_self_test(Predictor.load(artifact_copy), artifact_copy)


@pytest.mark.usefixtures("written_engines")
def test_given_photograph_is_stored_and_a_wrong_one_rejected(
    wide_network, wide_config, tmp_path, monkeypatch
):
    from segdec.engines.tensorflow import NetworkEngine
    from segdec.export.model_export import ModelCard, ValidationPhotographs, export_model

    engine = NetworkEngine(wide_network)
    monkeypatch.setattr("segdec.export.model_export.NetworkEngine", lambda _: engine)
    monkeypatch.setattr("segdec.engines.tensorflow.TensorFlowEngine.load", lambda *_: engine)
    card, grey = ModelCard("tiny", "1"), ValidationPhotographs(sample=PHOTOGRAPH)
    colour = ValidationPhotographs(sample=np.dstack([PHOTOGRAPH, PHOTOGRAPH, PHOTOGRAPH // 2]))
    export_model(wide_network, tmp_path / "model", wide_config, card, validation=grey, measure=False)
    stored = read_image(tmp_path / "model" / "self_test" / "photograph.png").pixels
    np.testing.assert_array_equal(stored, PHOTOGRAPH)
    assert Predictor.load(tmp_path / "model").warmup_shape() == (40, 56, 1)
    with pytest.raises(ImageError, match="has colour"):
        export_model(wide_network, tmp_path / "other", wide_config, card, validation=colour)
    assert not (tmp_path / "other").exists()


# === Comparison ===


def test_small_differences_pass(store: Callable[..., Path]) -> None:
    run(store(), (0.1009, 0.6991, 0.2), 0.825)


@pytest.mark.parametrize(
    ("probabilities", "found"), [((0.9, 0.06, 0.04), "good"), ((0.1, 0.452, 0.448), "scratch")]
)
def test_other_label_is_rejected(probabilities: Any, found: str, store: Callable[..., Path]) -> None:
    text = refusal(store(probabilities, label="spot"), probabilities)
    assert f"the label is '{found}', expected 'spot'" in text


def test_label_on_the_edge_may_fall_on_either_side(store: Callable[..., Path]) -> None:
    run(store(label="good", score=0.5998), (0.3997, 0.35, 0.2503))


@pytest.mark.parametrize("mask_score", [0.84, 0.76])
def test_other_mask_scores_are_rejected(mask_score: float, store: Callable[..., Path]) -> None:
    text = refusal(store(), SURE, mask_score)
    assert "a mask score differs by 0.040, expected at most 0.03" in text


# === Stored files ===


def test_truncated_photograph_with_its_checksum_is_rejected(store: Callable[..., Path]) -> None:
    folder = store()
    photograph = folder / "self_test" / "photograph.png"
    photograph.write_bytes(photograph.read_bytes()[:-100])
    forge(folder)
    assert f"cannot be run: {photograph}" in refusal(folder)


def test_engine_without_finite_numbers_is_rejected(store: Callable[..., Path]) -> None:
    text = refusal(store(), (np.nan, 0.5, 0.5))
    assert "not finite" in text
    assert "do not serve" in text


def test_model_in_memory_has_no_self_test(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no manifest"):
        run_self_test(answering(CONFIG), tmp_path)
    assert answering(CONFIG).warmup_shape() == (256, 256, 1)


@pytest.mark.parametrize(
    ("config", "shape"),
    [
        (InputConfig(), (256, 256, 1)),
        (InputConfig(policy="tile", height=24, width=40, overlap_px=8), (32, 48, 1)),  # 2 × 2 tiles
    ],
)
def test_noise_has_the_input_size_of_the_model(config: InputConfig, shape: tuple[int, int, int]) -> None:
    config = CONFIG.model_copy(update={"input": config})
    noise = random_photograph(config)
    assert (noise.shape, noise.dtype) == (shape, np.uint8)
    np.testing.assert_array_equal(noise, random_photograph(config))


@pytest.mark.parametrize(
    ("log_odds", "score", "slope", "tolerance"),
    [
        (0.0, 0.5, 4.0, 4e-3),  # four times a quarter of 0.004 log-odds
        (9.0, 0.5, 1.0, 5e-3),  # far out the network's log-odds may move by 0.02
        (9.0, 0.99, 1.0, 1e-3),
        (-800.0, 0.5, 100.0, 0.5),
    ],
)
def test_calibration_moves_the_tolerance(log_odds, score, slope, tolerance) -> None:
    answer = answering(CONFIG, SURE).predict([PHOTOGRAPH])[0]
    moved = replace(answer, log_odds=log_odds, score=score)
    assert make_self_test(PHOTOGRAPH, moved, slope).score_tolerance == pytest.approx(tolerance)


def test_the_network_s_own_mask_scores_are_compared() -> None:
    """Refinement would add to the small differences of engines."""
    own = answering(CONFIG).predict([PHOTOGRAPH])[0]
    found = predict_unrefined(answering(CONFIG.with_mask_refinement(0.5, refine=True)), PHOTOGRAPH)
    assert np.array_equal(found.mask_scores, own.mask_scores)
    assert found.mask_threshold == own.mask_threshold
