import json
import shutil
import tracemalloc
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from datasets import check_cache, file_systems
from datasets.layouts.toy import write_toy
from datasets.loading import load_dataset
from datasets.sharding.packing import pack
from segdec.errors import DatasetError
from segdec.images import read_image, read_mask, write_png
from segdec.inference.preprocessing import prepare_mask
from tests.shard_index_file import write_index_only
from training.data.run_data import cached_reader, load_run_data, record_reader
from training.evaluate import evaluate_run
from training.experiment_file import load_experiment
from training.run.folder import RunFolder
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


@pytest.fixture
def reads(monkeypatch):
    """Counts the reads of each file."""
    reads, read_bytes = Counter(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.update([path]) or read_bytes(path))
    return reads


def test_each_image_is_read_once_at_the_start(load, toy_root, reads):
    load_run_data(load())
    assert {reads[path] for path in toy_root.rglob("*.png")} == {1}


SMALL = ["--input.policy", "resize", "--input.height", "16", "--input.width", "16"]


def test_masks_can_be_dilated_before_they_are_scaled(load):
    """The examples then hold the dilated masks; otherwise masks are dilated after augmentation."""
    flags = ["--target.dilation-px", "7", "--target.dilation-shape", "square"]
    plain, grown = (
        load_run_data(load(*SMALL, *flags, "--target.dilation-at", place)).examples
        for place in ("input", "photograph")
    )
    config = load(*SMALL, *flags).input
    records = {record.name: record for record in load_run_data(load()).dataset.of_split("train")}
    masked = [index for index in range(len(plain)) if plain[index].mask is not None]
    assert masked
    for index in masked:
        mask = read_mask(records[plain.name(index)].mask_file)
        expected = cv2.dilate(mask, np.ones((7, 7), np.uint8))
        np.testing.assert_array_equal(plain[index].mask, prepare_mask(mask, config))
        np.testing.assert_array_equal(grown[index].mask, prepare_mask(expected, config))
        assert (plain[index].mask != grown[index].mask).any()


def test_second_start_reads_no_image(load, toy_root, monkeypatch, reads):
    """A start of the same run, or of another run on the same data."""
    monkeypatch.setattr(check_cache, "MIN_FILE_AGE_S", -3600.0)
    first = load_run_data(load())
    first.check_cache.save(parents=True)
    images = set(toy_root.rglob("*.png"))
    reads.clear()
    again = load_run_data(load("--name", "other", *SMALL))
    assert not images & set(reads)
    assert again.fingerprint == first.fingerprint
    assert again.dataset == first.dataset
    load_run_data(load("--data.recheck"))
    assert images <= set(reads)


def test_validation_decodes_each_image_once(load, reads):
    data = load_run_data(load())
    read = cached_reader(record_reader(load()), data.cache)
    reads.clear()
    for record in data.dataset.of_split("val"):
        first, again = read(record), read(record)
        assert reads[record.image_file] == 1
        np.testing.assert_array_equal(again.image, first.image)
        np.testing.assert_array_equal(again.mask, first.mask)
        assert (again.name, again.label, again.supervision) == (record.name, record.label, record.supervision)


def test_pixel_limit_applies_to_files_and_shards(load, packed):
    for source in ([], from_shards(packed)):
        assert load_run_data(load("--data.max-pixels", "1024", *source)).shape == (32, 32, 1)
        with pytest.raises(DatasetError, match=r"32 × 32 = 1,024 pixels\. Expected at most 1,023"):
            load_run_data(load("--data.max-pixels", "1023", *source))


def test_shards_are_not_read_at_the_start(load, packed, monkeypatch):
    from_files = load_run_data(load())
    monkeypatch.setattr(file_systems, "read_range", lambda *place: pytest.fail(f"{place} was read"))
    data = load_run_data(load(*from_shards(packed)))
    assert data.fingerprint == from_files.fingerprint
    assert data.shape == from_files.shape
    assert data.model == from_files.model


def test_index_of_shards_needs_little_memory(load, tmp_path):
    """An object for each record would need ten times as much."""
    count = 20_000
    write_index_only(tmp_path / "many", count)
    config = load(*from_shards(str(tmp_path / "many" / "set")))
    config = config.model_copy(update={"data": config.data.model_copy(update={"splits": None})})
    tracemalloc.start()
    data = load_run_data(config)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(data.dataset.records) == count
    assert held < 200 * count
    assert peak < 500 * count


