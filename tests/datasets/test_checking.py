import shutil
from pathlib import Path
from threading import Event

import cv2
import numpy as np
import pytest
from PIL import Image

from datasets import item_check
from datasets.causes import Cause
from datasets.checked_photograph import find_duplicates
from datasets.checking import check_dataset, describe_risks
from datasets.layouts.folder import index
from datasets.problems import describe_causes, format_problem
from datasets.sample import Dataset, DataSetIssue, DataSetItem
from datasets.supervision import apply_mask_threshold
from segdec.errors import DatasetError, ImageError, MissingExtraError


def only_problem(dataset, **options):
    (problem,) = check_dataset(dataset, **options).dataset.problems
    return problem


def test_a_checked_photograph_holds_size_area_digests_and_content(folder_root):
    checked = check_dataset(index(folder_root))
    photographs = {photograph.item.name: photograph for photograph in checked.photographs}
    dent = photographs["dent/c"]
    assert (dent.height, dent.width, dent.channels, dent.defect_px) == (12, 20, 1, 6)
    assert dent.item.shape == (12, 20, 1)
    assert len(dent.item.digests) == 2
    assert photographs["good/a"].defect_px == 0
    assert len({photograph.digest for photograph in photographs.values()}) == 4
    assert checked.dataset.items == tuple(photograph.item for photograph in checked.photographs)


def test_same_pixels_in_another_file_type_are_equal_pictures(folder_root):
    pixels = cv2.imread(str(folder_root / "good/a.png"), cv2.IMREAD_UNCHANGED)
    cv2.imwrite(str(folder_root / "good/z.bmp"), pixels)
    same = find_duplicates(check_dataset(index(folder_root)).photographs)
    assert [[photograph.item.name for photograph in group] for group in same] == [["good/a", "good/z"]]


def test_a_problem_names_its_place_once_and_on_one_line():
    text = format_problem(DataSetIssue("list.csv, line 3", "No such\n class."))
    assert text == "list.csv, line 3: No such class."
    assert format_problem(DataSetIssue("a.png", "a.png is empty.")) == "a.png is empty."


@pytest.mark.parametrize(
    ("values", "words", "threshold"),
    [
        ([21, 22, 23], "has 4 values: 0, 21, 22, 23. Expected 0 and one other value", 0),
        ([1] * 230 + [10] * 10, "has 2 values: 1, 10. Expected 0", 5),
        ([100, *[200] * 5], "has 3 values: 0, 100, 200.", 100),  # few pixels at the edge
        (range(10, 251, 10), "has 26 values: 0, 10, 20, 30, 40, 50, …. Expected 0", 125),
    ],
)
def test_a_mask_of_many_values_needs_a_threshold(folder_root, values, words, threshold):
    mask = np.zeros(240, np.uint8)
    mask[: len(values)] = values
    cv2.imwrite(str(folder_root / "masks/dent/c.png"), mask.reshape(12, 20))
    problem = only_problem(index(folder_root))
    assert words in problem.text and f"give --mask-threshold {threshold}," in problem.text
    assert problem.name == "dent/c"


def test_soft_masks_get_one_threshold_and_one_message(tmp_path, write_picture):
    for number in range(5):
        write_picture(tmp_path / f"good/{number}.png")
        write_picture(tmp_path / f"dent/part_{number}.png")
        mask = cv2.imread(str(write_picture(tmp_path / f"masks/dent/part_{number}.png", mask=True)), 0)
        soft = cv2.GaussianBlur(mask, (5, 5), 0).astype(int) * (255 if number else 100) // 255
        cv2.imwrite(str(tmp_path / f"masks/dent/part_{number}.png"), soft)
    problems = check_dataset(index(tmp_path)).dataset.problems
    (cause,) = describe_causes(problems)
    assert "dent/part_0" in problems[0].name
    assert len(problems) == 5
    assert "(it fits 4 of 5 such masks): give --mask-threshold" in cause
    assert "And 4 more with this problem: dent/part_1, dent/part_2 …" in cause


