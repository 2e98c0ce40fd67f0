import json
import shutil
import tracemalloc
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from datasets import check_cache, file_systems, near_duplicates
from datasets.layouts.toy import write_toy
from datasets.loading import load_dataset
from datasets.sample import DataSetItem
from datasets.sharding.item_table import ItemTable, PackedItem
from datasets.sharding.packing import pack
from datasets.sharding.shard_index import PackedShard, ShardIndex, write_index
from datasets.splitting import write_splits
from segdec.artifact import TrainingPhotographs
from segdec.errors import DatasetError, SegdecError
from segdec.images import read_image, read_mask, write_png
from segdec.inference.preprocessing import prepare_mask
from training.data.run_data import item_reader, list_split_items, load_run_data
from training.experiment_file import load_experiment
from training.run.folder import RunFolder


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


SMALL = ["--input.policy", "resize", "--input.height", "16", "--input.width", "16"]


def test_masks_can_be_dilated_before_they_are_scaled(load):
    """The examples then hold the dilated masks; otherwise masks are dilated after augmentation."""
    flags = [*SMALL, "--target.dilation-px", "7", "--target.dilation-shape", "square"]
    plain, grown = (load_run_data(load(*flags, "--target.dilation-at", at)) for at in ("input", "photograph"))
    for index, item in enumerate(plain.dataset.of_split("train")):
        if item.label:
            mask = read_mask(item.mask_file)
            expected = cv2.dilate(mask, np.ones((7, 7), np.uint8))
            np.testing.assert_array_equal(plain.examples[index].mask, prepare_mask(mask, plain.model.input))
            np.testing.assert_array_equal(
                grown.examples[index].mask, prepare_mask(expected, plain.model.input)
            )


def test_images_are_read_once_at_the_first_start_and_not_at_the_second(load, toy_root, monkeypatch, reads):
    """A start of the same run, or of another run on the same data."""
    monkeypatch.setattr(check_cache, "MIN_FILE_AGE_S", -3600.0)
    images = set(toy_root.rglob("*.png"))
    first = load_run_data(load())
    assert {reads[path] for path in images} == {1}
    first.check_cache.save(parents=True)
    reads.clear()
    again = load_run_data(load("--name", "other", *SMALL))
    assert not images & set(reads)
    assert again.fingerprint == first.fingerprint
    assert again.dataset == first.dataset
    assert again.training_photographs == first.training_photographs == TrainingPhotographs.of([(32, 32)], [8])
    load_run_data(load("--data.recheck"))
    assert images <= set(reads)


def test_masks_of_class_indices_are_the_same_in_an_evaluation(load, toy_root, tmp_path):
    root = tmp_path / "indices"
    shutil.copytree(toy_root, root)
    for number, path in enumerate(sorted((root / "masks").rglob("*.png"))):
        mask = read_mask(path)
        mask[mask > 0] = 1 + number % 2
        mask[0, :2] = 3, 255
        write_png(path, mask)
    config = load("--data.root", str(root))
    data = load_run_data(config)
    (note,) = data.dataset.notes
    assert "class indices" in note
    write_splits(tmp_path / "splits.txt", data.dataset.items)
    listed = list_split_items(config, tmp_path / "splits.txt", data.dataset.classes, "test")
    for item, own in zip(listed, data.dataset.of_split("test"), strict=True):
        assert (item.mask_file, item.mask_values) == (own.mask_file, own.mask_values)
        assert item.label == 0 or item_reader(config)(item).ignored[0, 1]


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
    assert data.training_photographs == TrainingPhotographs.of([(32, 32)], [])  # the index has no depth
    assert data.model == from_files.model


def test_index_of_shards_needs_little_memory(load, tmp_path):
    """An object for each item would need ten times as much."""
    count, image, shape = 10_000, Path("image"), (512, 1408, 1)

    def packed(number):
        digests, split = (f"{number:064x}",), "train" if number % 5 else "val"
        files, label = (image, None if number % 8 else image), int(number % 8 == 0)
        name, both = f"line/{number:09}", digests + digests * label
        item = DataSetItem(name, *files, label, str(number), split, shape=shape, digests=both)
        return PackedItem(item, shard=0, offset=number, bytes=1)

    (tmp_path / "all.tfrecord").write_bytes(bytes(count))
    shards = (PackedShard(name="all.tfrecord", bytes=count),)
    write_index(
        str(tmp_path), ShardIndex(("good", "defect"), shards, ItemTable.from_items(map(packed, range(count))))
    )
    config = load(*from_shards(str(tmp_path)))
    config = config.model_copy(update={"data": config.data.model_copy(update={"splits": None})})
    tracemalloc.start()
    data = load_run_data(config)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(data.dataset.items) == count
    assert held < 200 * count
    assert peak < 600 * count