def test_grey_stored_in_three_channels_is_detected(load, toy_root, tmp_path, monkeypatch):
    root = tmp_path / "coloured"
    dataset = load_dataset("folder", toy_root, toy_root / "splits.txt")
    for number, record in enumerate(dataset.records):
        target = root / record.image_file.relative_to(toy_root)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_png(target, np.full((32, 32, 3), 90 + number, np.uint8))
    (root / "masks").symlink_to(toy_root / "masks")
    url = "ram://run-data/coloured"
    pack(load_dataset("folder", root, toy_root / "splits.txt"), url)
    reads = []
    access = file_systems.read_range
    monkeypatch.setattr(file_systems, "read_range", lambda *place: reads.append(place) or access(*place))
    assert load_run_data(load(*from_shards(url))).shape == (32, 32, 1)
    checked = [r for r in dataset.records if r.split is not None]
    assert len(reads) == len(checked) + len(dataset.of_split("train"))  # once more to be prepared and kept
    reads.clear()
    assert load_run_data(load(*from_shards(url), "--input.convert-color")).shape == (32, 32, 1)
    config = load(*from_shards(url))
    colour = config.network.model_copy(update={"input_channels": 3})
    assert load_run_data(config.model_copy(update={"network": colour})).shape == (32, 32, 3)
    assert reads == []


@pytest.mark.slow
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


@pytest.fixture
def damaged(toy_root, tmp_path):
    """A copy of the toy set with a different problem in each split, and a mask without an image."""
    root = tmp_path / "damaged"
    shutil.copytree(toy_root, root)
    dataset = load_dataset("folder", root, root / "splits.txt")
    train, val, test = (
        next(r for r in dataset.of_split(split) if r.label) for split in ("train", "val", "test")
    )
    train.image_file.write_bytes(b"")
    val.mask_file.unlink()
    write_png(test.mask_file, np.zeros((32, 32), np.uint8))
    (root / "masks/stray.png").write_bytes(b"")
    return root, [train.name, val.name, test.name]


def at(root):
    return ["--data.root", str(root), "--data.splits", str(root / "splits.txt")]


def test_all_problems_are_reported_at_once(load, damaged):
    root, names = damaged
    with pytest.raises(DatasetError, match="has 4 problems") as error:
        load_run_data(load(*at(root)))
    for word in [*names, "stray.png", "is empty", "has no mask", "marks no defect", "--data.skip-broken"]:
        assert word in str(error.value)


def test_broken_files_are_skipped_and_listed(load, damaged, capsys):
    root, names = damaged
    config = load(*at(root), "--data.skip-broken")
    data = load_run_data(config)
    assert len(data.dataset.records) == 21
    assert not {record.name for record in data.dataset.records} & set(names)
    folder = RunFolder.open(config, data, fresh=False)
    folder.close()
    lines = (folder.path / "left_out.txt").read_text().splitlines()
    assert len(lines) == 4
    assert "warning: 4 problems of the data set skipped, see" in capsys.readouterr().err
    for name in names:
        assert sum(name in line for line in lines) == 1
        assert name not in folder.splits.read_text()


@pytest.fixture
def leaking(toy_root, tmp_path):
    """A copy of the toy set, and a good record of train and of test."""
    root = tmp_path / "leaking"
    shutil.copytree(toy_root, root)
    dataset = load_dataset("folder", root, root / "splits.txt")
    one, other = (next(r for r in dataset.of_split(split) if not r.label) for split in ("train", "test"))
    return root, dataset, one, other


def test_duplicate_in_two_splits_is_rejected_unless_allowed(load, leaking):
    root, dataset, one, other = leaking
    shutil.copy(one.image_file, other.image_file)
    with pytest.raises(DatasetError, match=r"1 picture is in different splits") as error:
        load_run_data(load(*at(root)))
    assert f"{one.name} (" in str(error.value)
    assert f"{other.name} (" in str(error.value)
    assert load_run_data(load(*at(root), "--data.allowed-leaks", json.dumps([one.name, other.name])))
    pack(dataset, "ram://run-data/leaking")
    with pytest.raises(DatasetError, match=r"1 picture is in different splits"):
        load_run_data(load(*from_shards("ram://run-data/leaking")))


