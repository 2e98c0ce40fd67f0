"""What a batch holds depends on seed, stage and step alone."""

import numpy as np
import pytest

from training.config import AugmentationConfig, load_experiment

pytest.importorskip("tensorflow")

from training.input_pipeline import InputPipeline, Share
from training.run_data import load_run_data

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

BATCH = 8


@pytest.fixture(scope="module")
def data(tiny_experiment):
    return load_run_data(load_experiment(tiny_experiment))


@pytest.fixture(scope="module")
def make(data):
    def make(seed=0, threads=2):
        changes = AugmentationConfig(brightness=0.1, contrast=0.2)
        return InputPipeline(data.examples, data.shape, changes, BATCH, seed, threads)

    return make


def collect(batches):
    return list(batches.as_numpy_iterator())


def check_equal(ours, theirs):
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_a_batch_is_the_same_whenever_it_is_asked_for(make):
    whole = collect(make().batches(1, 0, 5))
    assert len(whole) == 5
    later = collect(make(threads=1).batches(1, 3, 5))
    for ours, theirs in zip(later, whole[3:], strict=True):
        check_equal(ours, theirs)
    assert any((whole[0]["image"] != other["image"]).any() for other in whole[1:])


@pytest.mark.parametrize(("seed", "stage"), [(1, 1), (0, 2)])
def test_seed_and_stage_decide(make, seed, stage):
    ours, theirs = collect(make(seed).batches(stage, 0, 1)), collect(make().batches(1, 0, 1))
    assert (ours[0]["image"] != theirs[0]["image"]).any()


@pytest.mark.parametrize(("processes", "replicas"), [(1, 1), (1, 4), (2, 1), (2, 2), (4, 2), (8, 1)])
def test_shares_put_together_are_the_global_batch(make, processes, replicas):
    """Equal for any number of workers and replicas, in order."""
    whole = collect(make().batches(0, 2, 4))
    shares = [
        collect(make().batches(0, 2, 4, Share(index, processes, replicas))) for index in range(processes)
    ]
    for step, batch in enumerate(whole):
        rows = [part for share in shares for part in share[step * replicas : (step + 1) * replicas]]
        assert {len(row["label"]) for row in rows} == {BATCH // processes // replicas}
        check_equal({name: np.concatenate([row[name] for row in rows]) for name in batch}, batch)


def test_a_batch_can_be_had_again_with_its_names(make, data):
    """So that the images of a step that went wrong can be told."""
    names, batch = make().global_batch(0, 4)
    check_equal(batch, collect(make().batches(0, 3, 4))[0])
    labels = {record.name: record.label for record in data.dataset.records}
    assert [labels[name] for name in names] == batch["label"].tolist()
