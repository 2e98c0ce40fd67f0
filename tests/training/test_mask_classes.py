"""One mask for each class of defects, from annotations to figures."""

import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from datasets.layouts.toy import write_toy
from datasets.sample import DataSetItem, Sample
from segdec.config import InputConfig
from segdec.errors import ConfigError, DatasetError
from segdec.predictor import Predictor
from training.config import LossConfig, TargetConfig
from training.data.array_cache import ArrayCache
from training.data.example_source import PhotographSource, TileSource
from training.data.inspected_items import clip_mask, relabel_uninspected
from training.data.run_data import check_localized, load_run_data
from training.data.synthetic_source import ANY_DEFECT
from training.data.targets import build_targets, split_by_class
from training.evaluate import evaluate_run
from training.experiment_file import load_experiment
from training.export import ExportOptions, export_run
from training.metrics.metrics import compute_metrics
from training.metrics.regions import (
    Overlap,
    count_region_classes,
    false_region_classes,
    measure_class_overlaps,
)
from training.metrics.storage import load_evaluation
from training.trainer import Trainer

PLAIN = TargetConfig(dilation_px=1)


def two_kinds():
    """A mask of 8 × 16 px: class 1 in the first four columns, class 2 in four of the right half."""
    mask, classes = np.zeros((8, 16), np.uint8), np.ones((8, 16), np.uint8)
    mask[:, 0:4] = mask[:, 12:16] = 255
    classes[:, 8:] = 2
    return mask, classes


# === Targets ===


def split(mask, label, classes=None, config=PLAIN, **more):
    share = build_targets(mask, mask.shape, config, 8, **more).share
    return split_by_class(share, mask, label, config, 8, 3, classes=classes, **more)[0].tolist()


def test_each_class_has_its_own_share():
    mask, classes = two_kinds()
    assert split(mask, 2, classes) == [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]
    assert split(mask, ANY_DEFECT) == [[0.5] * 3] * 2  # an unknown class counts for all
    assert split_by_class(np.zeros((1, 2, 1), np.float32), None, 0, PLAIN, 8, 3).any() == np.False_
    # Of 8 px wide squares both grow by one column on the side that is not the border.
    grown = split(mask, 2, classes, TargetConfig(dilation_px=3, dilation_shape="square"))
    assert grown == [[5 / 8, 0.0, 0.0], [0.0, 5 / 8, 0.0]]
    area = np.zeros_like(mask)
    area[:, :8] = 255
    assert split(mask, 2, classes, area=area) == [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]


# === Loss ===


def test_classes_are_learnt_apart_and_an_unknown_one_by_its_likeliest_mask():
    import tensorflow as tf

    from training.optimization.losses import segmentation_loss, select_likeliest_mask

    logits, weight = tf.Variable([[[[0.5, 2.0, -1.0]]]]), tf.ones((1, 1, 1, 1))
    target = tf.constant([[[[0.0, 1.0, 0.0]]]])
    apart = [
        segmentation_loss(logits[..., k : k + 1], target[..., k : k + 1], weight, LossConfig())
        for k in range(3)
    ]
    together = segmentation_loss(logits, target, weight, LossConfig())
    np.testing.assert_allclose(together, sum(apart), rtol=1e-6)
    with tf.GradientTape() as tape:
        left, truth = select_likeliest_mask(logits, tf.ones((1, 1, 1, 3)), tf.constant([ANY_DEFECT]))
        loss = segmentation_loss(left, truth, weight, LossConfig())
    gradient = tape.gradient(loss, logits).numpy().ravel()
    assert gradient[[0, 2]].tolist() == [0.0, 0.0]
    assert gradient[1] < 0
    same, _ = select_likeliest_mask(logits, tf.ones((1, 1, 1, 3)), tf.constant([1]))
    np.testing.assert_array_equal(same, logits)


# === Items ===


def test_photographs_and_tiles_have_the_class_that_they_show(tmp_path):
    mask, classes = two_kinds()
    sample = Sample("part", np.zeros((8, 16, 1), np.uint8), mask, 2, classes=classes)
    item = DataSetItem("part", tmp_path, tmp_path, 2, "part", mask_values=(), shape=(8, 16, 1))
    left = InputConfig(regions_of_interest=(((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)),))
    (relabelled,) = relabel_uninspected([item], lambda _: clip_mask(sample, left), left)
    assert relabelled.label == 1
    tiles = InputConfig(policy="tile", height=8, width=8, overlap_px=0)
    photographs = PhotographSource([item], lambda _: sample, tiles, 1, ArrayCache(1))
    source = TileSource(photographs, tiles, 0)
    assert source.labels == [1, 2]
    assert np.unique(source[1].classes).tolist() == [2]
    assert not photographs.has_drawn_mask(0)  # no defect of one class that could be given away