def test_grey_stored_in_three_channels_is_detected(load, toy_root, tmp_path):
    """Colour files are read to learn whether they are grey, unless colour is converted."""
    root = tmp_path / "coloured"
    shutil.copytree(toy_root, root)
    images = [path for path in root.rglob("*.png") if "masks" not in path.parts]
    for number, path in enumerate(images):
        write_png(path, np.full((32, 32, 3), 90 + number, np.uint8))
    url = "ram://run-data/coloured"
    pack(load_dataset("folder", root, root / "splits.txt"), url)
    assert load_run_data(load(*at(root))).shape == (32, 32, 1)
    assert load_run_data(load(*from_shards(url))).shape == (32, 32, 1)
    write_png(images[0], np.full((32, 32, 3), (9, 99, 199), np.uint8))
    with pytest.raises(DatasetError, match="colour"):
        load_run_data(load(*at(root)))
    assert load_run_data(load(*at(root), "--input.convert-color")).shape == (32, 32, 1)


def check_same_examples(ours, theirs):
    assert len(ours.examples) == len(theirs.examples)
    for one, other in zip(ours.examples, theirs.examples, strict=True):
        np.testing.assert_array_equal(one.image, other.image)
        np.testing.assert_array_equal(one.mask, other.mask)


def test_examples_of_shards_are_those_of_the_files(load, packed):
    shards, files = load(*from_shards(packed)), load()
    ours, theirs = load_run_data(shards), load_run_data(files)
    check_same_examples(ours, theirs)
    pairs = zip(ours.dataset.of_split("test"), theirs.dataset.of_split("test"), strict=True)
    for one, other in pairs:  # which the evaluation reads
        assert (one.name, one.label, one.group) == (other.name, other.label, other.group)
        np.testing.assert_array_equal(item_reader(shards)(one).image, item_reader(files)(other).image)


def test_examples_of_12_bit_images_are_those_of_8_bit(load, toy_root, tmp_path):
    root = tmp_path / "deep"
    shutil.copytree(toy_root, root)
    for item in load_dataset("folder", toy_root).items:
        pixels = read_image(item.image_file).pixels.astype(float)
        # Comes back exactly: 16 steps for each of 8 bits.
        deep = np.rint(pixels * 4095 / 255).astype(np.uint16)
        cv2.imwrite(str(root / item.image_file.relative_to(toy_root)), deep)
    with pytest.raises(SegdecError, match=r"up to 65535; set input\.white_level in the experiment"):
        load_run_data(load(*at(root)))
    data = load_run_data(load(*at(root), "--input.white-level", "4095"))
    check_same_examples(data, load_run_data(load()))
    assert data.model.input.white_level == 4095


def at(root):
    return ["--data.root", str(root), "--data.splits", str(root / "splits.txt")]


def test_broken_files_are_reported_at_once_or_skipped_and_listed(load, toy_root, tmp_path, capsys):
    """A different problem in each split, and a mask without an image."""
    root = tmp_path / "damaged"
    shutil.copytree(toy_root, root)
    dataset = load_dataset("folder", root, root / "splits.txt")
    splits = ("train", "val", "test")
    train, val, test = (next(r for r in dataset.of_split(split) if r.label) for split in splits)
    train.image_file.write_bytes(b"")
    val.mask_file.unlink()
    write_png(test.mask_file, np.zeros((32, 32), np.uint8))
    (root / "masks/stray.png").write_bytes(b"")
    names = [train.name, val.name, test.name]
    with pytest.raises(DatasetError, match="has 4 problems") as error:
        load_run_data(load(*at(root)))
    for word in [*names, "stray.png", "is empty", "has no mask", "marks no defect", "--data.skip-broken"]:
        assert word in str(error.value)
    config = load(*at(root), "--data.skip-broken")
    data = load_run_data(config)
    assert not {item.name for item in data.dataset.items} & set(names)
    folder = RunFolder.open(config, data, fresh=False)
    folder.close()
    listed = (folder.path / "ignored.txt").read_text()
    assert listed.count("\n") == 4
    assert "warning: 4 problems of the data set skipped, see" in capsys.readouterr().err
    assert all(name in listed and name not in folder.splits.read_text() for name in names)


