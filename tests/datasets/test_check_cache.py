"""What is found of files is stored and used as long as they have not changed."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datasets import check_cache
from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.shapes import Box
from datasets.check_cache import CheckCache
from datasets.checking import check_dataset, describe_risks
from datasets.layouts.folder import index
from datasets.loading import load_dataset
from datasets.reading_options import ReadingOptions
from datasets.supervision import apply_mask_threshold, apply_supervision
from segdec.images import read_image, write_png


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """The files of these tests are young."""
    monkeypatch.setattr(check_cache, "MIN_FILE_AGE_S", -3600.0)


@pytest.fixture
def reads(monkeypatch):
    """How many times each file was read."""
    counts = Counter()
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: counts.update([path]) or read_bytes(path))
    return counts


@pytest.fixture
def start(folder_root, tmp_path, reads):
    """Checks the set as another start does; answers what was found, and the names of the files read."""

    def start(*, dataset=None, folder=tmp_path / "checked", settings="", trust=True, **options):
        reads.clear()
        known = CheckCache(folder, str(folder_root), settings, trust=trust)
        checked = check_dataset(dataset or index(folder_root), known=known, **options)
        known.save(parents=True)
        return checked, {path.name for path in reads if path.suffix == ".png"}

    return start


def file_names(root):
    return {path.name for path in root.rglob("*.png")}


def test_files_that_have_not_changed_are_read_once(start, folder_root):
    first, read = start()
    assert read == file_names(folder_root)
    again, read = start()
    assert read == set()
    assert again == first  # with thumbnails
    assert all(photograph.thumbnail for photograph in again.photographs)


def test_a_risk_is_found_again(start, folder_root):
    """Whatever the options are that decide what it means."""
    exif = Image.Exif()
    exif[0x0112] = 3
    pages = [Image.fromarray(np.full((12, 20), level, np.uint8)) for level in (9, 99)]
    pages[0].putpixel((3, 3), 200)
    (folder_root / "dent/c.png").unlink()
    pages[0].save(folder_root / "dent/c.png", save_all=True, append_images=pages[1:], exif=exif)
    first, _ = start()
    again, read = start()
    assert read == set()
    assert describe_risks(first) == describe_risks(again)
    several, rotation = describe_risks(again)
    assert "several pictures" in several and "EXIF rotation" in rotation
    decided = load_dataset("folder", folder_root, reading=ReadingOptions(annotations_before_rotation=False))
    assert describe_risks(start(dataset=decided)[0]) == [several]
    strict, read = start(strict=True)
    assert read == set()
    assert [problem.name for problem in strict.dataset.problems] == ["dent/c"]


def touch(path, delta_ns=10**9):
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + delta_ns))


def test_a_changed_file_is_checked_again(start, folder_root):
    """Of the same size, and with the time of writing it had: the time of change cannot be set back."""
    start()
    photograph = next(item.image_file for item in index(folder_root).items if not item.label)
    stat = photograph.stat()
    write_png(photograph, 255 - read_image(photograph).pixels)
    os.truncate(photograph, stat.st_size)
    os.utime(photograph, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert start()[1] == {photograph.name}


def test_files_that_were_only_touched_are_not_decoded(start, folder_root, monkeypatch):
    first, _ = start()
    for path in folder_root.rglob("*.png"):
        touch(path)
    monkeypatch.setattr("datasets.item_check.decode", lambda *_, **__: pytest.fail("was decoded"))
    again, read = start()
    assert read == file_names(folder_root)
    assert again == first
    assert start()[1] == set()


def test_what_is_kept_counts_for_its_root_settings_and_annotations_alone(start, folder_root):
    start()
    dataset = index(folder_root)
    everything = file_names(folder_root)
    assert start(settings="other")[1] == everything
    assert start(trust=False)[1] == everything
    masked = [item for item in dataset.items if item.mask_file]
    assert start(dataset=apply_mask_threshold(dataset, 100))[1] == {
        path.name for item in masked for path in (item.image_file, item.mask_file)
    }
    assert start(max_pixels=10)[0].photographs == ()
    assert start()[1] == set()


def test_a_file_that_has_just_been_written_is_not_kept(start, folder_root, monkeypatch):
    monkeypatch.setattr(check_cache, "MIN_FILE_AGE_S", 3600.0)
    start()
    assert start()[1] == file_names(folder_root)


@pytest.mark.parametrize("damage", [b"", b"short", bytes(1000)])
def test_a_damaged_file_is_discarded_with_a_warning(start, tmp_path, folder_root, capsys, damage):
    start()
    (file,) = (tmp_path / "checked").iterdir()
    file.write_bytes(damage or file.read_bytes()[:-1] + b"?")
    assert start()[1] == file_names(folder_root)
    assert f"warning: '{file}' is damaged" in capsys.readouterr().err
    assert start()[1] == set()
    assert capsys.readouterr().err == ""


def test_a_folder_that_cannot_be_written_to_costs_a_warning(start, tmp_path, capsys):
    (tmp_path / "file").write_bytes(b"")
    checked, _ = start(folder=tmp_path / "file" / "below")
    assert not checked.dataset.problems
    assert "Set data.checked_folder" in capsys.readouterr().err


def test_processes_add_to_what_others_have_written(start, folder_root, tmp_path):
    items = index(folder_root).items
    one, other = (CheckCache(tmp_path / "checked", str(folder_root), "") for _ in range(2))
    for known, part in ((one, items[::2]), (other, items[1::2])):
        check_dataset(type(index(folder_root))(("good", "defect"), part), known=known)
        known.save()
    assert start()[1] == set()


def test_an_interrupted_check_keeps_what_it_has_found(folder_root, start):
    def interrupt(items):
        yield from items[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(progress=interrupt, threads=1)
    assert len(start()[1]) < len(file_names(folder_root))


def test_drawn_masks_and_boxes_are_known_by_what_they_hold(start, folder_root, tmp_path):
    """A drawing by its shapes, boxes by the file that they are drawn around."""
    (tmp_path / "supervision.txt").write_text("box dent\n")
    boxed = apply_supervision(index(folder_root), tmp_path / "supervision.txt")
    dent, *others = boxed.items
    assert isinstance(dent.mask_file, BoxedMask)

    def drawn(side):
        height, width = read_image(others[-1].image_file).pixels.shape[:2]
        mask = DrawnMask("drawn.json, entry 1", height, width, (Box(1.0, 1.0, 1.0 + side, 3.0),))
        return replace(boxed, items=(dent, *others[:-1], replace(others[-1], mask_file=mask)))

    assert {dent.image_file.name, others[-1].image_file.name} <= start(dataset=drawn(2.0))[1]
    assert start(dataset=drawn(2.0))[1] == set()
    assert start(dataset=drawn(4.0))[1] == {others[-1].image_file.name}
    touch(dent.mask_file.mask)
    assert dent.image_file.name in start(dataset=drawn(4.0))[1]
