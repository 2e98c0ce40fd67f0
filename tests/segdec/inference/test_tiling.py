import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from segdec.config import InputConfig, ModelConfig, NetworkConfig, config_error
from segdec.engines import Logits
from segdec.inference.tiling import blending_weights, infer_tiles, most_defective, tile_starts
from segdec.predictor import Predictor
from tests.marks import slow_case

WIDTHS = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "decision_widths": (4, 4, 4)}
"""With a feature kernel of 5, 2 · (1 + 2 + 4) + 2 · 8 = 30 px count on either side of a mask logit."""


def model(height: int, width: int, overlap_px: int | None = None, **network: object) -> ModelConfig:
    return ModelConfig(
        network=NetworkConfig.model_validate({**WIDTHS, "feature_kernel": 5, **network}),
        input=InputConfig(policy="tile", height=height, width=width, overlap_px=overlap_px),
        classes=("good", "defect"),
    )


class MeanEngine:
    """Returns each cell's mean brightness, and the brightest cell as its defect logit."""

    def __init__(self, batch_pixels: int = 2**24, stride: int = 8) -> None:
        self.batch_pixels = batch_pixels
        self.stride = stride
        self.shapes: list[tuple[int, ...]] = []

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        self.shapes.append(images.shape)
        batch, height, width, _ = images.shape
        rows, columns = height // self.stride, width // self.stride
        cells = images.reshape(batch, rows, self.stride, columns, self.stride).mean(axis=(2, 4))
        brightest = cells.max(axis=(1, 2))
        classes = np.stack([np.zeros(batch), brightest], axis=1)
        surface = np.stack([cells.mean(axis=(1, 2)), brightest], axis=1).astype(np.float32)
        return Logits(cells[..., None].astype(np.float32), classes.astype(np.float32), surface)


