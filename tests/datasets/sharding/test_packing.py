import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from datasets import file_systems
from datasets.checking import check_dataset
from datasets.loading import load_dataset
from datasets.reading import read, read_files
from datasets.reading_options import ReadingOptions
from datasets.sharding.packing import pack
from segdec.errors import DatasetError


@pytest.fixture(params=["folder", "url"])
def out(request, tmp_path):
    """Where to pack to: a folder, or a URL of a file system within the process."""
    return str(tmp_path / "packed") if request.param == "folder" else f"ram://{tmp_path.name}/packed"


@pytest.fixture
def heavy_root(tmp_path):
    """Sixteen good and four defective photographs of about 90 kB, all to train on."""
    root = tmp_path / "heavy"
    rng = np.random.default_rng(0)
    for class_name, count in (("good", 16), ("dent", 4)):
        (root / class_name).mkdir(parents=True)
        for number in range(count):
            cv2.imwrite(str(root / class_name / f"{number}.png"), rng.integers(0, 256, (300, 300), np.uint8))
    (root / "masks").mkdir()
    for number in range(4):
        cv2.imwrite(str(root / "masks" / f"{number}.png"), np.eye(300, dtype=np.uint8))
    (root / "splits.txt").write_text("train good\ntrain dent\n")
    return root


def test_packed_items_are_those_of_the_files(folder_root, out):
    files = load_dataset("folder", folder_root)
    pack(files, out)
    shards = load_dataset("shards", out)
    assert shards.classes == files.classes
    for one, other in zip(files.items, shards.items, strict=True):
        known = {"shape": read(one).image.shape, "digests": read_files(one).digests()}
        packed = {"image_file": other.image_file, "mask_file": other.mask_file, "drawn_on": "upright"}
        assert replace(one, **known, **packed) == other
        assert read_files(one) == read_files(other)


def test_shards_are_alike_and_always_the_same(heavy_root, tmp_path):
    dataset = load_dataset("folder", heavy_root)
    index = pack(dataset, str(tmp_path / "one"), shard_mb=1)
    assert [shard.name for shard in index.shards] == [f"train-0000{n}-of-00002.tfrecord" for n in (0, 1)]
    for number in range(2):
        rows = index.items.rows[index.items.rows["shard"] == number]
        labels = rows["label"][np.argsort(rows["offset"])].tolist()
        assert Counter(labels) == {0: 8, 1: 2}
        assert labels != sorted(labels) != labels[::-1]
    pack(dataset, str(tmp_path / "two"), shard_mb=1)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_tensorflow_reads_the_shards_too(folder_root, tmp_path):
    import tensorflow as tf

    pack(load_dataset("folder", folder_root), str(tmp_path / "packed"))
    files = sorted(map(str, (tmp_path / "packed").glob("*.tfrecord")))
    examples = [tf.train.Example.FromString(data.numpy()) for data in tf.data.TFRecordDataset(files)]
    names = sorted(e.features.feature["name"].bytes_list.value[0] for e in examples)
    assert names == [b"dent/c", b"good/a", b"good/b", b"scratch/d"]
    assert sum("mask" in e.features.feature for e in examples) == 2


def test_a_damaged_file_leaves_no_set(folder_root, out):
    (folder_root / "good/b.png").write_bytes((folder_root / "good/b.png").read_bytes()[:-30])
    with pytest.raises(DatasetError, match=r"b\.png"):
        pack(load_dataset("folder", folder_root), out)
    with pytest.raises(DatasetError, match=r"index.json does not exist.*pack again"):
        load_dataset("shards", out)


def test_a_pack_that_stops_half_way_cannot_be_read_or_mixed_up(folder_root, out):
    dataset = load_dataset("folder", folder_root)
    for overwrite in (False, True):
        steps = iter(range(2))
        with pytest.raises(StopIteration):
            pack(dataset, out, overwrite=overwrite, advance=lambda: next(steps))  # noqa: B023
        if overwrite and not file_systems.is_url(out):
            assert len(load_dataset("shards", out).items) == 4
        else:
            with pytest.raises(DatasetError, match=r"index.json does not exist"):
                load_dataset("shards", out)
        pack(dataset, out, overwrite=overwrite and not file_systems.is_url(out))
        assert len(load_dataset("shards", out).items) == 4


def test_shards_are_replaced_only_on_request(heavy_root, folder_root, out):
    pack(load_dataset("folder", heavy_root), out, shard_mb=1)
    dataset = load_dataset("folder", folder_root)
    with pytest.raises(DatasetError, match=rf"{re.escape(out)} exists.*--overwrite"):
        pack(dataset, out)
    assert len(load_dataset("shards", out).items) == 20
    pack(dataset, out, overwrite=True)
    assert len(load_dataset("shards", out).items) == 4
    assert file_systems.size(file_systems.join(out, "train-00001-of-00002.tfrecord")) is None


