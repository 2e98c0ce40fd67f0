"""What a batch holds depends on seed, stage and step alone."""

import re

import numpy as np
import pytest

from segdec.errors import ConfigError
from tests import forked
from training.config import AugmentationConfig, StageConfig, TargetConfig
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from training.data.input_pipeline import InputPipeline, InputShard
from training.data.reading_pool import ReadingPool
from training.data.run_data import load_run_data

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

BATCH = 8


CHANGES = AugmentationConfig(
    rotate=True, shift=0.1, scale=0.2, brightness=0.1, contrast=0.2, noise=0.02, blur_px=1.0
)


SOME = CHANGES.model_copy(update={"synthetic": 0.5, "transplant": 0.5})


@pytest.fixture(scope="module")
def config(tiny_experiment):
    return load_experiment(tiny_experiment).model_copy(update={"batch_size": BATCH})


@pytest.fixture(scope="module")
def data(config):
    return load_run_data(config)


@pytest.fixture(scope="module")
def make(config, data):
    def make(seed=0, threads=2, **changes):
        changed = config.model_copy(update={"seed": seed, "augmentation": CHANGES, **changes})
        return InputPipeline(data.examples, data.shape, changed, ReadingPool(threads))

    return make


def collect(batches):
    return list(batches.as_numpy_iterator())


def check_equal(ours, theirs):
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_a_batch_does_not_depend_on_the_first_step(make):
    whole = collect(make(augmentation=SOME).batches(1, 0, 5))
    assert len(whole) == 5
    later = collect(make(augmentation=SOME, threads=1).batches(1, 3, 5))
    for ours, theirs in zip(later, whole[3:], strict=True):
        check_equal(ours, theirs)
    assert any((whole[0]["image"] != other["image"]).any() for other in whole[1:])


@pytest.mark.slow
def test_op_determinism_leaves_the_reads_parallel(tiny_experiment, config, make, tmp_path):
    """As on a GPU, where it is on: tf.data then takes whatever calls Python one by one."""
    flags = ["--batch-size", str(BATCH)]
    driver = "tests.training.data.op_determinism_driver"
    done = forked.run(driver, tiny_experiment, tmp_path / "batches.npz", *flags)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "batches.npz") as found:
        expected = collect(make(augmentation=config.augmentation).batches(0, 0, 3))
        check_equal(found, {name: np.stack([batch[name] for batch in expected]) for name in expected[0]})


@pytest.mark.parametrize(("seed", "stage"), [(1, 1), (0, 2)])
def test_seed_and_stage_decide(make, seed, stage):
    ours, theirs = collect(make(seed).batches(stage, 0, 1)), collect(make().batches(1, 0, 1))
    assert (ours[0]["image"] != theirs[0]["image"]).any()


@pytest.mark.parametrize(("processes", "replicas"), [(1, 4), (2, 2), (8, 1)])
def test_shards_form_the_global_batch(make, processes, replicas):
    """Equal for any number of workers and replicas, in order."""
    pipeline = make(augmentation=SOME)
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
    names, batch = make().global_batch(0, 4)
    check_equal(batch, collect(make().batches(0, 3, 4))[0])
    labels = {record.name: record.label for record in data.dataset.records}
    assert [labels[name] for name in names] == batch["label"].tolist()
    first, part = make().global_batch(0, 4, 3)
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


@pytest.fixture
def supervise(tiny_experiment, data, tmp_path):
    """The data with that many defective training photographs of which the class alone is known."""
    defective = [record.name for record in data.dataset.of_split("train") if record.label]

    def supervise(unmasked):
        names = defective[: len(defective) if unmasked == "all" else unmasked]
        path = tmp_path / "supervision.txt"
        path.write_text("".join(f"label {name}\n" for name in names))
        config = load_experiment(tiny_experiment, ["--data.supervision", str(path)])
        return set(names), config, load_run_data(config)

    return supervise


def test_the_mask_is_trained_on_known_masks(supervise):
    """Photographs without a mask wait for the decision, whose stages draw them as all others."""
    unmasked, config, data = supervise(2)
    pipeline = InputPipeline(data.examples, data.shape, config, ReadingPool(2))
    segment, joint = ([pipeline.global_batch(stage, step) for step in range(1, 9)] for stage in (0, 2))
    assert not unmasked & {name for names, _ in segment for name in names}
    assert all(batch["weight"].min() == 1 for _, batch in segment)
    assert all(batch["label"].tolist() == [1, 0, 1, 0] for _, batch in segment)
    drawn = {name: batch["weight"][row].max() for names, batch in joint for row, name in enumerate(names)}
    assert {name for name, weight in drawn.items() if weight == 0} == unmasked


def test_a_stage_without_masks_is_refused(supervise):
    _, config, data = supervise("all")
    with pytest.raises(ConfigError, match=re.escape("set stages.segment.steps = 0")):
        InputPipeline(data.examples, data.shape, config, ReadingPool(2))
    stages = config.stages.model_copy(update={"segment": StageConfig()})
    decided = config.model_copy(update={"stages": stages})
    assert (
        InputPipeline(data.examples, data.shape, decided, ReadingPool(2))
        .global_batch(2, 1)[1]["weight"]
        .max()
        == 1
    )


def test_batches_of_good_photographs(tiny_experiment, toy_root, tmp_path):
    lines = [line for line in (toy_root / "splits.txt").read_text().splitlines() if "good/" in line]
    (tmp_path / "splits.txt").write_text("\n".join(lines))
    given = ["--data.splits", str(tmp_path / "splits.txt"), "--augmentation.synthetic", "0.5"]
    config = load_experiment(tiny_experiment, given)
    data = load_run_data(config)
    assert not any(data.examples.labels)
    pipeline = InputPipeline(data.examples, data.shape, config, ReadingPool(2))
    for stage in range(3):
        for batch in collect(pipeline.batches(stage, 0, 2)):
            assert batch["label"].tolist() == [1, 0] * 2
            assert [bool(target.any()) for target in batch["target"]] == [True, False] * 2
            assert (batch["weight"] == 1).all()