def noise(batch: int, height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(3).integers(0, 256, (batch, height, width, 1), dtype=np.uint8)


@pytest.mark.parametrize(
    ("side", "overlap", "starts"),
    [
        (40, 16, (0,)),
        (48, 16, (0,)),
        (56, 16, (0, 8)),
        (104, 16, (0, 24, 56)),
        (104, 40, tuple(range(0, 57, 8))),
    ],
)  # of tiles of 48 px
def test_tile_starts(side: int, overlap: int, starts: tuple[int, ...]) -> None:
    assert tile_starts(side, 48, overlap) == starts


@pytest.mark.parametrize(
    ("border", "min_blend_share", "rising"),
    [
        (0, 0.0, [1 / 8, 3 / 8, 5 / 8, 7 / 8]),
        (1, 0.0, [0, 0.25, 0.75, 1]),
        (2, 0.0, [0, 0, 1, 1]),
        (9, 0.0, [0, 0, 1, 1]),  # no more than half of the overlap
        (9, 0.5, [0, 0.25, 0.75, 1]),
    ],
)
def test_logits_are_blended_between_the_borders(
    border: int, min_blend_share: float, rising: list[float]
) -> None:
    first, second = blending_weights((0, 4), 8, border, min_blend_share)
    np.testing.assert_allclose(second, [*rising, 1, 1, 1, 1])
    np.testing.assert_allclose(first, [1, 1, 1, 1, *np.subtract(1, rising)])


def test_tiles_go_through_the_engine_in_bounded_batches() -> None:
    engine = MeanEngine(batch_pixels=4 * 48 * 56 + 1)
    infer_tiles(engine, noise(2, 104, 80), model(48, 56, 16))  # 3 × 2 tiles each
    assert engine.shapes == [(4, 48, 56, 1)] * 3
    engine = MeanEngine(batch_pixels=1)
    Predictor(engine, model(48, 56, 16), batch_pixels=2 * 48 * 56).infer(noise(1, 48, 136))
    assert engine.shapes == [(2, 48, 56, 1), (1, 48, 56, 1)]  # what an operator sets counts


def test_a_defect_has_the_same_mask_and_score_wherever_tiles_meet() -> None:
    """One bright cell in each of 13 × 17: in one tile, on seams, where four tiles meet, in the last tiles."""
    cells = np.eye(13 * 17, dtype=np.uint8).reshape(-1, 13, 17, 1) * np.uint8(200)
    images = cells.repeat(8, axis=1).repeat(8, axis=2)
    found, whole = infer_tiles(MeanEngine(), images, model(48, 56, 16)), MeanEngine().infer(images)
    np.testing.assert_allclose(found.mask, whole.mask, rtol=1e-6)
    np.testing.assert_array_equal(found.classes, whole.classes)


def test_tiles_of_a_smaller_photograph_are_rejected() -> None:
    with pytest.raises(ValueError, match="at least one tile of 48 × 56 px"):
        infer_tiles(MeanEngine(), noise(1, 48, 48), model(48, 56, 16))


def test_the_most_defective_tile_decides() -> None:
    tiles = np.array([[5, 4, 0], [0, 1, 1], [2, 3.6, 0], [9, 9, 0]], np.float32)
    assert most_defective(tiles[None])[0].tolist() == [0, 1, 1]  # log(2e) − 0 is more than 1.6
    ties = np.array([[1, 2], [3, 4], [0, 1]], np.float32)
    assert most_defective(np.stack([ties, ties[::-1]])).tolist() == [[1, 2], [0, 1]]
    for value in (np.nan, np.inf, -np.inf):  # chosen, so that it is reported
        invalid = np.array([[[0, 1], [value, 0], [0, 9]]], np.float32)
        np.testing.assert_array_equal(most_defective(invalid), [[value, 0]])


@pytest.mark.parametrize(
    ("side", "overlap_px", "reason"), [(72, None, "72 px (the network's"), (48, 48, "48 px (overlap_px)")]
)
def test_overlap_must_be_less_than_a_tile(side: int, overlap_px: int | None, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model(96, side, overlap_px)
    text = str(config_error(caught.value, ModelConfig))
    assert text.startswith(f"ModelConfig: tiles of 96 × {side} px cannot overlap by {reason}")
    assert text.endswith("set larger input.height and input.width or a smaller input.overlap_px")


# === Networks ===


class EagerEngine:
    """A tiny network, called as it is; its normalisation is far from the one it begins with."""

    batch_pixels = 2**19

    def __init__(self, **network):
        import keras

        from segdec.network.network import build_network

        keras.utils.set_random_seed(7)
        self._network = build_network(model(2000, 2000, **network).network)
        random = np.random.default_rng(11)
        for variable in self._network.variables:
            if variable.name in ("moving_variance", "gamma"):
                variable.assign(random.uniform(0.5, 1.5, variable.shape))
            elif variable.name in ("moving_mean", "beta"):
                variable.assign(random.normal(0, 0.3, variable.shape))
            elif "mask_correction" in variable.path:  # zero at first, which would hide the decoder
                variable.assign(random.normal(0, 0.1, variable.shape))

    def infer(self, images):
        found = self._network(images.astype(np.float32), training=False)
        return Logits(np.asarray(found["mask_logits"]), np.asarray(found["class_logits"]))


@pytest.mark.parametrize("stride", [slow_case(8), 4])
def test_tiles_answer_as_the_photograph_in_one_piece(stride):
    """Batch normalisation: equal up to the photograph's borders, though no side is a multiple of the step."""
    tiled, engine = model(160, 168, mask_stride=stride), EagerEngine(mask_stride=stride)
    native = tiled.model_copy(update={"input": InputConfig()})
    prepared = Predictor(engine, native).prepare(noise(1, 171, 301)[0])[None]
    whole = Predictor(engine, native).infer(prepared).mask
    assert whole.shape == (1, 176 // stride, 304 // stride, 1)
    assert whole.std() > 0.02
    np.testing.assert_allclose(Predictor(engine, tiled).infer(prepared).mask, whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("normalization", ["instance", slow_case("feature")])
def test_no_visible_edge_between_different_tiles(normalization):
    """Statistics of a tile: its logits differ from its neighbour's, yet do not jump to them."""
    engine = EagerEngine(normalization=normalization)
    light = np.linspace(0, 100, 584)[:, None]
    images = (50 + noise(1, 104, 584) / 5 + light).astype(np.uint8)

    def seam(overlap_px, middles):
        """Mean jump within 4 columns of where tiles meet, as a multiple of that elsewhere."""
        config = model(104, 200, overlap_px, normalization=normalization)
        mask = infer_tiles(engine, images, config).mask[0, ..., 0]
        jumps = np.abs(np.diff(mask, axis=1)).mean(axis=0)
        columns = np.arange(1, len(jumps) + 1)  # a jump is on the left of its column
        near = (np.abs(columns[:, None] - middles) <= 4).any(axis=1)
        inner = (columns >= 4) & (columns <= len(jumps) - 3)
        return jumps[near].mean() / jumps[inner & ~near].mean()

    assert seam(None, [20.5, 36.5, 52.5]) < 1.1  # tiles from 0, 128, 256, 384 px
    assert seam(0, [24.5, 48.5]) > 1.25  # from 0, 192, 384 px


def test_the_surface_is_the_mean_of_the_tiles() -> None:
    """Columns 0…47 and 48…95 of each photograph are a tile."""
    images = noise(2, 48, 96)
    found = infer_tiles(MeanEngine(), images, model(48, 48, overlap_px=0))
    first, second = (MeanEngine().infer(images[:, :, start : start + 48]).surface for start in (0, 48))
    assert found.surface is not None and first is not None and second is not None
    np.testing.assert_allclose(found.surface, (first + second) / 2, rtol=1e-6)