@pytest.mark.parametrize(("threshold", "defect_px"), [(0, 5), (2, 3), (127, 2)])
def test_a_threshold_cuts_the_mask(folder_root, threshold, defect_px):
    mask = np.zeros((12, 20), np.uint8)
    mask[0, :5] = [1, 2, 127, 128, 200]
    cv2.imwrite(str(folder_root / "masks/dent/c.png"), mask)
    checked = check_dataset(apply_mask_threshold(index(folder_root), threshold))
    assert checked.photographs[0].defect_px == defect_px
    assert checked.dataset.items[0].mask_threshold == threshold
    assert checked.dataset.problems == ()


def test_masks_must_fit_their_class(folder_root, write_picture):
    write_picture(folder_root / "masks/good/a.png", mask=True)
    write_picture(folder_root / "masks/good/b.png", mask=True, value=0)
    write_picture(folder_root / "masks/dent/c.png", mask=True, value=0)
    dent, good = (problem.text for problem in check_dataset(index(folder_root)).dataset.problems)
    assert "a.png marks a defect, but its photograph" in good
    assert "c.png marks no defect, but" in dent


def test_a_defect_needs_a_mask_unless_its_class_is_all_there_is(tmp_path, write_picture):
    path = write_picture(tmp_path / "a.png")
    item = DataSetItem("a", path, None, label=1, group="a")
    text = only_problem(Dataset(("good", "defect"), (item,))).text
    assert "has no mask" in text
    assert "label  a" in text
    labelled = DataSetItem("a", path, None, label=1, group="a", supervision="label")
    assert check_dataset(Dataset(("good", "defect"), (labelled,))).dataset.problems == ()


def test_one_picture_with_two_classes_names_both(folder_root):
    shutil.copy(folder_root / "good/a.png", folder_root / "dent/c.png")
    shutil.copy(folder_root / "good/a.png", folder_root / "good/copy.png")
    checked = check_dataset(index(folder_root))
    assert [problem.name for problem in checked.dataset.problems] == ["dent/c", "good/a", "good/copy"]
    text = checked.dataset.problems[0].text
    dent, good = folder_root / "dent/c.png", folder_root / "good/a.png"
    assert f"{dent} (dent) is the same picture as {good} (good)" in text
    assert [item.name for item in checked.dataset.items] == ["good/b", "scratch/d"]


def test_what_a_caller_cannot_use_is_a_problem_but_a_missing_package_is_none(folder_root):
    error = ImageError("too dark", code="dark")

    def examine(sample):
        if sample.name == "good/b":
            raise error

    assert only_problem(index(folder_root), examine=examine).text == "too dark"
    error = MissingExtraError("tensorflow", "tensorflow")
    with pytest.raises(MissingExtraError):
        check_dataset(index(folder_root), examine=examine)


def test_palette_of_one_colour_is_a_warning(folder_root):
    picture = Image.new("P", (20, 12))
    picture.putpalette(bytes(768))
    picture.save(folder_root / "good/b.bmp")
    (folder_root / "good/b.png").unlink()
    (warning,) = describe_risks(check_dataset(index(folder_root)))
    assert warning.startswith("1 (good/b): all colours of the file's palette are the same")


def write_pages(path):
    """Gives a grey picture a second page."""
    with Image.open(path.with_suffix(".png")) as picture:
        picture.save(path, save_all=True, append_images=[Image.fromarray(255 - np.asarray(picture))])
    path.with_suffix(".png").unlink()