def test_what_holds_no_shards_is_never_replaced(folder_root, out):
    file_systems.make_folder(out)
    file_systems.write(file_systems.join(out, "index.json"), b'{"precious": 1}')
    with pytest.raises(DatasetError, match="has no readable shards, so it is not replaced"):
        pack(load_dataset("folder", folder_root), out, overwrite=True)
    assert file_systems.read(file_systems.join(out, "index.json")) == b'{"precious": 1}'


def test_shards_can_be_packed_again_elsewhere_only(folder_root, out):
    pack(load_dataset("folder", folder_root), out)
    shards = load_dataset("shards", out)
    with pytest.raises(DatasetError, match="holds the shards"):
        pack(shards, out, overwrite=True)
    pack(shards, f"{out}-copy")
    for one, other in zip(shards.items, load_dataset("shards", f"{out}-copy").items, strict=True):
        assert read_files(one) == read_files(other)


def test_a_place_that_cannot_be_written_to_is_an_error(folder_root, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="cannot be written"):
        pack(load_dataset("folder", folder_root), str(tmp_path / "file" / "packed"))
    with pytest.raises(DatasetError, match=r"--shard-mb 0"):
        pack(load_dataset("folder", folder_root), str(tmp_path / "packed"), shard_mb=0)
    assert not (tmp_path / "packed").exists()


def test_supervision_and_thresholds_survive(folder_root, out, tmp_path):
    supervision = tmp_path / "supervision.txt"
    supervision.write_text("box dent\nlabel scratch\n")
    (folder_root / "splits.txt").write_text("train good\ntrain dent\ntrain scratch\n")
    pack(load_dataset("folder", folder_root, supervision=supervision), out)
    dent, _, _, scratch = load_dataset("shards", out).items
    assert (dent.supervision, dent.mask_threshold) == ("box", None)
    assert (read(dent).mask > 0).sum() == 6
    assert (scratch.supervision, scratch.mask_file) == ("label", None)
    pack(load_dataset("folder", folder_root, reading=ReadingOptions(mask_threshold=127)), f"{out}-cut")
    dent, *_ = load_dataset("shards", f"{out}-cut").items
    assert (dent.supervision, dent.mask_threshold) == ("mask", 127)
    (recut, *_) = load_dataset("shards", f"{out}-cut", reading=ReadingOptions(mask_threshold=20)).items
    assert (recut.mask_threshold, recut.digests) == (20, None)  # to be read again
    pack(load_dataset("folder", folder_root, reading=ReadingOptions(invert_masks=True)), f"{out}-inverted")
    dent, *_ = load_dataset("shards", f"{out}-inverted").items
    assert (read(dent).mask == 0).sum() == 6


def test_values_of_classes_survive(tmp_path, out, write_picture):
    """Of the three lines of `classes.txt`, the second one means good, so the value 3 is the class 2."""
    root = tmp_path / "own"
    for name in "ab":
        write_picture(root / f"{name}.png")
    write_picture(root / "m.png", mask=True, value=3)
    (root / "classes.txt").write_text("scratch\nundamaged\ndent\n")
    rows = "image,label,class_mask,split\na.png,dent,m.png,train\nb.png,good,,train\n"
    (root / "manifest.csv").write_text(rows)
    files = load_dataset("manifest", root)
    pack(files, out)
    (packed, _), (own, _) = load_dataset("shards", out).items, files.items
    assert (packed.label, own.label, read(own).classes) == (2, 2, None)
    assert read(packed).classes is None  # all pixels have the class of the photograph
    np.testing.assert_array_equal(read(packed).mask, read(own).mask)
    cv2.imwrite(str(root / "m.png"), np.full((12, 20), 2, np.uint8))
    with pytest.raises(DatasetError, match="holds the values 2, which are not classes"):
        pack(files, f"{out}-wrong")


def test_masks_are_packed_rotated(folder_root, out):
    exif = Image.Exif()
    exif[0x0112] = 3
    for path in (folder_root / "dent/c.png", folder_root / "scratch/d.png"):
        with Image.open(path) as picture:
            picture.save(path, exif=exif)
    pack(load_dataset("folder", folder_root, reading=ReadingOptions(annotations_before_rotation=True)), out)
    mask = np.zeros((12, 20), np.uint8)
    mask[6:8, 12:15] = 255  # rows 4 and 5, columns 5 to 7 by half a turn
    masks = [read(item).mask for item in load_dataset("shards", out).items if item.label]
    np.testing.assert_array_equal(masks, [mask, mask])


def test_a_file_that_changes_after_it_was_checked_leaves_no_set(folder_root, tmp_path, write_picture):
    out = str(tmp_path / "packed")
    checked = check_dataset(load_dataset("folder", folder_root)).dataset
    write_picture(folder_root / "good/b.png", size=(21, 12))
    with pytest.raises(DatasetError, match=r"b\.png or its mask has changed since the check"):
        pack(checked, out)
    assert not Path(out).exists()