@pytest.mark.parametrize("near", [False, True])
def test_duplicates_in_two_splits(load, toy_root, tmp_path, monkeypatch, capsys, near):
    """A duplicate is an error, a near one a warning, unless they are allowed."""
    monkeypatch.setattr(check_cache, "MIN_FILE_AGE_S", -3600.0)
    root = tmp_path / "leaking"
    shutil.copytree(toy_root, root)
    dataset = load_dataset("folder", root, root / "splits.txt")
    one, other = (next(r for r in dataset.of_split(split) if not r.label) for split in ("train", "test"))
    picture = read_image(one.image_file).pixels
    write_png(other.image_file, (picture * 0.7 + 9).astype(np.uint8) if near else picture)
    allow = ["--data.allowed-leaks", json.dumps([one.name, other.name])]
    pack(dataset, url := f"ram://run-data/leaking-{near}")
    if not near:
        for source in (at(root), from_shards(url)):
            with pytest.raises(DatasetError, match=r"1 picture is in different splits") as error:
                load_run_data(load(*source))
            assert all(f"{item.name} (" in str(error.value) for item in (one, other))
        assert load_run_data(load(*at(root), *allow))
        return
    data = load_run_data(load(*at(root)))
    warnings = capsys.readouterr().err
    assert "warning: 2 photographs have a near duplicate in another split" in warnings
    assert all(place in warnings for place in (f"{one.name} (train)", f"{other.name} (test)"))
    data.check_cache.save(parents=True)
    monkeypatch.setattr("datasets.item_check.decode", lambda *_, **__: pytest.fail("was decoded"))
    load_run_data(load(*at(root)))
    assert capsys.readouterr().err == warnings
    load_run_data(load(*at(root), *allow))
    load_run_data(load(*from_shards(url)))  # shards are not read at a start
    assert "near duplicate" not in capsys.readouterr().err


def test_with_folds_and_a_test_split_near_duplicates_are_searched_once(load, tiny_encoder):
    near_duplicates._search.cache_clear()
    flags = ["--network.encoder", tiny_encoder, "--network.heads", "2"]
    flags += [f"--augmentation.{name}=0" for name in ("brightness", "contrast", "shift", "noise")]
    data = load_run_data(load(*flags))
    assert {item.split for item in data.dataset.items} == {"train", "test"}
    assert near_duplicates._search.cache_info().misses == 1


def test_settings_of_the_data_take_effect(load, tmp_path):
    root = tmp_path / "four"
    write_toy(root, 24, size=32, classes=4)
    for path in (root / "masks").rglob("*.png"):
        write_png(path, read_image(path).pixels // 255 * 90 + 10)
    with pytest.raises(DatasetError, match=r"has 2 values: 10, 100"):
        load_run_data(load(*at(root)))
    flags = [*at(root), "--data.mask-threshold", "50"]
    data = load_run_data(load(*flags, "--data.merge-defects"))
    assert data.model.classes == ("good", "defect")
    assert {item.mask_threshold for item in data.dataset.items if item.label} == {50}
    keep_lines(root / "splits.txt", lambda line: not line.startswith("train") or "good/" in line)
    with pytest.raises(DatasetError, match=r"\(scratch, spot, stain\).*data.merge_defects = true"):
        load_run_data(load(*flags, "--augmentation.synthetic", "1"))


def keep_lines(path, kept):
    path.write_text("\n".join(line for line in path.read_text().splitlines() if kept(line)))


@pytest.mark.parametrize(("split", "omitted"), [("train", "defect/"), ("val", "defect/"), ("train", "good/")])
def test_each_split_needs_good_images_and_defective_or_synthetic_ones(
    load, toy_root, tmp_path, split, omitted
):
    path = tmp_path / "splits.txt"
    shutil.copy(toy_root / "splits.txt", path)
    keep_lines(path, lambda line: not (line.startswith(split) and omitted in line))
    flags, synthetic = ["--data.splits", str(path)], ["--augmentation.synthetic", "0.1"]
    expected = (
        rf"split '{split}' has \d+ good and 0 defective .*network.memory above 0 and network.heads to 0, or"
    )
    if omitted == "good/":
        with pytest.raises(DatasetError, match=r"split 'train' has 0 good and \d+ defective"):
            load_run_data(load(*flags, *synthetic))
        return
    with pytest.raises(DatasetError, match=expected):
        load_run_data(load(*flags, "--augmentation.transplant", "1"))
    data = load_run_data(load(*flags, *synthetic))
    assert not any(item.label for item in data.dataset.of_split(split))
    assert data.model.classes == ("good", "defect")