@pytest.mark.parametrize("place", ["good/b", "masks/dent/c"])
def test_files_with_several_pictures_are_a_risk_or_with_strict_a_problem(folder_root, place):
    write_pages(folder_root / f"{place}.tif")
    name = place.removeprefix("masks/")
    (warning,) = describe_risks(check_dataset(index(folder_root)))
    assert warning.startswith(f"1 ({name}): the file of the photograph or of its mask has several pictures")
    problem = only_problem(index(folder_root), strict=True)
    assert (problem.name, problem.cause) == (name, Cause("several_pictures"))
    assert "Expected one: save the picture to use as a file of its own." in problem.text


def test_each_of_several_masks_may_have_several_pictures(folder_root, write_picture):
    for number in (1, 2):
        write_picture(folder_root / f"masks/scratch/d_{number}.png", mask=True)
    write_pages(folder_root / "masks/scratch/d_2.tif")
    (warning,) = describe_risks(check_dataset(index(folder_root)))
    assert warning.startswith("1 (scratch/d): the file")


def test_16_bits_need_a_white_level(folder_root):
    cv2.imwrite(str(folder_root / "good/a.png"), np.full((12, 20), 2048, np.uint16))
    assert "input.white_level" in only_problem(index(folder_root)).text
    assert check_dataset(index(folder_root), white_level=4095).dataset.problems == ()


class Unreadable:
    def read_bytes(self):
        pytest.fail("was read")


def known(name, digest, shape=(4, 6, 1)):
    return DataSetItem(name, Unreadable(), None, 0, name, "train", shape=shape, digests=(digest,))


def test_what_an_index_knows_is_not_read(tmp_path, write_picture):
    read = DataSetItem("read", write_picture(tmp_path / "a.png"), None, label=0, group="read")
    (alone,) = check_dataset(Dataset(("good",), (read,))).photographs
    copy = known("copy", *alone.item.digests, shape=(12, 20, 1))
    items = (known("a", "0" * 64), known("b", "0" * 64), known("c", "1" * 64), read, copy)
    photographs = check_dataset(Dataset(("good",), items), trusted=lambda _: True).photographs
    assert [photograph.defect_px for photograph in photographs] == [None, None, None, 0, None]
    named = [[photograph.item.name for photograph in same] for same in find_duplicates(photographs)]
    assert named == [["a", "b"], ["read", "copy"]]


@pytest.mark.parametrize(("max_pixels", "is_trusted"), [(240, False), (239, True)])
def test_what_is_not_trusted_or_too_large_is_read(tmp_path, write_picture, max_pixels, is_trusted):
    shape, digests = (12, 20, 1), ("0" * 64,)
    item = DataSetItem("a", write_picture(tmp_path / "a.png"), None, 0, "a", shape=shape, digests=digests)
    dataset = Dataset(("good",), (item,))
    checked = check_dataset(dataset, max_pixels=max_pixels, trusted=lambda _: is_trusted)
    assert [photograph.defect_px for photograph in checked.photographs] == ([] if is_trusted else [0])
    assert ["240 pixels" in problem.text for problem in checked.dataset.problems] == [True] * is_trusted


def test_an_interruption_does_not_wait_for_the_rest(monkeypatch):
    looked, interrupted = [], Event()

    def read_files(item, **_options):
        looked.append(item)
        if len(looked) == 2:
            interrupted.wait(60)
        raise DatasetError("no file")

    def interrupt(items):
        yield items[0]
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(item_check, "read_files", read_files)
    items = tuple(DataSetItem(str(number), Path("a"), None, 0, "a") for number in range(2_000))
    with pytest.raises(KeyboardInterrupt):
        check_dataset(Dataset(("good",), items), threads=1, progress=interrupt)
    assert len(looked) < len(items)


def test_photographs_of_one_colour_are_a_risk(folder_root):
    for name, level in (("dark", 0), ("grey", 120)):
        cv2.imwrite(str(folder_root / f"good/{name}.png"), np.full((12, 20), level, np.uint8))
    (warning,) = describe_risks(check_dataset(index(folder_root)))
    assert warning.startswith("2 (good/dark, good/grey) show one colour and nothing else. Remove them if ")
