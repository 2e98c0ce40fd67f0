from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from datasets import storage
from datasets.layouts import load_dataset
from datasets.packing import pack
from segdec.errors import ConfigError, DatasetError
from segdec.images import write_png
from training.config import load_experiment
from training.results import evaluate_run
from training.run_data import load_run_data
from training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


@pytest.fixture(scope="module")
def packed(toy_root):
    """The toy set as shards behind a URL."""
    pack(load_dataset("folder", toy_root, toy_root / "splits.txt"), "ram://run-data/toy")
    return "ram://run-data/toy"


@pytest.fixture
def load(tiny_experiment, tmp_path):
    def load(*flags):
        return load_experiment(tiny_experiment, ["--runs", str(tmp_path / "runs"), *flags])

    return load


def from_shards(url):
    return ["--data.layout", "shards", "--data.root", url]


def test_each_photograph_is_read_once_at_the_start(load, toy_root, monkeypatch):
    reads = Counter()
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.update([path]) or read_bytes(path))
    load_run_data(load())
    photographs = [path for path in toy_root.rglob("*.png") if "masks" not in path.parts]
    assert {reads[path] for path in photographs} == {1}
    masks = (toy_root / "masks").rglob("*.png")
    assert {reads[path] for path in masks} == {2}  # the layout compares them with the classes


def test_shards_are_not_read_at_the_start(load, packed, monkeypatch):
    from_files = load_run_data(load())
    monkeypatch.setattr(storage, "read_range", lambda *place: pytest.fail(f"{place} was read"))
    data = load_run_data(load(*from_shards(packed)))
    assert data.fingerprint == from_files.fingerprint
    assert data.shape == from_files.shape
    assert data.model == from_files.model


def test_grey_stored_as_colour_is_judged_by_its_pixels(load, toy_root, tmp_path, monkeypatch):
    root = tmp_path / "coloured"
    dataset = load_dataset("folder", toy_root, toy_root / "splits.txt")
    for record in dataset.records:
        target = root / record.image_path.relative_to(toy_root)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_png(target, np.full((32, 32, 3), 90, np.uint8))
    (root / "masks").symlink_to(toy_root / "masks")
    url = "ram://run-data/coloured"
    pack(load_dataset("folder", root, toy_root / "splits.txt"), url)
    reads = []
    access = storage.read_range
    monkeypatch.setattr(storage, "read_range", lambda *place: reads.append(place) or access(*place))
    assert load_run_data(load(*from_shards(url))).shape == (32, 32, 1)
    assert len(reads) == len([r for r in dataset.records if r.split in ("train", "val")])
    reads.clear()
    assert load_run_data(load(*from_shards(url), "--input.convert-color")).shape == (32, 32, 1)
    config = load(*from_shards(url))
    colour = config.network.model_copy(update={"input_channels": 3})
    assert load_run_data(config.model_copy(update={"network": colour})).shape == (32, 32, 3)
    assert reads == []


def test_training_from_shards_is_bit_identical(load, packed, finished_run, toy_root, read_weights):
    splits = ["--data.splits", str(toy_root / "splits.txt")]
    run = Trainer(load(*splits, *from_shards(packed))).run().path
    expected = read_weights(finished_run)
    for name, value in read_weights(run).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    for file in ("result.json", "splits.txt"):
        assert (run / file).read_text() == (finished_run / file).read_text()
    evaluate_run(finished_run, "test")
    evaluate_run(run, "test")
    assert (run / "predictions.csv").read_text() == (finished_run / "predictions.csv").read_text()


def test_the_cache_changes_no_example(load, tmp_path):
    (tmp_path / "cache").mkdir()
    flags = ["--data.cache-mb", "0", "--data.cache-folder", str(tmp_path / "cache")]
    one, other = load_run_data(load()).examples, load_run_data(load(*flags)).examples
    for index in range(len(one)):
        np.testing.assert_array_equal(one[index].image, other[index].image)
        np.testing.assert_array_equal(one[index].target, other[index].target)


def test_a_cache_folder_that_is_missing_is_refused(load, tmp_path):
    with pytest.raises(ConfigError, match=r"data\.cache_folder = '.*nowhere'"):
        load_run_data(load("--data.cache-folder", str(tmp_path / "nowhere")))


def test_a_url_survives_the_configuration(load, packed):
    assert load("--data.root", "gs://bucket/parts").data.root == "gs://bucket/parts"
    with pytest.raises(DatasetError, match=r"'folder' reads folders of this machine, not ram://run-data/toy"):
        load_run_data(load("--data.root", packed))
