from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from segdec.config import InputConfig, ModelConfig, NetworkConfig, Thresholds, config_error
from segdec.inference.postprocessing import Prediction, interpret
from segdec.inference.region_classes import assign_classes, max_class_scores

CLASSES = ("good", "scratch", "spot", "stain")
CONFIG = ModelConfig(
    network=NetworkConfig(preset="compact", num_classes=4, mask_classes=True, mask_stride=1),
    input=InputConfig(),
    classes=CLASSES,
    thresholds=Thresholds(score=0.5, mask=0.5),
)
DEFECTIVE, GOOD = np.array([-2.0, 1.0, 0.0, 0.0], np.float32), np.array([5.0, 1.0, 0.0, 0.0], np.float32)


def answer(mask_logits: NDArray[np.float32], class_logits: NDArray[np.float32] = DEFECTIVE) -> Prediction:
    return interpret(mask_logits, class_logits, mask_logits.shape[:2], CONFIG)


def logits() -> NDArray[np.float32]:
    """A scratch of 2 × 6 px of score 0.73 and a stain of 4 × 4 px of 0.95; 16 × 16 px."""
    found = np.full((16, 16, 3), -5.0, np.float32)
    found[2:4, 2:8, 0] = 1.0
    found[9:13, 9:13, 2] = 3.0
    return found


def test_the_highest_score_defines_the_class() -> None:
    scores = np.array([[[0.2, 0.7], [0.5, 0.5]]], np.float32)
    highest, classes = max_class_scores(scores, lambda one: one)
    assert highest.tolist() == [[np.float32(0.7), 0.5]]
    assert classes.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("part_score", "min_px", "part"), [(0.4, 1, 1), (0.8, 1, 2), (0.8, 2, 1)], ids=["weak", "strong", "small"]
)
def test_only_a_strong_part_of_a_cells_size_keeps_its_class(
    part_score: float, min_px: int, part: int
) -> None:
    classes = np.array([[2, 1, 1, 1, 0]], np.uint8)
    scores = np.array([[part_score, 0.9, 0.9, 0.9, 0.1]], np.float32)
    mask = np.where(classes > 0, np.uint8(255), np.uint8(0))
    assert assign_classes(mask, scores, classes, min_px).tolist() == [[part, 1, 1, 1, 0]]


def test_each_region_has_its_class_and_score() -> None:
    found = answer(logits())
    assert [(region.label, region.bbox, region.area_px) for region in found.regions] == [
        ("stain", (9, 9, 4, 4), 16),
        ("scratch", (2, 2, 6, 2), 12),
    ]
    assert [region.score_max for region in found.regions] == pytest.approx([0.9526, 0.7311], abs=1e-4)
    assert found.class_mask is not None
    assert np.unique(found.class_mask).tolist() == [0, 1, 3]
    np.testing.assert_array_equal(found.class_mask > 0, found.mask > 0)


def test_the_label_is_that_of_the_worst_region() -> None:
    assert answer(logits()).label == "stain"  # the decision by itself would say scratch
    assert answer(logits(), GOOD).label == "good"
    assert answer(np.full((16, 16, 3), -5.0, np.float32)).label == "scratch"


SCALES = [
    ({"policy": "native"}, (16, 16)),
    ({"policy": "resize", "height": 16, "width": 16}, (64, 64)),  # a cell of 4 × 4 px has 16 × 16
    ({"policy": "resize", "height": 16, "width": 16}, (8, 8)),  # and 2 × 2 of one that is enlarged
    ({"policy": "letterbox", "height": 16, "width": 16}, (48, 64)),
]


@pytest.mark.parametrize(("policy", "size"), SCALES, ids=str)
@pytest.mark.parametrize(("cells", "expected"), [(1, {"scratch"}), (2, {"scratch", "spot"})])
def test_a_cell_is_as_large_as_the_photograph_makes_it(
    policy: dict[str, object], size: tuple[int, int], cells: int, expected: set[str]
) -> None:
    """A scratch everywhere, on it a spot of one cell, a quarter of which it wins, or of 2 × 2 cells."""
    found = np.full((4, 4, 3), -9.0, np.float32)
    found[..., 0] = 0.4  # 0.6
    found[1 : 1 + cells, 1 : 1 + cells, 1] = 2.2  # 0.9
    network = CONFIG.network.model_copy(update={"mask_stride": 4})
    config = CONFIG.model_copy(update={"network": network, "input": InputConfig.model_validate(policy)})
    assert {region.label for region in interpret(found, DEFECTIVE, size, config).regions} == expected


def test_mask_classes_with_one_class_is_rejected() -> None:
    values = {"network": {"mask_classes": True}, "input": {}, "classes": ("good", "defect")}
    with pytest.raises(ValidationError) as caught:
        ModelConfig.model_validate(values)
    text = str(config_error(caught.value, ModelConfig))
    assert "network.mask_classes with only one defect class, 'defect'" in text
    assert "set network.mask_classes to false" in text


def network_config(**changes: object) -> NetworkConfig:
    widths = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}
    return NetworkConfig.model_validate(
        {**widths, "decision_widths": (4, 4, 4), "num_classes": 4, "mask_classes": True, **changes}
    )


def test_decision_uses_the_highest_score_of_all_masks() -> None:
    from segdec.network.network import build_network

    network = build_network(network_config())
    random = np.random.default_rng(0)
    features = random.normal(size=(1, 4, 4, 8)).astype(np.float32)
    masks = random.normal(size=(1, 4, 4, 3)).astype(np.float32)
    swapped = masks[..., [2, 0, 1]]
    one, other = (network.decisions[0]((features, each)).numpy() for each in (masks, swapped))
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_an_exported_model_has_one_mask_per_class(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from segdec.engines import ENGINES
    from segdec.export.model_export import write_engine
    from segdec.network.network import build_network

    network = build_network(network_config(mask_stride=4))
    photograph = np.random.default_rng(1).integers(0, 256, (1, 40, 56, 1), dtype=np.uint8)
    write_engine("openvino", network, tmp_path, [])
    masks = ENGINES["openvino"].load(tmp_path, size=(40, 56)).infer(photograph).mask
    assert masks.shape == (1, 10, 14, 3)
    np.testing.assert_allclose(masks, network(photograph)["mask_logits"], rtol=1e-4, atol=1e-4)


def test_classes_of_regions_do_not_depend_on_refinement() -> None:
    """The label of a photograph is the class of its worst region."""
    found = np.full((6, 6, 2), -3, np.float32)
    found[2, 2], found[4, 4] = (3, -3), (-3, 2.9)
    photograph = np.random.default_rng(0).integers(0, 255, (48, 48, 1), np.uint8)
    size, refined = (48, 48), CONFIG.with_mask_refinement(0.4, refine=True)
    config = refined.model_copy(update={"network": refined.network.model_copy(update={"mask_stride": 8})})
    answers = [
        interpret(found, DEFECTIVE, size, each, photograph=photograph)
        for each in (config, config.with_mask_refinement(0.0, refine=False))
    ]
    assert answers[0].regions == answers[1].regions != ()
    assert answers[0].mask_threshold == answers[1].mask_threshold
