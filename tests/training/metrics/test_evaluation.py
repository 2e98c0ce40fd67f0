import threading
from dataclasses import replace

import numpy as np
import pytest

from segdec.errors import DatasetError
from training.data.reading_pool import ReadingPool
from training.metrics.evaluation import evaluate
from training.metrics.pixel_counts import PixelCounts


@pytest.fixture(scope="module")
def evaluation(predictor, mixed):
    return evaluate([(predictor, mixed[0])], mixed[1], batch_size=2, progress=False)


def test_rows_hold_truth_and_answer_in_the_order_of_the_items(evaluation, mixed):
    items, _ = mixed
    assert [result.name for result in evaluation.results] == [item.name for item in items]
    second = evaluation.results[2]
    assert (second.true_label, second.predicted_label, second.outcome) == ("defect", "defect", "correct")
    assert (second.split, second.group, second.threshold) == ("test", "defect/found", 0.5)
    assert second.regions == 1
    assert second.score == pytest.approx(1 / (1 + np.exp(-(220 - 128) / 16)))


def test_pixels_count_where_the_truth_is_known(evaluation):
    alarm, right, found, missed, unmasked = (result.pixels for result in evaluation.results)
    assert alarm.tp == alarm.fn == 0 < alarm.fp
    assert right == PixelCounts()
    assert found.tp + found.fn == 64
    assert missed == PixelCounts(fn=64)
    assert unmasked is None


def test_true_regions_are_held_against_the_mask(evaluation):
    overlaps = [result.overlaps for result in evaluation.results]
    assert [len(each) for each in overlaps] == [0, 0, 1, 1, 0]
    found, missed = overlaps[2][0], overlaps[3][0]
    assert (found.area_px, found.covered_px) == (64, evaluation.results[2].pixels.tp)
    assert (missed.area_px, missed.covered_px) == (64, 0)
    assert [(size.regions, size.found) for size in evaluation.metrics.region_sizes][:2] == [(0, 0), (2, 1)]


@pytest.mark.parametrize("supervision", ["box", "label"])
def test_boxes_are_no_truth_for_pixels(predictor, mixed, evaluation, supervision):
    items, read = mixed

    def read_boxed(item):
        return replace(read(item), supervision=supervision if item.label else "mask")

    result = evaluate([(predictor, items)], read_boxed, progress=False)
    assert [result.pixels is None for result in result.results] == [False, False, True, True, True]
    assert result.metrics.pixel_images == 2
    assert result.metrics.aupro is result.metrics.pixel_average_precision is None
    assert result.metrics.average_precision == evaluation.metrics.average_precision


def test_ignored_pixels_do_not_count(predictor, mixed, evaluation):
    items, read = mixed
    ignored = np.zeros(read(items[0]).image.shape[:2], np.uint8)
    ignored[4:20, 12:28] = 255  # the cell and its surroundings

    def read_ignored(item):
        sample = read(item)
        return replace(sample, ignored=ignored, mask=sample.mask if sample.mask is None else 0 * sample.mask)

    result = evaluate([(predictor, items)], read_ignored, progress=False)
    assert [each.pixels for each in result.results] == [*[PixelCounts()] * 4, None]
    assert [each.score for each in result.results] == [each.score for each in evaluation.results]
    counted = [each.mask_scores.to_arrays()["background"].sum() for each in (evaluation, result)]
    assert counted[0] - counted[1] == 4 * 16 * 16 - 2 * 64  # two cells were defects before


def test_no_more_than_a_batch_is_read_ahead(make_predictor, mixed):
    predictor = make_predictor("defect")
    items, read = mixed
    seen, most = [], []
    infer_each = predictor.infer_each

    def count_before_inferring(images, **options):
        most.append(len(seen) - sum(most))
        return infer_each(images, **options)

    predictor.infer_each = count_before_inferring
    evaluate([(predictor, items)], lambda each: seen.append(each) or read(each), batch_size=2, progress=False)
    assert most == [2, 2, 1]
    assert predictor.engine.largest_batch == 2


def test_a_pool_reads_several_at_a_time_and_changes_nothing(predictor, make_samples):
    items, read = make_samples(*((f"good/{i}", 0, 40 + 20 * i, False) for i in range(8)))
    meeting = threading.Barrier(2, timeout=60.0)

    def read_shard_files(item):
        meeting.wait()
        return read(item)

    alone = evaluate([(predictor, items)], read, batch_size=3, progress=False)
    pool = ReadingPool(2)
    together = evaluate([(predictor, items)], read_shard_files, batch_size=3, progress=False, pool=pool)
    assert together.results == alone.results
    assert together.metrics == alone.metrics


def test_a_pool_interprets_several_at_a_time(make_predictor, make_samples):
    items, read = make_samples(*((f"good/{i}", 0, 40 + 20 * i, False) for i in range(4)))
    predictor, meeting = make_predictor("defect"), threading.Barrier(2, timeout=60.0)
    interpret = predictor.interpret

    def interpret_together(*arguments, **options):
        meeting.wait()
        return interpret(*arguments, **options)

    predictor.interpret = interpret_together
    together = evaluate([(predictor, items)], read, batch_size=2, progress=False, pool=ReadingPool(2))
    assert [result.name for result in together.results] == [item.name for item in items]


def test_several_classes_count_a_wrong_class_apart_from_a_miss(make_predictor, make_samples):
    items, read = make_samples(
        ("a", 0, None, False), ("b", 1, 220, True), ("c", 2, 220, True), ("d", 2, 100, True)
    )
    result = evaluate([(make_predictor("scratch", "stain"), items)], read, progress=False)
    outcomes = [result.outcome for result in result.results]
    assert outcomes == ["correct", "correct", "wrong class", "false negative"]
    assert result.metrics.confusion == ((1, 0, 0), (0, 1, 0), (1, 1, 0))
    assert (result.metrics.errors, result.metrics.label_accuracy) == (1, 0.5)


def test_no_items_give_figures_without_values(predictor):
    result = evaluate([(predictor, [])], lambda item: item, progress=False)
    assert result.results == ()
    assert (result.metrics.images, result.metrics.average_precision, result.metrics.errors) == (0, None, 0)


def test_unknown_class_is_refused_before_anything_is_read(predictor, make_samples):
    items, _ = make_samples(("a", 1, None, True), ("b", 3, None, True))
    with pytest.raises(DatasetError, match=r"'b' with class 3.*Expected 0 to 1 \(good, defect\)"):
        evaluate([(predictor, items)], lambda _: pytest.fail("was read"), progress=False)
