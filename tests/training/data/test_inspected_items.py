import numpy as np
import pytest

pytest.importorskip("tensorflow")

from datasets.sample import DataSetItem, Sample
from segdec.config import InputConfig
from segdec.images import write_png
from training.config import AugmentationConfig, TargetConfig
from training.data.augmentation import augment
from training.data.inspected_items import clip_mask, relabel_uninspected
from training.data.run_data import item_reader, load_run_data
from training.data.targets import build_targets
from training.evaluate import evaluate_run
from training.experiment_file import load_experiment, save_experiment
from training.metrics.storage import load_evaluation
from training.run.folder import RunFolder
from training.synthesis.anomalies import synthesize_anomaly
from training.trainer import Trainer

LEFT_HALF = InputConfig(regions_of_interest=(((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)),))
FLAGS = ["--input.regions-of-interest", "[[[0, 0], [0.5, 0], [0.5, 1], [0, 1]]]"]


def half(side=16):
    area = np.zeros((side, side), np.uint8)
    area[:, : side // 2] = 255
    return area


def sample(columns, label=1, **changes):
    mask = np.zeros((8, 8), np.uint8)
    mask[3, columns] = 255
    return Sample("part", np.zeros((8, 8, 1), np.uint8), mask, label, **changes)


# === Labels ===


def item(name, tmp_path, label=1, **changes):
    path = tmp_path / f"{name}.png"
    return DataSetItem(
        name, **{"image_file": path, "mask_file": path, "label": label, "group": name, **changes}
    )


def test_the_labels_are_those_of_what_is_inspected(tmp_path, capsys):
    """Defects outside make no photograph defective; a photograph with a label only keeps its class."""
    assert np.flatnonzero(clip_mask(sample(slice(2, 6)), LEFT_HALF).mask[3]).tolist() == [2, 3]
    samples = {"inside": sample([1]), "across": sample([3, 4]), "outside": sample([5])}
    items = [item(name, tmp_path, label=2) for name in samples]
    relabelled = relabel_uninspected(items, lambda one: clip_mask(samples[one.name], LEFT_HALF), LEFT_HALF)
    assert [one.label for one in relabelled] == [2, 2, 0]
    assert relabelled[2].mask_file is None
    assert relabel_uninspected(items, samples.__getitem__, InputConfig()) is items
    known = (item("part", tmp_path, mask_file=None, supervision="label"), item("good", tmp_path, label=0))
    assert relabel_uninspected(known, pytest.fail, LEFT_HALF) == known
    assert "warning: 1 defective photograph with a label only" in capsys.readouterr().err


# === What is learnt ===


def test_pixels_outside_have_no_weight():
    mask = np.zeros((16, 16), np.uint8)
    mask[0:4, 4:12] = 255
    area = np.zeros((16, 16), np.uint8)
    area[:, :12] = 255
    targets = build_targets(mask, (16, 16), TargetConfig(dilation_px=1), 8, area=area)
    # Of the right cells 8 × 4 px are inspected, of which 4 × 4 are defective above.
    assert targets.share[..., 0].tolist() == [[0.25, 0.5], [0.0, 0.0]]
    assert targets.weight[..., 0].tolist() == [[1.0, 0.5], [1.0, 0.5]]
    beyond = np.zeros((16, 16), np.uint8)
    beyond[:, 8] = 255  # a defect outside is not dilated into the area
    clipped = build_targets(beyond, (16, 16), TargetConfig(dilation_px=5), 8, area=half())
    assert not clipped.share.any()
    assert clipped.weight[..., 0].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    everywhere = build_targets(mask, (16, 16), TargetConfig(), 8)
    whole = build_targets(mask, (16, 16), TargetConfig(), 8, area=np.full((16, 16), 255, np.uint8))
    for one, other in zip(everywhere, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_area_is_augmented_with_its_image_and_uniform_outside():
    random = np.random.default_rng(0)
    image = np.where(half()[..., None] > 0, random.integers(0, 256, (16, 16, 1)), 90).astype(np.uint8)
    config = AugmentationConfig(flip_vertical=False, noise=0.1, shift=0.2)
    for seed in range(8):
        changed = augment(image, None, np.random.default_rng(seed), config, half())
        (level,) = np.unique(changed.image[changed.area == 0])
        assert abs(level - 90) <= 8  # of its noise


def test_synthetic_defects_are_in_the_inspected_area():
    random = np.random.default_rng(0)
    image = random.integers(90, 140, (64, 64, 1)).astype(np.uint8)
    for _ in range(4):
        changed, mask = synthesize_anomaly(image, [image], random, half(64))
        assert mask.any()
        assert not mask[:, 32:].any()
        np.testing.assert_array_equal(changed[:, 32:], image[:, 32:])


# === A run ===


@pytest.mark.slow
def test_a_run_is_trained_and_measured_where_it_is_inspected(tiny_experiment, tmp_path):
    stages = ["--stages.segment.steps", "1", "--stages.decision.steps", "0", "--stages.joint.steps", "1"]
    config = load_experiment(tiny_experiment, ["--runs", str(tmp_path), *stages, *FLAGS])
    data, whole = load_run_data(config), load_run_data(load_experiment(tiny_experiment))
    read = item_reader(load_experiment(tiny_experiment))
    pairs = zip(data.dataset.items, whole.dataset.items, strict=True)
    moved = {old.name for new, old in pairs if new.label != old.label}
    assert moved, "no defect of the toy set is in the right half"
    assert moved == {
        old.name for old in whole.dataset.items if old.label and not read(old).mask[:, :16].any()
    }
    assert data.fingerprint != whole.fingerprint
    path = Trainer(config).run().path
    assert RunFolder.finished(path).result().model.input == config.input
    evaluate_run(path, "test")
    defective = {one.name for one in data.dataset.of_split("test") if one.label}
    results = load_evaluation(path).results
    assert {result.name for result in results if result.truth} == defective
    counts = [result.pixels.tp + result.pixels.fp + result.pixels.fn for result in results if result.pixels]
    assert max(counts) <= 32 * 16


def test_tiles_outside_the_area_are_omitted(tiny_experiment, tmp_path):
    size = ["--input.height", "8", "--input.width", "8", "--input.overlap-px", "0"]
    tiles = ["--input.policy", "tile", *size]
    narrow = ["--input.regions-of-interest", "[[[0, 0], [0.45, 0], [0.45, 1], [0, 1]]]"]
    data = load_run_data(load_experiment(tiny_experiment, ["--runs", str(tmp_path), *tiles, *narrow]))
    photographs = len(data.dataset.of_split("train"))
    assert len(data.examples) == photographs * 4 * 3  # of four columns the last one is further than 8 px
    areas = [data.examples[index].area for index in range(len(data.examples))]
    assert sum(bool(area.any()) for area in areas) == photographs * 4 * 2


def test_the_mask_is_stored_in_the_configuration(tiny_experiment, tmp_path):
    mask = np.zeros((4, 4), np.uint8)
    mask[:, :2] = 1
    write_png(tmp_path / "mask.png", mask)
    config = load_experiment(tiny_experiment, ["--input.interest-mask", str(tmp_path / "mask.png")])
    np.testing.assert_array_equal(config.input.inspected_area(16, 16), half())
    (tmp_path / "mask.png").unlink()
    (tmp_path / "saved.toml").write_text(save_experiment(config))
    assert load_experiment(tmp_path / "saved.toml").input == config.input
