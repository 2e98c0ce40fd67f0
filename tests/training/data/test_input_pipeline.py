"""What a batch holds depends on seed, stage and step alone."""

import re

import numpy as np
import pytest

from segdec.errors import ConfigError
from training.config import AugmentationConfig, TargetConfig
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from training.data.input_pipeline import InputPipeline, InputShard
from training.data.reading_pool import ReadingPool
from training.data.run_data import load_run_data

BATCH = 8
SOME = AugmentationConfig(
    rotate=True, shift=0.1, scale=0.2, brightness=0.1, noise=0.02, blur_px=1.0, synthetic=0.5, transplant=0.5
)


@pytest.fixture(scope="module")
def config(tiny_experiment):
    return load_experiment(tiny_experiment).model_copy(update={"batch_size": BATCH})


@pytest.fixture(scope="module")
def data(config):
    return load_run_data(config)


@pytest.fixture(scope="module")
def make(config, data):
    def make(seed=0, threads=2, **changes):
        changed = config.model_copy(update={"seed": seed, "augmentation": SOME, **changes})
        return InputPipeline(data.examples, data.shape, changed, ReadingPool(threads))

    return make


def collect(batches):
    return list(batches.as_numpy_iterator())


def check_equal(ours, theirs):
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_a_batch_depends_on_seed_stage_and_step_alone(make):
    whole = collect(make().batches(1, 0, 5))
    assert len(whole) == 5
    later = collect(make(threads=1).batches(1, 3, 5))
    for ours, theirs in zip(later, whole[3:], strict=True):
        check_equal(ours, theirs)
    others = [*whole[1:], *collect(make().batches(2, 0, 1)), *collect(make(1).batches(1, 0, 1))]
    assert all((whole[0]["image"] != other["image"]).any() for other in others)


@pytest.mark.parametrize(("processes", "replicas"), [(1, 4), (2, 2)])
def test_shards_form_the_global_batch(make, processes, replicas):
    """Equal for any number of workers and replicas, in order."""
    pipeline = make()
    whole = collect(pipeline.batches(0, 2, 4))
    shards = [
        collect(pipeline.batches(0, 2, 4, InputShard(index, processes, replicas)))
        for index in range(processes)
    ]
    for step, batch in enumerate(whole):
        rows = [part for shard in shards for part in shard[step * replicas : (step + 1) * replicas]]
        assert {len(row["label"]) for row in rows} == {BATCH // processes // replicas}
        check_equal({name: np.concatenate([row[name] for row in rows]) for name in batch}, batch)


def test_a_batch_can_be_read_again_with_its_names(make, data):
    """For the report of a step that is not finite."""
    plain = AugmentationConfig(shift=0.1)
    names, batch = make(augmentation=plain).global_batch(0, 4)
    check_equal(batch, collect(make(augmentation=plain).batches(0, 3, 4))[0])
    labels = {item.name: item.label for item in data.dataset.items}
    assert [labels[name] for name in names] == batch["label"].tolist()
    first, part = make(augmentation=plain).global_batch(0, 4, 3)
    assert first == names[:3]
    check_equal(part, {name: values[:3] for name, values in batch.items()})


def test_targets_follow_the_augmented_mask(make, config, data):
    """At stride 1 without dilation the target is the mask, and only the mask of the defects."""
    exact = {
        "augmentation": AugmentationConfig(rotate=True),
        "target": TargetConfig(dilation_px=1, weighting="distance", positive_weight=5.0),
        "network": config.network.model_copy(update={"mask_stride": 1}),
    }
    pipeline = make(**exact)
    names, batch = pipeline.global_batch(0, 1)
    masks = {data.examples.name(index): data.examples[index].mask for index in range(len(data.examples))}
    assert batch["target"].shape == batch["weight"].shape == (BATCH, *data.shape[:2], 1)
    for row, name in enumerate(names):
        defective = 0 if masks[name] is None else np.count_nonzero(masks[name])
        assert batch["target"][row].sum() == defective
        assert (batch["weight"][row].max() == 5.0) == (defective > 0) == (batch["label"][row] == 1)
        np.testing.assert_array_equal(
            batch["weight"][row] > 1.0, (batch["weight"][row] * batch["target"][row]) > 1.0
        )


@pytest.mark.parametrize("unmasked", [2, 99])
def test_the_mask_is_trained_on_known_masks(tiny_experiment, data, tmp_path, unmasked):
    """Photographs without a mask wait for the decision, whose stages draw them as all others."""
    defective = [item.name for item in data.dataset.of_split("train") if item.label]
    names, path = set(defective[:unmasked]), tmp_path / "supervision.txt"
    path.write_text("".join(f"label {name}\n" for name in names))
    config = load_experiment(tiny_experiment, ["--data.supervision", str(path)])
    examples = load_run_data(config).examples
    if len(names) == len(defective):
        with pytest.raises(ConfigError, match=re.escape("set stages.segment.steps = 0")):
            InputPipeline(examples, data.shape, config, ReadingPool(2))
        config = load_experiment(tiny_experiment, ["--stages.segment.steps", "0"])
        InputPipeline(examples, data.shape, config, ReadingPool(2))
        return
    pipeline = InputPipeline(examples, data.shape, config, ReadingPool(2))
    segment, joint = ([pipeline.global_batch(stage, step) for step in range(1, 9)] for stage in (0, 2))
    assert not names & {name for drawn, _ in segment for name in drawn}
    assert all(batch["weight"].min() == 1 for _, batch in segment)
    assert all(batch["label"].tolist() == [1, 0, 1, 0] for _, batch in segment)
    weights = {name: batch["weight"][row].max() for drawn, batch in joint for row, name in enumerate(drawn)}
    assert {name for name, weight in weights.items() if weight == 0} == names


def test_a_batch_says_whose_masks_hold_boxes(tiny_experiment, data, tmp_path):
    """Photographs of both in one set; an added defect has a mask."""
    boxed = [item.name for item in data.dataset.of_split("train") if item.label][:2]
    (tmp_path / "supervision.txt").write_text("".join(f"box {name}\n" for name in boxed))
    given = ["--data.supervision", str(tmp_path / "supervision.txt"), "--augmentation.synthetic", "0.5"]
    config = load_experiment(tiny_experiment, given)
    pipeline = InputPipeline(load_run_data(config).examples, data.shape, config, ReadingPool(2))
    rows = [
        row
        for step in range(1, 9)
        for names, batch in [pipeline.global_batch(0, step)]
        for row in zip(names, batch["has_boxes"].tolist(), strict=True)
    ]
    assert {name for name, has_boxes in rows if has_boxes} == set(boxed) < {name for name, _ in rows}


def test_batches_of_good_photographs(tiny_experiment, toy_root, tmp_path):
    lines = [line for line in (toy_root / "splits.txt").read_text().splitlines() if "good/" in line]
    (tmp_path / "splits.txt").write_text("\n".join(lines))
    given = ["--data.splits", str(tmp_path / "splits.txt"), "--augmentation.synthetic", "0.5"]
    config = load_experiment(tiny_experiment, given)
    data = load_run_data(config)
    assert not any(data.examples.labels)
    pipeline = InputPipeline(data.examples, data.shape, config, ReadingPool(2))
    for stage in (0, 2):
        (batch,) = collect(pipeline.batches(stage, 0, 1))
        assert batch["label"].tolist() == [1, 0] * 2
        assert [bool(target.any()) for target in batch["target"]] == [True, False] * 2
        assert (batch["weight"] == 1).all()
