import json
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from datasets import file_systems
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import is_unlocalized
from datasets.sharding.packing import pack
from segdec.errors import DatasetError, MissingExtraError

SHARD = "train-00000-of-00001.tfrecord"


@pytest.fixture
def packed(folder_root, tmp_path):
    root = tmp_path / "packed"
    pack(load_dataset("folder", folder_root), str(root))
    return root


def edit(root, change):
    index = json.loads((root / "index.json").read_text())
    change(index)
    (root / "index.json").write_text(json.dumps(index))


def equal(one, other):
    return np.array_equal(one.image, other.image) and np.array_equal(one.mask, other.mask)


def test_no_flipped_byte_gives_wrong_pixels(packed):
    items = load_dataset("shards", packed).items
    expected = [read(item) for item in items]
    whole = (packed / SHARD).read_bytes()
    noticed, positions = 0, range(0, len(whole), 5)
    for position in positions:
        flipped = bytes([whole[position] ^ 0x10])
        (packed / SHARD).write_bytes(whole[:position] + flipped + whole[position + 1 :])
        for item, sample in zip(items, expected, strict=True):
            try:
                assert equal(read(item), sample)
            except DatasetError as error:
                noticed += 1
                assert str(packed / SHARD) in str(error)
                assert f"record '{item.name}'" in str(error)
    assert noticed > 0.6 * len(positions)  # the rest: names and the frames of TFRecord, which hold no pixels


def test_reading_an_item_takes_one_access(packed, monkeypatch):
    item = next(r for r in load_dataset("shards", packed).items if r.mask_file is not None)
    accesses = []
    access = file_systems.read_range
    monkeypatch.setattr(file_systems, "read_range", lambda *place: accesses.append(place) or access(*place))
    sample = read(item)
    assert sample.mask.any()
    assert len(accesses) == 1
    assert item.mask_file.read_bytes()
    assert len(accesses) == 2


def test_a_cut_shard_is_named_with_both_sizes(packed):
    size = (packed / SHARD).stat().st_size
    (packed / SHARD).write_bytes((packed / SHARD).read_bytes()[:-9])
    with pytest.raises(DatasetError, match=rf"{SHARD} has {size - 9} bytes. Expected {size} bytes"):
        load_dataset("shards", packed)


def test_a_newer_format_says_so(packed):
    edit(packed, lambda index: index.update(version=5, more="things"))
    with pytest.raises(DatasetError, match=r"index.json has the format version 5; .*versions up to 4"):
        load_dataset("shards", packed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda index: index.pop("classes"), "classes"),
        (lambda index: index["classes"].pop(), "unknown shard or class"),
        (lambda index: index["shards"][0].update(bytes=9), "beyond the end"),
        (lambda index: index["shards"][0].update(name="../away"), r"shards\.0\.name"),
        (lambda index: index.update(records=10**6), "smaller"),
    ],
)
def test_a_damaged_index_is_refused(packed, change, words):
    edit(packed, change)
    with pytest.raises(DatasetError, match=rf"index.json is damaged.*{words}"):
        load_dataset("shards", packed)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"?" + data[1:]])
def test_a_damaged_table_is_refused(packed, damage):
    table = packed / "records.table"
    table.write_bytes(damage(table.read_bytes()))
    with pytest.raises(DatasetError, match=r"records\.table is damaged, or does not belong to the index"):
        load_dataset("shards", packed)
    table.unlink()
    with pytest.raises(DatasetError, match=r"records\.table cannot be read"):
        load_dataset("shards", packed)


def test_what_is_asked_about_all_items_is_what_they_say(folder_root, tmp_path):
    """Answered by the table, without making any item."""
    supervision = tmp_path / "supervision.txt"
    supervision.write_text("label scratch\n")
    (folder_root / "splits.txt").write_text("train good\nval dent\ntest scratch\n")
    (folder_root / "good/e.png").write_bytes((folder_root / "good/a.png").read_bytes())
    pack(load_dataset("folder", folder_root, supervision=supervision), str(tmp_path / "set"))
    dataset = load_dataset("shards", tmp_path / "set")
    items = list(dataset.items)
    assert [item.name for item in items] == ["dent/c", "good/a", "good/b", "good/e", "scratch/d"]
    assert dataset.items.equal_files() == [(1, 3)]
    for split in ("train", "val", "test"):
        assert list(dataset.of_split(split)) == [r for r in items if r.split == split]
        assert dataset.of_split(split).labels().tolist() == [r.label for r in items if r.split == split]
    assert dataset.items.unlocalized().tolist() == [is_unlocalized(item) for item in items]
    assert {items[index].shape for index in dataset.items.shapes().values()} == {r.shape for r in items}
    assert list(dataset.items.identities()) == [item.identity() for item in items]
    assert list(dataset.items[1:3]) == items[1:3]
    assert dataset.items[-1] == items[-1]
    with pytest.raises(IndexError):
        dataset.items[5]
    assert dataset.assigned() is dataset


def test_a_folder_without_an_index_is_no_set(tmp_path):
    with pytest.raises(DatasetError, match=r"index.json does not exist.*datasets pack"):
        load_dataset("shards", tmp_path)
    with pytest.raises(DatasetError, match=r"ram://nothing/here/index.json does not exist"):
        load_dataset("shards", "ram://nothing/here/")


@pytest.mark.parametrize("place", ["s3://bucket/parts", "foo://bucket/parts"])
def test_a_scheme_that_tensorflow_lacks_says_what_to_do(place, folder_root):
    scheme = place.partition(":")[0]
    words = rf"{place}: TensorFlow .* has no file system for '{scheme}://'.*tensorflow-io.*mount"
    with pytest.raises(DatasetError, match=words):
        load_dataset("shards", place)
    with pytest.raises(DatasetError, match=words):
        pack(load_dataset("folder", folder_root), place)


def test_other_layouts_read_no_url():
    with pytest.raises(DatasetError, match=r"'folder' reads local folders.*gs://b/x.*datasets pack"):
        load_dataset("folder", "gs://b/x")


def test_without_tensorflow_the_extra_is_named(packed, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingExtraError, match="extra 'tensorflow'"):
        load_dataset("shards", packed)


def test_a_package_that_adds_the_scheme_is_used_where_it_is_installed(monkeypatch):
    schemes = {"", "file", "gs"}
    monkeypatch.setattr(file_systems, "_schemes", lambda: schemes)
    monkeypatch.setattr(
        file_systems, "import_module", lambda name: schemes.add({"tensorflow_io": "s3"}[name])
    )
    file_systems.check_scheme("s3://bucket/parts")
    with pytest.raises(DatasetError, match="no file system for 'foo://'"):
        file_systems.check_scheme("foo://bucket/parts")