def test_label_only_annotations_of_a_class_are_refused(tmp_path):
    known = DataSetItem("1", tmp_path, tmp_path, 1, "1")
    unknown = DataSetItem("2", tmp_path, None, 2, "2", supervision="label")
    classes = ("good", "scratch", "spot")
    check_localized([known, DataSetItem("0", tmp_path, None, 0, "0")], classes)
    with pytest.raises(DatasetError, match="no training photograph of the class 'spot' has a mask"):
        check_localized([known, unknown], classes)
    check_localized(
        [known, unknown, DataSetItem("3", tmp_path, tmp_path, 2, "3", supervision="box")], classes
    )


# === Figures ===


def test_regions_are_measured_by_class():
    truth = np.zeros((4, 12), np.uint8)
    truth[0, 0:4], truth[0, 4:8], truth[2, 0:4] = 1, 2, 1  # touching ones of two classes are two regions
    predicted = np.zeros_like(truth)
    predicted[0, 0:3], predicted[0, 3:8], predicted[3, 10:12] = 1, 1, 2
    overlaps = measure_class_overlaps(predicted, truth)
    outside = 36, 2  # of 48 pixels 12 are in a region
    expected = [(4, 4, 1, 1), (4, 0, 1, 0), (4, 4, 2, 1)]
    assert overlaps == tuple(Overlap(*counts, *outside) for counts in expected)
    assert measure_class_overlaps(predicted, None) == ()
    assert false_region_classes(predicted, truth) == (2,)
    assert false_region_classes(predicted, None) == (1, 2)


def test_the_confusion_of_regions():
    overlaps = [Overlap(4, 4, 1, 1), Overlap(4, 3, 1, 1), Overlap(4, 0, 1, 0), Overlap(4, 4, 2, 1)]
    regions = count_region_classes(overlaps, [2, 2], 3)
    assert regions.confusion == ((2, 0, 1), (1, 0, 0), (0, 2, 0))
    assert (regions.found, regions.right, regions.accuracy) == (3, 2, pytest.approx(2 / 3))
    assert count_region_classes([Overlap(4, 4)], [], 3) is None
    assert compute_metrics([], ("good", "a", "b")).region_classes is None


# === A run ===


@pytest.mark.slow
def test_a_run_learns_a_mask_for_each_class(tiny_experiment, tmp_path):
    write_toy(tmp_path / "toy", 36, size=32, classes=4)
    data = ["--data.root", str(tmp_path / "toy"), "--data.splits", str(tmp_path / "toy" / "splits.txt")]
    changes = ["--network.mask-classes", "--network.mask-stride", "2", "--augmentation.synthetic", "0.3"]
    config = load_experiment(tiny_experiment, [*data, *changes, "--runs", str(tmp_path / "runs")])
    trained = Trainer(config).run().path
    text = evaluate_run(trained, "test").text
    figures = json.loads((trained / "metrics.json").read_text())
    evaluation = load_evaluation(trained)
    assert evaluation.classes == ("good", "scratch", "spot", "stain")
    true_classes = {overlap.true_class for result in evaluation.results for overlap in result.overlaps}
    assert true_classes <= {1, 2, 3}
    assert true_classes
    assert np.array(figures["region_confusion"]).shape == (4, 4)
    assert "true region, found as" in text
    assert "Classes of regions" in (trained / "report.html").read_text(encoding="utf-8")
    again = compute_metrics(evaluation.results, evaluation.classes, evaluation.mask_scores)
    assert [list(row) for row in again.region_classes.confusion] == figures["region_confusion"]
    export_run(trained, tmp_path / "model", ExportOptions(force=True))
    predictor = Predictor.load(tmp_path / "model")
    assert predictor.config.network.mask_channels == 3
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 1), dtype=np.uint8)
    (prediction,) = predictor.predict([image])
    assert set(np.unique(prediction.class_mask)) <= {0, 1, 2, 3}
    assert all(region.label in predictor.config.classes[1:] for region in prediction.regions)


def test_mask_classes_with_one_class_is_refused(tiny_experiment):
    with pytest.raises(ConfigError, match=r"network\.mask_classes with only one defect class, 'defect'"):
        load_run_data(load_experiment(tiny_experiment, ["--network.mask-classes"]))