def test_near_duplicates_in_two_splits_cause_a_warning_unless_allowed(load, leaking, monkeypatch, capsys):
    """Shards are not read at a start."""
    monkeypatch.setattr(check_cache, "MIN_FILE_AGE_S", -3600.0)
    root, dataset, one, other = leaking
    write_png(other.image_file, (read_image(one.image_file).pixels * 0.7 + 9).astype(np.uint8))
    places = sorted(f"{record.name} ({split})" for record, split in ((one, "train"), (other, "test")))
    data = load_run_data(load(*at(root)))
    words = capsys.readouterr().err
    assert "warning: 2 photographs have a near duplicate in another split" in words
    assert all(place in words for place in places)
    data.check_cache.save(parents=True)
    monkeypatch.setattr("datasets.checking.decode", lambda *_, **__: pytest.fail("was decoded"))
    load_run_data(load(*at(root)))
    assert capsys.readouterr().err == words
    monkeypatch.undo()
    load_run_data(load(*at(root), "--data.allowed-leaks", json.dumps([one.name, other.name])))
    assert "near duplicate" not in capsys.readouterr().err
    pack(dataset, "ram://run-data/exposed")
    load_run_data(load(*from_shards("ram://run-data/exposed")))
    assert "near duplicate" not in capsys.readouterr().err


def test_settings_of_the_data_take_effect(load, tmp_path):
    root = tmp_path / "four"
    write_toy(root, 24, size=32, classes=4)
    for path in (root / "masks").rglob("*.png"):
        write_png(path, read_image(path).pixels // 255 * 90 + 10)
    with pytest.raises(DatasetError, match=r"has 2 values: 10, 100"):
        load_run_data(load(*at(root)))
    data = load_run_data(load(*at(root), "--data.mask-threshold", "50", "--data.merge-defects"))
    assert data.model.classes == ("good", "defect")
    assert {record.mask_threshold for record in data.dataset.records if record.label} == {50}


@pytest.fixture
def splits_without(toy_root, tmp_path):
    """Writes the split file of the toy set without the images of a class in one split."""

    def write(split, folder):
        lines = (toy_root / "splits.txt").read_text().splitlines()
        kept = [line for line in lines if not (line.startswith(split) and f"{folder}/" in line)]
        path = tmp_path / "some.txt"
        path.write_text("\n".join(kept))
        return ["--data.splits", str(path)]

    return write


@pytest.mark.parametrize("split", ["train", "val"])
def test_split_of_good_images_needs_synthetic_defects(load, splits_without, split):
    flags = splits_without(split, "defect")
    expected = rf"split '{split}' has \d+ good and 0 defective .*set augmentation.synthetic above 0"
    with pytest.raises(DatasetError, match=expected):
        load_run_data(load(*flags))
    with pytest.raises(DatasetError, match=expected):
        load_run_data(load(*flags, "--augmentation.transplant", "1"))
    data = load_run_data(load(*flags, "--augmentation.synthetic", "0.1"))
    assert not any(record.label for record in data.dataset.of_split(split))
    assert data.model.classes == ("good", "defect")


def test_good_images_are_required(load, splits_without):
    with pytest.raises(DatasetError, match=r"split 'train' has 0 good and \d+ defective"):
        load_run_data(load(*splits_without("train", "good"), "--augmentation.synthetic", "1"))


def test_synthetic_defects_do_not_distinguish_several_classes(load, tmp_path):
    root = tmp_path / "own"
    random = np.random.default_rng(0)
    for name in ("good/a", "good/b", "good/c", "dent/d", "scratch/e"):
        for path in (root / f"{name}.png", root / "masks" / f"{name}.png"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_png(path, random.integers(0, 255, (32, 32, 1)).astype(np.uint8))
    for name in ("dent/d", "scratch/e"):
        write_png(root / "masks" / f"{name}.png", np.eye(32, dtype=np.uint8)[..., None] * 255)
    shutil.rmtree(root / "masks" / "good")
    splits = tmp_path / "splits.txt"
    splits.write_text("train good/a\ntrain good/b\nval good/c\ntest dent/d\ntest scratch/e\n")
    flags = ["--data.root", str(root), "--data.splits", str(splits), "--augmentation.synthetic", "1"]
    with pytest.raises(DatasetError, match=r"\(dent, scratch\).*data.merge_defects = true"):
        load_run_data(load(*flags))
    assert load_run_data(load(*flags, "--data.merge-defects")).model.classes == ("good", "defect")
